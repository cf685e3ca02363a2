"""The program that sorts rows of tiles, each by one core (ttnn 0.81.1, sort)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from device.cores import CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, UINT16, UINT32, Array, DataFormat, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import Description, Ends, ValuesContext, given
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import BUFFERING, buffer, page_cores, tile_buffer
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.reduction.ordered import ordered_rows
from ops.programs.reduction.reduce import described, streamed, tile_sides

FLAG_BYTES: Final = 1024  # by which the processors of a core wait for each other


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort(DataMovement):
    """The elements of each row in order, and their places; equal elements by place."""

    shape: tuple[int, ...]  # Of the tensor, without padding
    columns: int  # Of the result; what a caller does not ask for is padding
    descending: bool
    index_format: DataFormat

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> tuple[Array, Array]:
        """Elements in storage of their format, and places."""
        source = given(inputs[0])
        return ordered_rows(
            source, self.shape, self.columns, descending=self.descending, index_format=self.index_format
        )

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Pairs of tiles pass the vector unit in every step of a bitonic sort, ten times within a tile."""
        cores = sort_cores(ends.read, spec)
        images, high, wide = tile_sides(ends.read)
        tiles = div_up(images * high, cores.num_cores()) * wide
        stages = max(1, wide.bit_length() - 1)
        passes = 10 + stages * (stages + 1) // 2
        return streamed(
            ends,
            spec,
            cores=cores,
            tiles=(tiles, 2 * tiles),
            math_cycles=passes * spec.costs_of(kernel_costs.ComputeCosts).vector_tile_cycles,
            steps="reading, sorting and packing of tiles",
        )

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """A sort, whose numbers were never compared with recordings."""
        return described(DataMovement.describe(self, ends, spec))


def places_format(data_format: DataFormat) -> DataFormat:
    """The format of places: as wide as the numbers that are sorted."""
    return UINT16 if data_format == BFLOAT16 else UINT32


def sort_cores(source: TensorSpec, spec: DeviceSpec) -> CoreRangeSet:
    """Cores that share the rows of tiles, row by row."""
    images, high, _ = tile_sides(source)
    return page_cores(images * high, spec.grid, row_wise=True)


def sort_buffers(source: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Tiles and places on their way in, whole rows of them, and results; uint16 is sorted in float32."""
    cores, place = sort_cores(source, spec), places_format(source.data_format)
    number = FLOAT32 if source.data_format == UINT16 else source.data_format
    wide = source.padded_shape[-1] // TILE
    sizes = (("tiles", 2 * BUFFERING), ("row", wide), ("sorted", BUFFERING))
    pairs = [
        tile_buffer(f"{name}{kind}", tiles, data_format, cores)
        for name, tiles in sizes
        for kind, data_format in (("", number), ("_places", place))
    ]
    flags = buffer("flags", FLAG_BYTES, UINT16, cores)
    integers = [tile_buffer(name, 1, UINT16, cores) for name in ("integers", "sorted_integers")]
    return (*pairs, flags, *(integers if source.data_format == UINT16 else ()))
