"""Budgets for figures of layers and networks: their file, verdicts, and results for CI systems."""
