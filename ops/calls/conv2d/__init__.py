"""The ordinary convolution: its checks and its plan, on the paths that it shares with the transposed one."""
