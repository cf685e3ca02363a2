"""Passes over a plan: memory, values, cycles, and their caches."""
