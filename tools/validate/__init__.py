"""Predictions against measured rows, row by row and group by group."""
