"""The matmul: program configs, circular buffers, and what it makes of numbers."""
