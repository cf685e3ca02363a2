"""Layers as data: what a layer is, TOML files of layers, and running them."""
