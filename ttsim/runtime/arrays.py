"""Arrays at the border: numbers of whatever a user brings, the data type they come in, and torch tensors again.

The only place that touches torch, which is optional: it is loaded when a torch tensor is asked for, never before.
"""

import sys
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np

from device.errors import ArgumentError, ArgumentTypeError
from device.host.threads import side_by_side
from device.numbers.formats import Array, DataFormat, quantize
from ops.programs.patch_matmul.gather import copy_in_pieces
from ttsim.types.dtypes import DataType

LARGE_BYTES = 8 << 20  # from which on threads are faster than one: below they only wait for each other
_DEFAULT_TYPES = {
    "float64": DataType.FLOAT32,
    "float32": DataType.FLOAT32,
    "float16": DataType.FLOAT32,
    "bfloat16": DataType.BFLOAT16,
    "int32": DataType.INT32,
    "uint32": DataType.UINT32,
    "uint16": DataType.UINT16,
    "uint8": DataType.UINT8,
    "int8": DataType.INT8,
}


def numbers(data: Any) -> Array:
    """Numbers of whatever holds them.

    Raises:
        ArgumentTypeError: There are none.
        ArgumentError: Rows of different lengths, or masked elements, which stand for no number.
    """
    if isinstance(data, np.ma.MaskedArray) and np.ma.getmaskarray(data).any():
        raise ArgumentError(
            f"Tensor: data has {np.count_nonzero(np.ma.getmaskarray(data))} masked elements, which are no numbers; "
            "give them a value with data.filled(...)"
        )
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


def is_torch(data: object) -> bool:
    """Whether ``data`` is a torch tensor; does not load torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(data, torch.Tensor)


def numpy_from_torch(tensor: Any) -> Array:
    """The values of a torch tensor; bfloat16 stays bfloat16."""
    torch = import_module("torch")
    host = tensor.detach().cpu().contiguous()
    if host.dtype == torch.bfloat16:
        return np.asarray(host.view(torch.int16).numpy().view(ml_dtypes.bfloat16))
    return np.asarray(host.numpy())


def torch_from_numpy(values: Array, format_name: str) -> Any:
    """A torch tensor of values.

    Args:
        values: float32 or integers.
        format_name: "bfloat16" makes a bfloat16 tensor; other floats stay float32.

    Raises:
        ImportError: torch is not installed.
    """
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise ImportError("to_torch needs torch; install ttsim[torch], or use to_numpy()") from error
    if values.dtype.kind == "u" and values.dtype.itemsize > 1:
        values = values.astype(np.int64)
    tensor = torch.from_numpy(values)
    return tensor.to(torch.bfloat16) if format_name == "bfloat16" else tensor


def rounded(values: Array, data_format: DataFormat) -> Array:
    """A copy of values, rounded to a format; of one number that is repeated, as many views of it."""
    if values.size > 1 and not any(values.strides):
        single = quantize(values[(slice(1),) * values.ndim], data_format)
        return np.broadcast_to(single, values.shape)
    result = quantize(values, data_format)
    return result.copy() if np.shares_memory(result, values) else result


def padded(values: Array, shape: tuple[int, ...]) -> Array:
    """Values at the beginning of a larger shape, which may have more axes; zeros behind them."""
    result = np.zeros(shape, values.dtype)
    result[(0,) * (len(shape) - values.ndim) + tuple(map(slice, values.shape))] = values
    return result


def frozen(values: Array) -> Array:
    """The array, read-only from now on."""
    values.flags.writeable = False
    return values


def copied(values: Array, kind: np.dtype[Any]) -> Array:
    """A copy as another type of numbers that holds them; of a large array made on all cores, which share its faults."""
    if values.nbytes < LARGE_BYTES:
        return values.astype(kind, order="C")
    made = np.empty(values.shape, kind)
    copy_in_pieces(made, values, side_by_side)
    return made
