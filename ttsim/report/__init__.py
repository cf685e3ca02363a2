"""Reports on a run: immutable figures, and writers that format them."""
