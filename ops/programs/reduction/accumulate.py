"""The program that sums or multiplies up along an axis (tt-metal 0.81.1, accumulation)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from device.cores import CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, Array, DataFormat, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import Description, Ends, ValuesContext, given
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import page_cores, spread_evenly, tile_buffer
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.reduction.reduce import described, packed, streamed

FIFO_TILES: Final = 4  # of the tensor, and of the result


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulate(DataMovement):
    """Every element is the sum or product of all up to it along an axis."""

    axis: int  # From the first
    multiplies: bool
    backwards: bool  # From the end of the axis
    compensates: bool  # What additions of float32 round off is carried along
    data_format: DataFormat

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """In float32, packed at every element; integers modulo two to the power of their bits."""
        source = given(inputs[0])
        values = np.flip(source, self.axis) if self.backwards else source
        scan: Callable[..., Array] = np.cumprod if self.multiplies else np.cumsum
        with np.errstate(over="ignore", invalid="ignore"):
            if not self.data_format.is_float:
                totals = scan(values.astype(np.int64), axis=self.axis).astype(self.data_format.storage)
            else:
                numbers = values.astype(np.float64 if self.compensates else np.float32)
                sums = np.asarray(scan(numbers, axis=self.axis, dtype=numbers.dtype), np.float32)
                totals = packed(np.atleast_1d(sums), self.data_format, context.arithmetic, fp32_dest=True)
        totals = totals.reshape(source.shape)
        return np.ascontiguousarray(np.flip(totals, self.axis)) if self.backwards else totals

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Tiles along the axis are added in sequence, and each total is packed."""
        cores = accumulating_cores(ends.read, self.axis, spec)
        tiles = spread_evenly(lines(ends.read, self.axis), cores.num_cores())[1] * steps(ends.read, self.axis)
        math = spec.costs_of(kernel_costs.ComputeCosts).vector_tile_cycles
        return streamed(
            ends,
            spec,
            cores=cores,
            tiles=(tiles, tiles),
            math_cycles=math,
            steps="reading, adding and packing of tiles",
        )

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """A scan, whose numbers were never compared with recordings."""
        return described(DataMovement.describe(self, ends, spec))


def steps(tensor: TensorSpec, axis: int) -> int:
    """Tiles along an axis."""
    from_last = len(tensor.shape) - axis
    return div_up(tensor.shape[axis], TILE) if from_last < 3 else tensor.shape[axis]


def lines(tensor: TensorSpec, axis: int) -> int:
    """Rows of tiles along an axis."""
    return prod(TensorSpec(tensor.shape, BFLOAT16, tensor.layout).padded_shape) // TILE**2 // steps(tensor, axis)


def accumulating_cores(tensor: TensorSpec, axis: int, spec: DeviceSpec) -> CoreRangeSet:
    """Cores that share the rows of tiles."""
    return page_cores(lines(tensor, axis), spec.grid)


def accumulate_buffers(op: Accumulate, tensor: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Tiles on both sides; for sums across tiles, the total in float32 and the rounding error of additions."""
    cores = accumulating_cores(tensor, op.axis, spec)
    buffers = [tile_buffer(name, FIFO_TILES, tensor.data_format, cores) for name in ("tiles", "totals")]
    if len(tensor.shape) - op.axis > 2:
        buffers.append(tile_buffer("total", 1, FLOAT32 if tensor.data_format.is_float else tensor.data_format, cores))
    if op.compensates:
        buffers.append(tile_buffer("compensation", 1, FLOAT32, cores))
    return tuple(buffers)
