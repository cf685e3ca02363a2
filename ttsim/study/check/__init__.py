"""Budgets: figures of layers and networks that must hold, their file, verdicts and results for CI systems."""
