"""Number formats, their rounding, and elementary functions."""
