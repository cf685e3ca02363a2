"""The matrix unit: exactly as the hardware multiplies, in blocks, compiled, and fast in floating point."""
