"""Element-wise operations on integers: exact, modulo two to the power of the format's bits.

What they compute follows their definitions; no record of a device was compared. Which functions take which formats:
tt-metal 0.81.1 (unary_device_operation, unary_op_supports_integer_dtype), asked of its planner.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from device.numbers.formats import INT32, UINT8, UINT16, UINT32, Array, DataFormat
from device.numbers.integers import Integers

SIX: Final = 6  # where relu6 ends
RELU: Final = "relu"

# The formats of integers that each function takes.
SUPPORTED: Final[Mapping[str, tuple[DataFormat, ...]]] = MappingProxyType(
    {
        "abs": (UINT8, UINT16, UINT32, INT32),
        RELU: (UINT8, UINT16, UINT32, INT32),
        "relu6": (UINT8, UINT16, UINT32, INT32),
        "leaky_relu": (UINT8, UINT16, UINT32),
        "neg": (INT32,),
        "square": (UINT16, UINT32, INT32),
    }
)
_FUNCTIONS: Final[Mapping[str, Callable[[Integers], Integers]]] = MappingProxyType(
    {
        "abs": np.abs,
        RELU: lambda values: np.maximum(values, 0),
        "relu6": lambda values: np.clip(values, 0, SIX),
        "leaky_relu": lambda values: values,  # of formats without a sign alone
        "neg": np.negative,
        "square": np.square,
    }
)


def applied_to_integers(values: Array, name: str, data_format: DataFormat) -> Array:
    """A function of every element, in storage of the same format."""
    with np.errstate(over="ignore"):
        return _FUNCTIONS[name](values.astype(np.int64)).astype(data_format.storage)


def combined_integers(left: Array, right: Array, operation: str, data_format: DataFormat) -> Array:
    """The sum, difference or product of integers, in storage of their format; ``operation`` is ttnn's name."""
    first, second = left.astype(np.int64), right.astype(np.int64)
    with np.errstate(over="ignore"):
        made = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply}[operation](first, second)
    return np.asarray(made, np.int64).astype(data_format.storage)
