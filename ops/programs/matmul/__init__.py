"""The matmul: program configs, circular buffers, values and cycles."""
