"""Random calls, and what must hold of each."""
