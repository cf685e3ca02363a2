"""Studies: many calls with different configs and devices are planned, placed and timed, and stored as rows."""
