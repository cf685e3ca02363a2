"""Sweeps: every combination of layers, devices and settings, kept as rows; tables and charts of the best."""
