"""The programs that sort rows (ttnn 0.81.1, sort).

A core sorts 32 rows, or cores share wider ones: each holds a part and exchanges it with others, or pairs of tiles go to
DRAM and back in every step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Final

import numpy as np

from device.cores import CoreCoord, CoreRange, CoreRangeSet
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
MOST_TILES: Final = 64  # of rows that one core sorts
PART_TILES: Final = (2, 128)  # of a row on a core that holds a part: the fewest, and the most


class SortProgram(Enum):
    """How rows are sorted."""

    WHOLE = "each core sorts whole rows of tiles"
    PARTS = "each core holds a part of the rows, and cores exchange theirs"
    PAIRS = "cores take pairs of tiles from DRAM, and the last core leads them from step to step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort(DataMovement):
    """The elements of each row in order, and their indices; equal elements by index."""

    shape: tuple[int, ...]  # Of the tensor, without padding
    columns: int  # Of the result; what a caller does not ask for is padding
    descending: bool
    index_format: DataFormat
    program: SortProgram = SortProgram.WHOLE

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> tuple[Array, Array]:
        """Elements in storage of their format, and indices."""
        source = given(inputs[0])
        return ordered_rows(
            source, self.shape, self.columns, descending=self.descending, index_format=self.index_format
        )

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Pairs of tiles pass the vector unit in every step of a bitonic sort, ten times within a tile."""
        cores = sort_cores(ends.read, self.program, spec)
        wide = tile_sides(ends.read)[2]
        tiles = div_up(_tile_rows(ends.read), cores.num_cores()) * wide
        if self.program is not SortProgram.WHOLE:
            tiles = _tile_rows(ends.read) * div_up(wide, cores.num_cores())
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


def places_format(data_format: DataFormat, columns: int) -> DataFormat:
    """The format of indices: at least as wide as the sorted values, and wide enough for all columns."""
    return UINT16 if data_format == BFLOAT16 and columns <= np.iinfo(np.uint16).max else UINT32


def program_of(source: TensorSpec, spec: DeviceSpec) -> SortProgram:
    """How rows of tiles are sorted; parts of integers are not exchanged."""
    wide, cores = tile_sides(source)[2], spec.grid.cores
    if wide <= MOST_TILES:
        return SortProgram.WHOLE
    fits = wide <= cores * _part_tiles(wide, cores)
    return SortProgram.PARTS if fits and source.data_format != UINT16 else SortProgram.PAIRS


def _part_tiles(wide: int, cores: int) -> int:
    least, most = PART_TILES
    return min(most, max(least, wide // cores))


def _parts(wide: int, spec: DeviceSpec) -> int:
    """Tiles of each part of a row; a power of two of cores has one part each."""
    return _part_tiles(wide, 1 << (spec.grid.cores.bit_length() - 1))


def sort_cores(source: TensorSpec, program: SortProgram, spec: DeviceSpec) -> CoreRangeSet:
    """Cores that share the rows of tiles, row by row; or cores that share the tiles of each row, with a leader."""
    wide, grid = tile_sides(source)[2], spec.grid
    if program is SortProgram.WHOLE:
        return page_cores(_tile_rows(source), grid, row_wise=True)
    if program is SortProgram.PARTS:
        return page_cores(wide // _parts(wide, spec), grid, row_wise=True)
    led, last = page_cores(min(wide // 2, grid.cores - 1), grid, row_wise=True), CoreCoord(grid.cols - 1, grid.rows - 1)
    return CoreRangeSet([*led.ranges, CoreRange(last, last)])


def _tile_rows(source: TensorSpec) -> int:
    """Rows of tiles: of each image, or of all rows of a ROW_MAJOR tensor."""
    if source.layout is Layout.ROW_MAJOR:
        return div_up(prod(source.shape[:-1]), TILE)
    images, high, _ = tile_sides(source)
    return images * high


def sort_buffers(op: Sort, source: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Incoming tiles and indices, whole rows of both, and results; uint16 is sorted in float32.

    In ROW_MAJOR layout the program tilizes and untilizes whole rows, or a core's part.
    """
    cores, is_rows = sort_cores(source, op.program, spec), source.layout is Layout.ROW_MAJOR
    wide = tile_sides(source)[2]
    match op.program:
        case SortProgram.WHOLE:
            reads, writes = (wide, wide) if is_rows else (2 * BUFFERING, BUFFERING)
            pairs = _pairs(op, source, {"rows": reads, "row": wide, "sorted": writes}, cores)
            more = _pairs(op, source, {"sorted_rows": writes}, cores) if is_rows else []
            flags = buffer("flags", FLAG_BYTES, UINT16, cores)
            split = 4 if is_rows else len(pairs)
            made = [*pairs[:split], flags, *pairs[split:], *more]
        case SortProgram.PAIRS:
            made = _pairs(op, source, {"rows": BUFFERING, "row": 2 * BUFFERING, "sorted": BUFFERING}, cores)
            if is_rows:
                made += _pairs(op, source, {"sorted_rows": BUFFERING}, cores)
                sticks = (("sticks", source.data_format), ("sticks_places", op.index_format))
                made += [buffer(name, TILE * (kind.element_bytes or 0), kind, cores) for name, kind in sticks]
        case SortProgram.PARTS:
            part = _parts(wide, spec)
            rows = tile_buffer("rows", part if is_rows else BUFFERING, source.data_format, cores)
            places = tile_buffer("rows_places", BUFFERING, op.index_format, cores)
            between = {"sorted": part, "sorted_rows": part} if is_rows else {"sorted": BUFFERING}
            sizes = {"part": part} | between | {"sent": BUFFERING, "received": BUFFERING}
            lone = [tile_buffer("cores", 1, UINT32, cores), tile_buffer("flags", 1, UINT16, cores)]
            made = [rows, places, *_pairs(op, source, sizes, cores), *lone]
    if source.data_format == UINT16:
        whole = is_rows and op.program is SortProgram.WHOLE
        integer_bytes = row_bytes(source, source.shape[-1]) if whole else UINT16.tile_bytes
        made += [buffer(name, integer_bytes, UINT16, cores) for name in ("integers", "sorted_integers")]
    return tuple(made)


def _pairs(op: Sort, source: TensorSpec, sizes: Mapping[str, int], cores: CoreRangeSet) -> list[CircularBuffer]:
    """Buffers of the same number of tiles of values and of indices."""
    number = FLOAT32 if source.data_format == UINT16 else source.data_format
    return [
        tile_buffer(f"{name}{kind}", tiles, data_format, cores)
        for name, tiles in sizes.items()
        for kind, data_format in (("", number), ("_places", op.index_format))
    ]
