"""The four operations by the names of their arguments, and their tensor arguments."""

from typing import Any, Final, NamedTuple

import numpy as np

from device.errors import ArgumentError
from device.numbers.formats import BFLOAT16, FLOAT16, FLOAT32, DataFormat
from ops.programs.patch_matmul.slicing import Precision

TYPES: Final = (FLOAT32, BFLOAT16, FLOAT16)
_WIDE: Final = Precision.FLOAT64.value


class Names(NamedTuple):
    """What an operation calls its arguments."""

    operation: str
    src: str = "src"
    diff_dst: str = "diff_dst"  # The gradient of the destination
    weights_shape: str = "weights_shape"
    weights_format: str = "weights_format"  # The order of the weights' axes


FORWARD: Final = Names(operation="ConvTranspose")
BACKWARD_DATA: Final = Names(operation="ConvTransposeBackwardData")
BACKWARD_WEIGHTS: Final = Names(operation="ConvTransposeBackwardWeights")
BACKPROP_FILTERS: Final = Names(
    operation="ConvTransposeBackpropFilters",
    src="input_forward",
    diff_dst="output_delta",
    weights_shape="filter_shape",
    weights_format="filter_format",
)


class Operand(NamedTuple):
    """A tensor argument: its name, shape and numpy type, whatever holds its numbers."""

    name: str  # As the caller knows it
    shape: tuple[int, ...]
    data_format: DataFormat  # Its type; float64 is planned as float32


def operand(names: Names, name: str, array: Any, precision: Any) -> Operand:
    """An array as an argument of a call of a precision, which is checked elsewhere.

    Raises:
        ArgumentError: It is no numpy array of a supported type, or has masked elements, which stand for no number.
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"{names.operation}: {name} must be a numpy array, not {type(array).__name__}")
    plain = type(array) is np.ndarray
    if not plain and isinstance(array, np.ma.MaskedArray) and np.ma.getmaskarray(array).any():
        raise ArgumentError(
            f"{names.operation}: {name} has {np.count_nonzero(np.ma.getmaskarray(array))} masked elements, which are "
            f"no numbers; give them a value with {name}.filled(...)"
        )
    if isinstance(precision, str) and precision == _WIDE:
        if array.dtype != np.float64:
            raise ArgumentError(
                f"{names.operation}: {name} must be of type float64 for precision {precision!r}, not {array.dtype}"
            )
        return Operand(name, array.shape, FLOAT32)
    for data_format in TYPES:
        if array.dtype == data_format.storage:
            return Operand(name, array.shape, data_format)
    raise ArgumentError(
        f"{names.operation}: {name} must be of type {', '.join(str(one.storage) for one in TYPES)}, not {array.dtype}"
    )
