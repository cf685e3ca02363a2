"""Calls that make tensors of no other."""
