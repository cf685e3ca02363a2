"""oneDNN's transposed convolution on one to three spatial axes: its attributes, its errors, and its forward plan."""
