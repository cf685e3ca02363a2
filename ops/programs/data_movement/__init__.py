"""Programs that move the numbers of tensors, one file a family."""
