"""Number formats: what they hold, how they are rounded, and functions of single numbers."""
