"""Writers: they format figures for a terminal or as JSON, and compute none."""
