"""The conv2d micro-op: its partition, L1 use, values and cycles."""
