"""Studies: many calls with other configs on other devices, each planned, placed and timed, and stored as a row."""
