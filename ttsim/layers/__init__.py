"""Transposed-convolution layers as data: what one layer is, and TOML files of them."""
