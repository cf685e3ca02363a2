"""The programs that pick the largest or smallest elements of rows (tt-metal 0.81.1, topk).

Every core selects from whole rows, or several cores share wide rows and another core selects from their results.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, FLOAT32, UINT32, Array, DataFormat, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import Description, Ends, ValuesContext, given
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import BUFFERING, page_cores, tile_buffer
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.reduction.ordered import ordered_rows, without_padding
from ops.programs.reduction.reduce import described, streamed, tile_sides

SHARED_COLUMNS: Final = (1024, 1 << 16)  # of rows that cores may share: a power of two from here, and below there
WIDE_COLUMNS: Final = 8192  # from which they share rows for any height
LEAST_SHARED_TILES: Final = 2  # of a row on one core
MOST_SHARED_TILES: Final = 2  # of k that they pick
MOST_HIGH_TILES: Final = 2  # of rows that are not wide, which are shared


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Cores that share the rows of a tensor; the core below their first column selects from their results."""

    first: CoreCoord
    columns: int  # Of cores
    rows: int
    core_tiles: int  # Of a row
    packed: bool = False  # A number and its place are sorted as one word

    @property
    def cores(self) -> int:
        """Cores that share a row."""
        return self.columns * self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class TopK(DataMovement):
    """The largest or smallest elements of each row in order, and their indices; equal elements by index."""

    shape: tuple[int, ...]  # Of the tensor, without padding
    count: int
    largest: bool
    index_format: DataFormat
    split: Split | None = None  # None: each core picks from whole rows
    allowed: CoreRangeSet | None = None  # Cores that may be used; None for all
    labelled: bool = False  # Whether it reads numbers of all elements, and writes them instead of places
    wide: bool = False  # Elements of 16 bits are sorted as float32: in a stable order, beside places of 32 bits

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> tuple[Array, Array]:
        """Elements in storage of their format, and their indices or labels."""
        source, form = given(inputs[0]), self.index_format
        best, places = ordered_rows(source, self.shape, self.count, descending=self.largest, index_format=form)
        if not self.labelled:
            return best, places
        labels = without_padding(given(inputs[1]), self.shape)
        return best, np.take_along_axis(labels, places.astype(np.int64), axis=-1).astype(form.storage)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Tiles are transposed, sorted in pairs with the best so far, and transposed back."""
        images, high, wide = tile_sides(ends.read)
        kept = div_up(self.count, TILE)
        sort = 10 * spec.costs_of(kernel_costs.ComputeCosts).vector_tile_cycles * kept  # ten merge steps of 64 numbers
        if self.split is None:
            cores = topk_cores(self, ends.read, spec)
            rows = div_up(images * high, cores.num_cores())
            tiles = rows * wide
        else:  # the last core sorts the best of each core after the first core is done
            cores, rows = split_cores(self.split)[0], images * high
            tiles = rows * (self.split.core_tiles + self.split.cores * kept)
        return streamed(
            ends,
            spec,
            cores=cores,
            tiles=(tiles, 2 * rows * kept),
            math_cycles=sort,
            steps="reading, sorting and packing of tiles",
        )

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """A selection, whose numbers were never compared with recordings."""
        return described(DataMovement.describe(self, ends, spec))


def topk_cores(op: TopK, source: TensorSpec, spec: DeviceSpec) -> CoreRangeSet:
    """Cores that share the rows of tiles, row by row."""
    images, high, _ = tile_sides(source)
    return page_cores(prod((images, high)), spec.grid, row_wise=True, within=op.allowed)


def may_share(source: TensorSpec, count: int) -> bool:
    """Whether cores may share the rows of a tensor: wide rows, or few rows of a power of two."""
    images, high, wide = tile_sides(source)
    columns = wide * TILE
    low = columns < WIDE_COLUMNS and images * high > MOST_HIGH_TILES
    whole = SHARED_COLUMNS[0] <= columns < SHARED_COLUMNS[1] and not columns & columns - 1
    return whole and not low and div_up(count, TILE) <= MOST_SHARED_TILES


def split_of(source: TensorSpec, count: int, within: CoreRange, *, packed: bool) -> Split | None:
    """The split of rows over the cores of a rectangle; None if each core selects from whole rows.

    The number of cores doubles as long as each core has at least as many tiles as all cores together hand on.
    """
    if not may_share(source, count):
        return None
    wide, kept = tile_sides(source)[2], div_up(count, TILE)
    across, down = within.end.x - within.start.x, within.end.y - within.start.y - 1  # of the cores that may share a row
    best = None
    cores = 2
    while wide // cores >= LEAST_SHARED_TILES:
        rows = next((rows for rows in range(1, down + 1) if cores % rows == 0 and cores // rows <= across), None)
        if rows is not None:
            best = Split(first=within.start, columns=cores // rows, rows=rows, core_tiles=wide // cores, packed=packed)
        if wide < cores * cores * kept:
            break
        cores *= 2
    return best


def split_cores(split: Split) -> tuple[CoreRangeSet, CoreRangeSet]:
    """The cores that share a row, and the core that selects from their results."""
    x, y = split.first.x, split.first.y
    sharing = CoreRange(split.first, CoreCoord(x + split.columns - 1, y + split.rows - 1))
    last = CoreCoord(x, y + split.rows)
    return CoreRangeSet([sharing]), CoreRangeSet([CoreRange(last, last)])


def _split_buffers(op: TopK, split: Split, source: TensorSpec) -> tuple[CircularBuffer, ...]:
    """Incoming tiles and indices, the results of all cores, and the sorted tiles of both groups of cores."""
    sharing, last = split_cores(split)
    every = CoreRangeSet([*sharing.ranges, *last.ranges])
    found = split.cores * div_up(op.count, TILE)
    number = BFLOAT16 if source.data_format.is_block else source.data_format
    place = op.index_format
    sizes: tuple[tuple[str, int, DataFormat, CoreRangeSet], ...]
    if split.packed:
        kept = div_up(op.count, TILE)
        sizes = (
            ("found", found, UINT32, every),
            ("numbers", kept, number, last),
            ("result_places", BUFFERING, place, last),
            ("sorted", split.core_tiles, UINT32, sharing),
            ("best", BUFFERING, UINT32, sharing),
            ("result", BUFFERING, source.data_format, last),
            ("last", found, UINT32, last),
            ("last_places", kept, place, last),
        )
    else:
        sizes = (
            ("found", found, number, every),
            ("found_places", found, place, every),
            ("result_places", BUFFERING, place, every),
            ("sorted", split.core_tiles, number, sharing),
            ("sorted_places", split.core_tiles, place, sharing),
            ("best", BUFFERING, number, sharing),
            ("result", BUFFERING, source.data_format, last),
            ("last", found, number, last),
            ("last_places", found, place, last),
        )
    read = (("tiles", 2 * BUFFERING, source.data_format, every), ("places", 2 * BUFFERING, place, every))
    return tuple(tile_buffer(name, tiles, data_format, cores) for name, tiles, data_format, cores in (*read, *sizes))


def topk_buffers(op: TopK, source: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Tiles and indices: incoming, being sorted, the best so far, and the result."""
    if op.split is not None:
        return _split_buffers(op, op.split, source)
    cores, kept = topk_cores(op, source, spec), div_up(op.count, TILE)
    narrow = BFLOAT16 if source.data_format.is_block else source.data_format
    sorted_format = FLOAT32 if op.wide else narrow
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
