"""The readings of a plan: memory, values, cycles."""
