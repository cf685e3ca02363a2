"""The program that finds variances or standard deviations (ttnn 0.81.1, std and var), by Welford's method.

The vector unit updates mean and variance tile by tile in float32. Whole rows or columns of tiles stay in L1 where that
saves reading them twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from device.cores import CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import FLOAT32, Array, DataFormat, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import Description, Ends, ValuesContext, given
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import BUFFERING, page_cores, tile_buffer
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.reduction.reduce import described, packed, streamed, tile_sides

STREAMED_TILES: Final = 8  # incoming, unless whole rows or columns are kept in L1
HELD_TILES: Final = 24  # from which a core holds its only row or column, ...
HELD_WIDE_TILES: Final = 16  # ... the columns of its only image, ...
HELD_MANY_TILES: Final = 9  # ... and each of several
RESERVED_BYTES: Final = 101_024  # of L1 that kept tiles leave free


@dataclass(frozen=True, slots=True, kw_only=True)
class Welford(DataMovement):
    """The variance, or its root, along the last axes, which stay with length 1."""

    root: bool
    shape: tuple[int, ...]
    axes: tuple[int, ...]  # (-1,), (-2,), or several up to the last
    scalar: float  # The tensor is multiplied by it
    corrected: bool  # Squares are divided by one less than their number
    data_format: DataFormat
    fp32_dest: bool
    allowed: CoreRangeSet | None = None  # Cores that may be used; None for all

    @property
    def items(self) -> int:
        """Rows or columns of tiles, or images, that cores share."""
        images, high, wide = tile_sides(TensorSpec(self.shape, FLOAT32, Layout.TILE))
        if len(self.axes) > 1:
            return prod(self.shape[: -len(self.axes)])
        return images * (high if self.axes == (-1,) else wide)

    def cores(self, spec: DeviceSpec) -> CoreRangeSet:
        """The cores that share the work."""
        if self.allowed is None:
            return page_cores(self.items, spec.grid)
        return CoreRangeSet([CoreRange(core, core) for core in self.allowed.cores()[: self.items]]).merged()

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The deviations in storage of their format, rounded once in float32."""
        source = given(inputs[0]).reshape(self.shape)
        numbers = source.astype(np.float64) * self.scalar
        axes = tuple(axis for axis in self.axes if -axis <= source.ndim)
        with np.errstate(invalid="ignore", over="ignore"):
            variances = np.var(numbers, axis=axes, ddof=int(self.corrected), keepdims=True)
            totals = np.asarray(np.sqrt(variances) if self.root else variances, np.float32)
        result = packed(np.atleast_1d(totals), self.data_format, context.arithmetic, fp32_dest=self.fp32_dest)
        return result.reshape(totals.shape)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Every tile is transposed and passes the vector unit; a root is one additional pass for each result."""
        costs, cores = spec.costs_of(kernel_costs.ComputeCosts), self.cores(spec)
        share = div_up(self.items, cores.num_cores())
        tiles = share * div_up(prod(tile_sides(ends.read)), self.items)
        return streamed(
            ends,
            spec,
            cores=cores,
            tiles=(tiles, share),
            math_cycles=2 * costs.vector_tile_cycles,
            steps="reading, updating and packing of tiles",
        )

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """A reduction, whose numbers were never compared with recordings."""
        return described(DataMovement.describe(self, ends, spec))


def welford_buffers(op: Welford, source: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Tiles on their way in and results; of several axes, means and variances of rows in float32 as well."""
    cores, data_format = op.cores(spec), source.data_format
    _, high, wide = tile_sides(source)
    several, length = len(op.axes) > 1, wide if op.axes == (-1,) else high
    least = HELD_WIDE_TILES if several and wide > 1 else HELD_TILES
    least = least if op.items <= cores.num_cores() else HELD_MANY_TILES
    between = [("rows", 2 * BUFFERING, FLOAT32), ("means", 1, FLOAT32)] if several else []

    def buffers(tiles: int) -> tuple[CircularBuffer, ...]:
        ends = [("tiles", tiles, data_format), ("results", BUFFERING, data_format)]
        return tuple(tile_buffer(name, count, fmt, cores) for name, count, fmt in (*ends, *between))

    held = buffers(length)
    fits = sum(buffer.size_bytes for buffer in held) <= spec.l1.usable_bytes - RESERVED_BYTES
    return held if length >= least and fits else buffers(STREAMED_TILES)
