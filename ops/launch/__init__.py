"""Bringing programs to the cores: what a launch takes, and how much of it hides behind kernels that still run."""
