"""Data movement programs, one file per family."""
