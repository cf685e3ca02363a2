"""The program in which every core picks the largest or smallest elements of whole rows (tt-metal 0.81.1, topk)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from device.cores import CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, Array, DataFormat, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import Description, Ends, ValuesContext, given
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import BUFFERING, page_cores, tile_buffer
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.reduction.reduce import described, streamed, tile_sides


@dataclass(frozen=True, slots=True, kw_only=True)
class TopK(DataMovement):
    """The largest or smallest elements of each row in order, and their places; equal elements by place."""

    shape: tuple[int, ...]  # Of the tensor, without padding
    count: int
    largest: bool
    index_format: DataFormat

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> tuple[Array, Array]:
        """Elements in storage of their format, and places."""
        source = given(inputs[0])
        sides = (1, *self.shape)[-2:]
        if source.size != prod(self.shape):  # padding has become part of the values
            source = source.reshape(-1, *source.shape[-2:])[:, : sides[0], : sides[1]]
        source = source.reshape(self.shape)
        numbers = source.astype(np.float64)
        order = np.argsort(-numbers if self.largest else numbers, axis=-1, kind="stable")
        missing = max(0, self.count - source.shape[-1])
        places = order[..., : self.count]
        picked = np.take_along_axis(source, places, axis=-1)
        if missing:  # what a caller does not ask for is padding
            behind = [(0, 0)] * (source.ndim - 1) + [(0, missing)]
            picked, places = np.pad(picked, behind), np.pad(places, behind)
        return picked, places.astype(self.index_format.storage)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Tiles are transposed, sorted in pairs with the best so far, and transposed back."""
        cores = topk_cores(ends.read, spec)
        images, high, wide = tile_sides(ends.read)
        rows, kept = div_up(images * high, cores.num_cores()), div_up(self.count, TILE)
        sort = 10 * spec.costs_of(kernel_costs.ComputeCosts).vector_tile_cycles * kept  # ten merge steps of 64 numbers
        return streamed(
            ends,
            spec,
            cores=cores,
            tiles=(rows * wide, 2 * rows * kept),
            math_cycles=sort,
            steps="reading, sorting and packing of tiles",
        )

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """A selection, whose numbers were never compared with recordings."""
        return described(DataMovement.describe(self, ends, spec))


def topk_cores(source: TensorSpec, spec: DeviceSpec) -> CoreRangeSet:
    """Cores that share the rows of tiles, row by row."""
    images, high, _ = tile_sides(source)
    return page_cores(prod((images, high)), spec.grid, row_wise=True)


def topk_buffers(op: TopK, source: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Tiles and places: on their way in, while they are sorted, the best so far, and the result."""
    cores, kept = topk_cores(source, spec), div_up(op.count, TILE)
    sorted_format = BFLOAT16 if source.data_format.is_block else source.data_format
    sizes = (
        ("tiles", BUFFERING, source.data_format),
        ("places", BUFFERING, op.index_format),
        ("sorted", 2 * BUFFERING, sorted_format),
        ("sorted_places", 2 * BUFFERING, op.index_format),
        ("best", BUFFERING * kept, sorted_format),
        ("best_places", BUFFERING * kept, op.index_format),
        ("result", kept, source.data_format),
        ("result_places", kept, op.index_format),
    )
    return tuple(tile_buffer(name, tiles, data_format, cores) for name, tiles, data_format in sizes)
