"""What conv2d and conv_transpose2d share: arguments, paths through DRAM and L1, slices, weights."""
