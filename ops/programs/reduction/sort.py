"""The program that sorts rows, 32 of them by one core (ttnn 0.81.1, sort)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from device.cores import CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout
from device.numbers.formats import BFLOAT16, FLOAT32, UINT16, UINT32, Array, DataFormat, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import Description, Ends, ValuesContext, given
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import BUFFERING, buffer, page_cores, row_bytes, tile_buffer
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
        wide = tile_sides(ends.read)[2]
        tiles = div_up(_tile_rows(ends.read), cores.num_cores()) * wide
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
    return page_cores(_tile_rows(source), spec.grid, row_wise=True)


def _tile_rows(source: TensorSpec) -> int:
    """Rows of tiles: of each image, or of all rows of a ROW_MAJOR tensor."""
    if source.layout is Layout.ROW_MAJOR:
        return div_up(prod(source.shape[:-1]), TILE)
    images, high, _ = tile_sides(source)
    return images * high


def sort_buffers(source: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Tiles and places on their way in, whole rows of them, and results; uint16 is sorted in float32.

    Of rows, all buffers hold as many tiles as a row has, and the program tilizes and untilizes.
    """
    cores, place = sort_cores(source, spec), places_format(source.data_format)
    number = FLOAT32 if source.data_format == UINT16 else source.data_format
    is_rows = source.layout is Layout.ROW_MAJOR
    wide = tile_sides(source)[2]
    reads, writes = (wide, wide) if is_rows else (2 * BUFFERING, BUFFERING)
    sizes = ("rows", reads), ("row", wide), ("sorted", writes), ("sorted_rows", writes)
    pairs = [
        tile_buffer(f"{name}{kind}", tiles, data_format, cores)
        for name, tiles in (sizes if is_rows else sizes[:3])
        for kind, data_format in (("", number), ("_places", place))
    ]
    flags = buffer("flags", FLAG_BYTES, UINT16, cores)
    integers = []
    if source.data_format == UINT16:
        integer_bytes = row_bytes(source, source.shape[-1]) if is_rows else UINT16.tile_bytes
        integers = [buffer(name, integer_bytes, UINT16, cores) for name in ("integers", "sorted_integers")]
    split = 4 if is_rows else len(pairs)
    return (*pairs[:split], flags, *pairs[split:], *integers)
