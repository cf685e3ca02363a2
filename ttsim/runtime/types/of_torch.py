"""Names of torch's types for annotations, as the core does without torch; ``of_torch.pyi`` has the types."""

TorchTensor = type("torch.Tensor", (), {})
TorchType = type("torch.dtype", (), {})
