"""The gradients of a transposed convolution: with respect to its source and to its weights."""
