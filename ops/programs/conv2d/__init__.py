"""The conv2d micro-op: how it is spread over cores, what it keeps in L1, what it computes."""
