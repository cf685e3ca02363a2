"""Devices, tensors, and carrying out plans."""
