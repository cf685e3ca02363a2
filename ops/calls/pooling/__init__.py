"""ttnn.max_pool2d: arguments, checks and plan."""
