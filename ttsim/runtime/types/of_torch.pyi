"""Types of torch; each is Any where torch is not installed."""

from torch import Tensor as TorchTensor, dtype as TorchType  # noqa: N812 - torch's own class in lower case

__all__ = ["TorchTensor", "TorchType"]
