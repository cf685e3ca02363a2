"""Reports on a run: summaries of frozen figures, and writers that format them."""
