"""Comparisons with torch on the host: golden functions of ttnn operations, and the correlation of two tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from device.errors import ArgumentError, ArgumentTypeError, DeviceError, shown
from ttsim.runtime.storage import is_torch, numbers
from ttsim.runtime.torch_functions import TorchFunction, TorchTensor, activation_of, called, torch_function
from ttsim.runtime.types.configs import UnaryOpType, UnaryWithParam


def get_golden_function(operation: Callable[..., Any]) -> TorchFunction:
    """A function that computes an operation with torch, on torch tensors.

    The function takes the operation's arguments and ignores arguments that only place or tune the result; results have
    torch's data types. Operations on devices and convolutions have no golden function.

    Args:
        operation: A function of ttnn.

    Returns:
        A function of torch tensors.

    Raises:
        DeviceError: The operation has no golden function, or torch is not installed.
        ArgumentTypeError: The argument is not a function.

    Examples:
        >>> import torch
        >>> ttnn.get_golden_function(ttnn.squared_difference)(torch.tensor([3.0]), torch.tensor([1.0]))
        tensor([4.])
    """
    name = getattr(operation, "__name__", None)
    if not callable(operation) or not isinstance(name, str):
        raise ArgumentTypeError(f"get_golden_function: operation must be a function of ttnn, not {shown(operation)}")
    found = torch_function(name)
    if found is None:
        raise DeviceError(
            f"{name} does not have a golden function\n"
            "get_golden_function: compute the operation by torch itself; the function needs the package torch"
        )

    def golden(*args: Any, **kwargs: Any) -> Any:
        return called(found[1], args, kwargs)

    golden.__name__ = golden.__qualname__ = f"golden_{name}"
    golden.__doc__ = f"What ttnn.{name} computes, on the host by {found[0]}."
    return golden


def get_golden_function_for_activation(
    activation: str | UnaryOpType | UnaryWithParam | None,
) -> TorchFunction | None:
    """The function of torch that computes an activation; None for no activation.

    Args:
        activation: A name such as "relu", or an activation with its parameters.

    Returns:
        A function of a torch tensor.

    Raises:
        DeviceError: torch has no such function, or is not installed.

    Examples:
        >>> import torch
        >>> get_golden_function_for_activation("relu")(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    return None if activation is None else activation_of(activation)


def pearson_correlation_coefficient(expected: TorchTensor, actual: Any) -> float:
    """Pearson's correlation coefficient (PCC) of two tensors.

    Equal tensors give 1.0; a constant tensor and any other give 0.0. NaN and infinities count as zeros, but two tensors
    with only NaN give 1.0, and a tensor with only NaN and any other give 0.0.

    Args:
        expected: Numbers of any shape.
        actual: As many numbers, of torch, numpy or ttnn.

    Returns:
        The correlation, from -1.0 to 1.0.

    Raises:
        ArgumentTypeError: ``expected`` is not a tensor of torch, or ``actual`` has no numbers.
        ArgumentError: They have different numbers of elements.

    Examples:
        >>> import torch
        >>> ttnn.pearson_correlation_coefficient(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([2.0, 4.0, 6.0]))
        1.0
    """
    if not is_torch(expected):
        raise ArgumentTypeError("Expected tensor is not a torch.Tensor\nexpected: use ttnn.to_torch")
    first, second = (numbers(value).astype(np.float64).ravel() for value in (expected, actual))
    if first.size != second.size:
        raise ArgumentError(
            "all the input array dimensions except for the concatenation axis must match exactly\n"
            f"expected and actual have {first.size} and {second.size} elements"
        )
    pair = np.stack([first, second])
    if np.array_equal(pair[0], pair[1], equal_nan=True):
        return 1.0
    if np.isnan(pair).all(1).any():
        return 0.0
    first, second = np.where(np.isfinite(pair), pair, 0)
    if np.array_equal(first, second):
        return 1.0
    if first.min() == first.max() or second.min() == second.max():
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])
