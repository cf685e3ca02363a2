"""Arithmetic of normalizing kernels: tiles pass between steps through buffers of one intermediate format."""

from dataclasses import dataclass
from math import prod

import numpy as np

from device.matrix_unit.arithmetic import Arithmetic, arithmetic_of, cut
from device.matrix_unit.exact import MatrixUnitMode
from device.matrix_unit.fast import operand_masks
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, Array, DataFormat, div_up, whole_groups
from device.numbers.vector_unit import rounded_to_even_bfloat16
from ops.op_model import ValuesContext

UNCOMPARED = "normalized numbers never compared with the real kernel's"


def logical(values: Array, shape: tuple[int, ...]) -> Array:
    """An array of a tensor that was filled with its padding, or is seen under another shape, without padding."""
    if values.size == prod(shape):
        return values.reshape(shape)
    columns = shape[-1]
    if values.ndim == len(shape):
        return np.ascontiguousarray(values[tuple(slice(side) for side in shape)])
    return np.ascontiguousarray(values.reshape(-1, values.shape[-1])[: prod(shape) // columns, :columns]).reshape(shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class TileMath:
    """Steps of a kernel on [rows, columns] of float32, as operands of the matrix unit hold them."""

    arithmetic: Arithmetic
    mode: MatrixUnitMode
    between: DataFormat  # Format of the buffers between steps

    @classmethod
    def of(
        cls, context: ValuesContext, *, fidelity_phases: int, fp32_dest: bool, between: DataFormat | None = None
    ) -> "TileMath":
        """The steps on a device; buffers between them are as wide as Dst, unless another format is given."""
        mode = MatrixUnitMode(
            fidelity_phases=fidelity_phases,
            fp32_dest=fp32_dest,
            minus_one_quirk=context.spec.compute.minus_one_quirk,
        )
        wide = FLOAT32 if fp32_dest else BFLOAT16
        return cls(arithmetic=context.arithmetic, mode=mode, between=between or wide)

    def read(self, values: Array, data_format: DataFormat) -> Array:
        """Numbers of a buffer as an operand holds them; a copy."""
        numbers = np.array(values, np.float32)
        return self.arithmetic.unpack(numbers, data_format, fp32_dest=self.mode.fp32_dest)

    def stored(self, dst: Array) -> Array:
        """Dst after its way through a buffer between two steps."""
        return self.read(self.packed(dst, self.between), self.between)

    def packed(self, dst: Array, data_format: DataFormat) -> Array:
        """Dst as the packer writes it, in storage of a format."""
        columns = dst.shape[-1]
        if data_format != FLOAT32:
            dst = np.where(np.isnan(dst), np.float32(np.inf), dst)  # the packer knows no NaN
        if data_format.is_block:
            dst = whole_groups(dst)
        result = self.arithmetic.pack(dst, data_format, fp32_dest=self.mode.fp32_dest)
        return result[..., :columns].astype(data_format.storage)

    def added(self, left: Array, right: Array) -> Array:
        """The sum, in Dst; the right operand is repeated."""
        total = np.array(np.broadcast_to(left, np.broadcast_shapes(left.shape, right.shape)), np.float32)
        addend = np.array(np.broadcast_to(right, total.shape), np.float32)
        return self.arithmetic.add_bias(total, addend, fp32_dest=self.mode.fp32_dest)

    def multiplied(self, left: Array, right: Array) -> Array:
        """The product, in Dst; the right operand is repeated."""
        right_mask, left_mask = operand_masks(self.mode)
        product = cut(left.copy(), left_mask) * cut(right.copy(), right_mask)
        return self._in_dst(np.asarray(product, np.float32))

    def row_sums(self, values: Array) -> Array:
        """[rows, 1] sums of all columns by the matrix unit, tile by tile, in Dst."""
        return self.product(values, np.ones((values.shape[-1], 1), np.float32))

    def product(self, left: Array, right: Array) -> Array:
        """[rows, columns] of [rows, depth] times [depth, columns] by the matrix unit, tile by tile, in Dst."""
        arithmetic, depth = arithmetic_of(self.arithmetic, left), left.shape[-1]
        tiles = div_up(depth, TILE)
        sides = [(0, tiles * TILE - depth), (0, 0)]
        operands = np.pad(left, sides[::-1]), np.pad(right, sides)
        masks = arithmetic.operand_masks(self.mode)
        cut_operands = [cut(operand, mask) for operand, mask in zip(operands, masks, strict=True)]
        return arithmetic.product(*cut_operands, mode=self.mode, half_counts=(2,) * tiles)

    def scaled(self, dst: Array, factor: float) -> Array:
        """Dst times a number, by the vector unit."""
        return self._in_dst(np.asarray(dst * np.float32(factor), np.float32))

    def inverse_roots(self, variances: Array, epsilon: float) -> Array:
        """One over the roots of variances and epsilon, which are added first, in Dst."""
        total = self.added(variances, np.full((1, 1), epsilon, np.float32))
        with np.errstate(all="ignore"):
            return self._in_dst(np.asarray(1 / np.sqrt(total.astype(np.float64)), np.float32))

    def _in_dst(self, values: Array) -> Array:
        return values if self.mode.fp32_dest else rounded_to_even_bfloat16(values)
