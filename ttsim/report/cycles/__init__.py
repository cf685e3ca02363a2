"""The report on cycles: its figures, and what they say in words."""
