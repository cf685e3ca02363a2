"""ttnn.matmul and ttnn.linear: their checks and their plan."""
