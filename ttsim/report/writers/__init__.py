"""Writers: they lay figures out for a terminal or as JSON, and compute none."""
