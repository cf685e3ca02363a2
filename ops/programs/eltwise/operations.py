"""The element-wise operations, and what they do to numbers.

A float32 tensor, or float32 row, gets a 32-bit Dst, whatever the compute config of the call says; a tensor by itself
goes into it whole. Two float32 operands are added by the vector unit as floats, others by the matrix unit
(docs/values.md, Bias).
"""

from dataclasses import dataclass

import numpy as np

from device.matrix_unit.arithmetic import Arithmetic
from device.numbers.activations import VectorUnitMode
from device.numbers.formats import FLOAT32, Array, DataFormat
from device.numbers.vector_unit import cut_to_bfloat16
from device.plan import Work
from ops.programs.eltwise.binary import applied, packed
from ops.programs.eltwise.integers import applied_to_integers

FILL = "fill"  # the function that gives one number everywhere; a 16-bit Dst cuts it


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRow(Work):
    """A row is added to every row of a matrix."""

    data_format: DataFormat  # Format of the matrix and of the sum
    row_format: DataFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Activate(Work):
    """A function of every element."""

    name: str  # ttnn's name in lower case
    parameters: tuple[float, ...]
    data_format: DataFormat  # Format of the tensor, which decides how wide Dst is
    out_format: DataFormat | None = None  # Format of the result; None for that of the tensor

    @property
    def made_format(self) -> DataFormat:
        """Format of the result."""
        return self.out_format or self.data_format


def added_row(work: AddRow, matrix: Array, row: Array, arithmetic: Arithmetic) -> Array:
    """The sum of a matrix and a row.

    Args:
        matrix: [..., columns] in storage of its format.
        row: [at least columns] in storage of its format.
        arithmetic: What is rounded where.

    Returns:
        [..., columns] in storage of the matrix's format.
    """
    wide = FLOAT32 in (work.data_format, work.row_format)
    used = row[: matrix.shape[-1]].astype(np.float32)
    if work.data_format == work.row_format == FLOAT32:
        return np.asarray(matrix + used, np.float32)
    seen = arithmetic.unpack(matrix.astype(np.float32), work.data_format, fp32_dest=wide)
    total = arithmetic.add_bias(seen, arithmetic.unpack(used, work.row_format, fp32_dest=wide), fp32_dest=wide)
    return packed(total, work.data_format, arithmetic, wide=wide)


def activated(work: Activate, values: Array, arithmetic: Arithmetic, *, reciprocal_table: bool) -> Array:
    """A function of every element, in the same shape.

    Args:
        values: Any shape, in storage of the tensor's format.
        arithmetic: What is rounded where.
        reciprocal_table: A figure of the device's math units.

    Returns:
        In storage of the result's format.
    """
    if not work.data_format.is_float:
        return applied_to_integers(values, work.name, work.made_format)
    wide = work.data_format == FLOAT32
    dst = np.atleast_1d(values.astype(np.float32))
    if not wide:
        dst = arithmetic.unpack(dst, work.data_format, fp32_dest=False)
    mode = VectorUnitMode(fp32_dest=wide, reciprocal_table=reciprocal_table)
    if work.name == FILL:
        number = np.full_like(dst, work.parameters[0])
        dst = number if wide else cut_to_bfloat16(number)
    else:
        dst = applied(dst, work.name, work.parameters, mode)
    return packed(dst, work.made_format, arithmetic, wide=wide).reshape(values.shape)
