"""Recorded runs of the real library, made again and compared."""
