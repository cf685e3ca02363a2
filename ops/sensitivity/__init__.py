"""Sensitivity of results to each figure of a device."""
