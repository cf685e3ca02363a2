"""ttnn.matmul and ttnn.linear: arguments, the library's choice of a program, checks and plan."""
