"""The transpose of an operand, tile by tile, on the way to the matrix unit."""

import numpy as np

from device.matrix_unit.arithmetic import Arithmetic
from device.numbers.formats import Array, DataFormat, whole_groups


def transposed(data_format: DataFormat, values: Array, arithmetic: Arithmetic) -> Array:
    """[..., rows, columns] with both axes swapped, on the way through Dst: block floats share other exponents then."""
    turned = np.swapaxes(values, -1, -2)
    if not data_format.is_block:
        return turned
    columns = turned.shape[-1]
    packed = arithmetic.pack(whole_groups(turned), data_format, fp32_dest=False)
    return packed[..., :columns].astype(data_format.storage)
