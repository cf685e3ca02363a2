"""What happens around the halo and the micro-op of a convolution: uploads, reshapes, sharding, conversions, slices."""
