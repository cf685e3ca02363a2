"""Programs that reduce axes of a tensor, or look for places along them."""
