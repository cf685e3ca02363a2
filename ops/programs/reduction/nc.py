"""The program that adds the images along a leading axis (tt-metal 0.81.1, fast_reduce_nc)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from device.cores import CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, Array, DataFormat
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import Description, Ends, ValuesContext, given
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import page_cores, spread_evenly, tile_buffer
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.reduction.reduce import described, packed, streamed

MOST_TOGETHER: Final = 8  # tiles that are read together


@dataclass(frozen=True, slots=True, kw_only=True)
class AddImages(DataMovement):
    """The sum along one axis before the last two, which stays with length 1."""

    axis: int  # From the first
    padded_shape: tuple[int, ...]  # Of the tensor: padding becomes rows and columns of the result
    source_format: DataFormat
    data_format: DataFormat
    fp32_dest: bool
    allowed: CoreRangeSet | None = None  # Cores that may be used; None for all

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """Tiles added to each other in Dst, in order."""
        source, arithmetic = given(inputs[0]), context.arithmetic
        behind = [(0, padded - side) for side, padded in zip(source.shape, self.padded_shape, strict=True)]
        values = np.moveaxis(np.pad(source, behind) if any(map(any, behind)) else source, self.axis, 0)
        total = np.zeros(values.shape[1:], np.float32)
        for image in values:
            operand = np.ascontiguousarray(image.astype(np.float32))
            total = arithmetic.add_bias(
                total,
                arithmetic.unpack(operand, self.source_format, fp32_dest=self.fp32_dest),
                fp32_dest=self.fp32_dest,
            )
        result = packed(total, self.data_format, arithmetic, fp32_dest=self.fp32_dest)
        return np.expand_dims(result, self.axis)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Every output tile is the sum of as many tiles as the axis is long."""
        outputs = output_tiles(self.padded_shape, self.axis)
        cores = nc_cores(self, spec)
        share = spread_evenly(outputs, cores.num_cores())[1]
        return streamed(
            ends,
            spec,
            cores=cores,
            tiles=(share * self.padded_shape[self.axis], share),
            math_cycles=spec.costs_of(kernel_costs.ComputeCosts).add_tile_cycles,
            steps="reading, adding and packing of tiles",
        )

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """A reduction, whose numbers were never compared with recordings."""
        return described(DataMovement.describe(self, ends, spec))


def output_tiles(padded_shape: tuple[int, ...], axis: int) -> int:
    """Tiles of the result."""
    return prod(padded_shape[:axis] + padded_shape[axis + 1 :]) // TILE**2


def nc_cores(op: AddImages, spec: DeviceSpec) -> CoreRangeSet:
    """Cores that share the tiles of the result, row by row."""
    tiles = output_tiles(op.padded_shape, op.axis)
    if op.allowed is None:
        return page_cores(tiles, spec.grid, row_wise=True)
    cores = op.allowed.cores()[:tiles]
    return CoreRangeSet([CoreRange(core, core) for core in cores]).merged()


def nc_buffers(op: AddImages, source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Tiles on their way in, a tile of zeros, and two tiles of the result."""
    length = source.padded_shape[op.axis]
    together = next(count for count in range(MOST_TOGETHER, 0, -1) if length % count == 0)
    cores = nc_cores(op, spec)
    return (
        tile_buffer("tiles", 2 * together, source.data_format, cores),
        tile_buffer("zeros", 1, BFLOAT16, cores),
        tile_buffer("sums", 2, target.data_format, cores),
    )
