"""Memories: how tensors lie in them, who gets which addresses, and what the bytes are."""
