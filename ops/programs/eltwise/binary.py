"""Sums, differences and products of two tensors, or of a tensor and a number: what they do to numbers.

Two operands of which one is as wide as float32 and the other is not go through a 16-bit Dst unless the result is
float32. Products of one format, unless they are to be fast, and sums of float32 tensors are computed by the vector
unit; others by the matrix unit, which adds operands of 11-bit significands (`device.matrix_unit.packer.add_bias`) and
multiplies in four fidelity phases. Source: tt-metal 0.81.1 (binary_ng); that products of two formats are the matrix
unit's is recorded, once.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from device.matrix_unit.arithmetic import Arithmetic
from device.matrix_unit.exact import multiplied_elements
from device.numbers.activations import VectorUnitMode, apply_activation
from device.numbers.block_floats import whole_groups
from device.numbers.formats import BFLOAT16, FLOAT32, Array, DataFormat, quantize
from device.numbers.vector_unit import rounded_to_even_bfloat16
from device.plan import Work
from device.spec.parts import ComputeSpec
from ops.programs.eltwise.integers import applied_to_integers, combined_integers

RELU: Final = "relu"
Activations = tuple[tuple[str, tuple[float, ...]], ...]


class BinaryOperation(Enum):
    """What is done to two operands; values are ttnn's names."""

    ADD = "add"
    SUBTRACT = "subtract"
    MULTIPLY = "multiply"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary(Work):
    """Two tensors, or a tensor and a number, element by element; sides of length 1 are repeated."""

    operation: BinaryOperation  # What is done
    left_format: DataFormat  # Format of the first operand
    right_format: DataFormat | None = None  # Format of the second; None for a number
    scalar: float | None = None  # The number, if the second operand is one
    data_format: DataFormat
    activations: Activations = ()  # Functions of the result in order, each with its parameters
    left_activations: Activations = ()  # The same of the first operand, whose results lie in its format on their way
    right_activations: Activations = ()  # The same of the second
    # A product that the matrix unit computes, but of float32 tensors; sums and differences know no such mode
    fast: bool = False
    scalar_first: bool = False  # The number is the first operand, and the tensor the second

    @property
    def by_vector_unit(self) -> bool:
        """Whether the vector unit computes it."""
        if not self.left_format.is_float:
            return True
        if self.operation is BinaryOperation.MULTIPLY and not self.fast:
            return self.right_format in (None, self.left_format) and not self.left_format.is_block
        return self.left_format == FLOAT32 and self.right_format in (None, FLOAT32)

    @property
    def scalar_format(self) -> DataFormat:
        """What a number is packed as: the tensor's own format for the vector unit, unless that is a block float."""
        return self.left_format if self.by_vector_unit and not self.left_format.is_block else BFLOAT16

    @property
    def second_format(self) -> DataFormat:
        """Format of the second operand, tensor or number."""
        return self.scalar_format if self.right_format is None else self.right_format

    @property
    def fp32_dest(self) -> bool:
        """Whether Dst is 32 bits wide."""
        return self.data_format == FLOAT32 or self.left_format == self.second_format == FLOAT32


def combined(work: Binary, left: Array, right: Array | None, arithmetic: Arithmetic, compute: ComputeSpec) -> Array:
    """The result of an operation.

    Args:
        left: The first operand in storage of its format.
        right: The second one; None for a number.
        arithmetic: What is rounded where.
        compute: Figures of the device's math units.

    Returns:
        The broadcast shape, in storage of the result's format.
    """
    if not work.left_format.is_float:
        return _of_integers(work, left, right)
    wide = work.fp32_dest
    second = np.asarray(work.scalar, np.float32) if right is None else right.astype(np.float32)
    if right is None:
        second = quantize(second, work.scalar_format).astype(np.float32)
    shape = np.broadcast_shapes(left.shape, second.shape)
    mode = VectorUnitMode(fp32_dest=wide, reciprocal_table=compute.reciprocal_table)
    operands = (
        (left.astype(np.float32), work.left_format, work.left_activations),
        (second, work.second_format, work.right_activations),
    )
    first, other = (
        np.broadcast_to(
            _seen(
                _prepared(np.atleast_1d(one), data_format, functions, arithmetic, mode), data_format, work, arithmetic
            ),
            shape or (1,),
        ).copy()
        for one, data_format, functions in operands
    )
    dst = _combined(work, *((other, first) if work.scalar_first else (first, other)), arithmetic, compute)
    last_relu = bool(work.activations) and work.activations[-1][0] == RELU
    for name, parameters in work.activations[: -1 if last_relu else None]:
        dst = applied(dst, name, parameters, mode)
    return packed(dst, work.data_format, arithmetic, wide=wide, relu=last_relu).reshape(shape)


def _of_integers(work: Binary, left: Array, right: Array | None) -> Array:
    """The result of operands that are integers of one format."""
    operands = [left, np.asarray(work.scalar) if right is None else right]
    for number, functions in enumerate((work.left_activations, work.right_activations)):
        for name, _ in functions:
            operands[number] = applied_to_integers(operands[number], name, work.left_format)
    first, second = reversed(operands) if work.scalar_first else operands
    made = combined_integers(first, second, work.operation.value, work.data_format)
    for name, _ in work.activations:
        made = applied_to_integers(made, name, work.data_format)
    return made


def _prepared(
    values: Array, data_format: DataFormat, functions: Activations, arithmetic: Arithmetic, mode: VectorUnitMode
) -> Array:
    """Functions of an operand before the operation, packed in its format."""
    if not functions:
        return values
    dst = values if mode.fp32_dest else arithmetic.unpack(values, data_format, fp32_dest=False)
    last_relu = functions[-1][0] == RELU
    for name, parameters in functions[: -1 if last_relu else None]:
        dst = applied(dst, name, parameters, mode)
    return packed(dst, data_format, arithmetic, wide=mode.fp32_dest, relu=last_relu).astype(np.float32)


def applied(dst: Array, name: str, parameters: tuple[float, ...], mode: VectorUnitMode) -> Array:
    """A function of every element of Dst, by ttnn's name in lower case."""
    return np.maximum(dst, np.float32(0)) if name == RELU else apply_activation(dst, name, parameters, mode=mode)


def packed(dst: Array, data_format: DataFormat, arithmetic: Arithmetic, *, wide: bool, relu: bool = False) -> Array:
    """Dst as the packer writes it: [..., columns] in storage of a format."""
    columns = dst.shape[-1]
    if data_format != FLOAT32:
        dst = np.where(np.isnan(dst), np.float32(np.inf), dst)  # the packer knows no NaN
    if data_format.is_block:
        dst = whole_groups(dst)
    made = arithmetic.pack(dst, data_format, fp32_dest=wide, relu=relu)
    return made[..., :columns].astype(data_format.storage)


def _seen(values: Array, data_format: DataFormat, work: Binary, arithmetic: Arithmetic) -> Array:
    """An operand where it is computed on: whole in a 32-bit Dst of the vector unit, else as the matrix unit has it."""
    if work.by_vector_unit and work.fp32_dest:
        return values
    return arithmetic.unpack(values, data_format, fp32_dest=work.fp32_dest)


def _combined(work: Binary, left: Array, right: Array, arithmetic: Arithmetic, compute: ComputeSpec) -> Array:
    """Dst, as wide as the work has it."""
    if work.operation is BinaryOperation.MULTIPLY and not work.by_vector_unit and arithmetic.slice_by_slice:
        bits = [one.view(np.uint32) for one in (left, right)]
        quirk = compute.minus_one_quirk
        return multiplied_elements(*bits, fp32_dest=work.fp32_dest, minus_one_quirk=quirk).view(np.float32)
    if work.operation is BinaryOperation.MULTIPLY:
        product = np.asarray(left * right, np.float32)
        return product if work.fp32_dest else rounded_to_even_bfloat16(product)
    addend = right if work.operation is BinaryOperation.ADD else -right
    if work.by_vector_unit:
        return np.asarray(left + addend, np.float32)
    return arithmetic.add_bias(left, addend, fp32_dest=work.fp32_dest)
