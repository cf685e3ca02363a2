"""Walks over a plan: memory, values, cycles, and what they cache."""
