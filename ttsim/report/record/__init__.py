"""What files for other tools are written from: calls and device operations in order, each figure computed once."""
