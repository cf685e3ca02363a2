"""Memories: layouts of tensors, allocation of addresses, and contents of buffers."""
