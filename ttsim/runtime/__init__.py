"""Devices, tensors, and the execution of plans."""
