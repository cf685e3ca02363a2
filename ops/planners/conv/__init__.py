"""Plans of convolutions, transposed or not."""
