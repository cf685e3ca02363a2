"""Operations on single elements of tensors: what a 1x1 convolution adds to its matmul when it cannot be fused."""
