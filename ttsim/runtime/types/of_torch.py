"""Names of torch's types for annotations, because the core does not need torch; ``of_torch.pyi`` has the types."""

TorchTensor = type("torch.Tensor", (), {})
TorchType = type("torch.dtype", (), {})
