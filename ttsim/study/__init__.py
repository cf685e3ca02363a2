"""Experiments: many calls with other configs on other devices, each planned, placed and timed, and kept as a row."""
