"""Programs that reduce axes of a tensor, or search along them."""
