"""Benchmarks: how fast the simulator is, and how much memory it takes."""
