"""Layers from TOML files and flags, and running layers."""
