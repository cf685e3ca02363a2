"""Calls that lay a tensor out anew: other places, other layouts, other formats."""
