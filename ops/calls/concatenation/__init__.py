"""ttnn.concat: checks and plan."""
