"""Device operations: plans from shapes and configs, and the values, memory and cycles of planned operations."""
