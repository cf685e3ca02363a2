"""Fit the constants of the cycle models to measured rows, and show what the fit used and how well it predicts."""
