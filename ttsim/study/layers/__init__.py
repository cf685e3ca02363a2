"""Layers as data: TOML files of layers, flags, and running layers."""
