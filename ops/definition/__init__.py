"""What a transposed convolution and its gradients are: sizes, plain loops, and float64 twins."""
