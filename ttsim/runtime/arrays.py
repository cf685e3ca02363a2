"""Numbers of whatever a user brings, and the data type they come in."""

from typing import Any

import numpy as np

from device.errors import ArgumentError, ArgumentTypeError
from device.numbers.formats import Array
from ttsim.runtime.torch_bridge import is_torch, numpy_from_torch
from ttsim.types.dtypes import DataType

_DEFAULT_TYPES = {
    "float64": DataType.FLOAT32,
    "float32": DataType.FLOAT32,
    "float16": DataType.FLOAT32,
    "bfloat16": DataType.BFLOAT16,
    "int32": DataType.INT32,
    "uint32": DataType.UINT32,
    "uint16": DataType.UINT16,
    "uint8": DataType.UINT8,
}


def numbers(data: Any) -> Array:
    """Numbers of whatever holds them."""
    try:
        values = numpy_from_torch(data) if is_torch(data) else np.asarray(data)
    except ValueError:
        raise ArgumentError("Tensor: the rows of nested lists must be of one length") from None
    if values.dtype.kind not in "fiubV":
        raise ArgumentTypeError(
            f"Tensor: data must be an array of numbers, not {type(data).__name__} of {values.dtype}"
        )
    return values.astype(np.uint8) if values.dtype.kind == "b" else values


def default_type(values: Array) -> DataType:
    """The data type of an array that came without one."""
    name = values.dtype.name
    if name not in _DEFAULT_TYPES:
        raise ArgumentTypeError(
            f"Tensor: there is no data type for {name} values; give one, for example data_type=ttsim.bfloat16"
        )
    return _DEFAULT_TYPES[name]
