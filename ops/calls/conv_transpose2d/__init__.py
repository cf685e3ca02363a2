"""Transposed convolution: its arguments, its lowering to halo and conv2d, its weights."""
