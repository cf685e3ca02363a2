"""Programs that multiply all elements, or the images along a leading axis (ttnn 0.81.1, prod)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from device.cores import CoreRangeSet
from device.memory.layouts import TensorSpec
from device.numbers.formats import Array, DataFormat, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import Description, Ends, ValuesContext, given
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import BUFFERING, page_cores, tile_buffer
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.reduction.reduce import described, packed, streamed, tile_sides


@dataclass(frozen=True, slots=True, kw_only=True)
class Product(DataMovement):
    """The product along a leading axis, which keeps length 1; or of all elements, by one core."""

    shape: tuple[int, ...]
    axis: int | None  # From the first; None for all elements
    data_format: DataFormat  # Of the result

    def cores(self, source: TensorSpec, spec: DeviceSpec) -> CoreRangeSet:
        """The cores that share the tiles of the result."""
        tiles = 1 if self.axis is None else prod(tile_sides(source)) // self.shape[self.axis]
        return page_cores(tiles, spec.grid)

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """Products in float32, packed once."""
        numbers = given(inputs[0]).reshape(self.shape).astype(np.float32)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            totals = np.prod(numbers, axis=self.axis, dtype=np.float32, keepdims=True)
        return packed(np.asarray(totals, np.float32), self.data_format, context.arithmetic, fp32_dest=True)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Tiles are multiplied by the vector unit in sequence."""
        cores = self.cores(ends.read, spec)
        if self.axis is None:  # of the room that the program has, it writes one tile
            ends = replace(ends, written=ends.written.changed(shape=(1, 1)))
        results = 1 if self.axis is None else prod(tile_sides(ends.read)) // self.shape[self.axis]
        share = div_up(results, cores.num_cores())
        return streamed(
            ends,
            spec,
            cores=cores,
            tiles=(share * prod(tile_sides(ends.read)) // results, share),
            math_cycles=spec.costs_of(kernel_costs.ComputeCosts).vector_tile_cycles,
            steps="reading, multiplying and packing of tiles",
        )

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """A product, whose numbers were never compared with recordings."""
        return described(DataMovement.describe(self, ends, spec))


def product_buffers(op: Product, source: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Two tiles on their way in, and two of the result."""
    cores = op.cores(source, spec)
    ends = (("tiles", source.data_format), ("results", op.data_format))
    return tuple(tile_buffer(name, BUFFERING, data_format, cores) for name, data_format in ends)
