"""The operation that moves rows between pages, since they lie differently under another shape, and its buffers.

A reshape of tiles goes through an output tile row by row. A piece ends where a row of a face ends, in the input or in
the output; an input tile is fetched again whenever the piece before lay in another one. Both are counted over tiles
evenly spread through the output, so that a large tensor takes no longer to plan than a small one. Source: tt-metal
0.81.1 (data_movement/reshape_view), compared with recorded plans.
"""

from dataclasses import dataclass, replace
from math import ceil, lcm, prod

import numpy as np

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import FACE, TILE, BufferType
from device.numbers.formats import Array, Integers, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.time.network import hands
from ops.programs.buffer_shapes import buffer, page_cores, row_bytes, scratchpad, volume_tiles
from ops.programs.data_movement.movement import Access, Movement, Sides, sides_of
from ops.programs.data_movement.movement_cycles import DataMovement

COUNTED = 16  # output tiles at most


@dataclass(frozen=True, slots=True)
class TileMap:
    """Averages over output tiles."""

    segments: float  # Pieces of rows of an output tile
    fetched: float  # Input tiles that are fetched for it


def tile_map(source: tuple[int, ...], target: tuple[int, ...]) -> TileMap:
    """Pieces and input tiles of an output tile, for the logical shapes of both sides (the same volume)."""
    (in_rows, in_cols), (rows, cols) = ((1, *shape)[-2:] for shape in (source, target))  # a vector is one row
    number, plane, row, col = _elements(prod(target[:-2]), rows, cols)
    line, in_col = np.divmod((plane * rows + row) * cols + col, in_cols)
    in_plane, in_row = np.divmod(line, in_rows)
    in_tile = (in_plane * div_up(in_rows, TILE) + in_row // TILE) * div_up(in_cols, TILE) + in_col // TILE
    tiles = int(number[-1]) + 1
    segments = _runs(number, row, col // FACE, line, in_col // FACE)
    return TileMap(segments / tiles, _runs(number, in_tile) / tiles)


def _elements(planes: int, rows: int, cols: int) -> tuple[Integers, Integers, Integers, Integers]:
    """Elements of the counted tiles, tile by tile and row by row: number of the tile, plane, row and column."""
    down, across = div_up(rows, TILE), div_up(cols, TILE)
    tiles = np.unique(np.linspace(0, planes * down * across - 1, COUNTED).astype(np.int64))
    plane, place = np.divmod(tiles, down * across)
    inside = np.arange(TILE)
    row = (TILE * (place // across))[:, None, None] + inside[:, None]
    col = (TILE * (place % across))[:, None, None] + inside
    shape = (len(tiles), TILE, TILE)
    there = np.broadcast_to((row < rows) & (col < cols), shape)
    number = np.arange(len(tiles))[:, None, None]
    found = [np.broadcast_to(one, shape)[there] for one in (number, plane[:, None, None], row, col)]
    return found[0], found[1], found[2], found[3]


def _runs(*keys: Integers) -> int:
    """Runs of elements that agree in all keys."""
    changed = np.zeros(len(keys[0]) - 1, np.bool_)
    for key in keys:
        changed |= np.diff(key) != 0
    return 1 + int(changed.sum())


@dataclass(frozen=True, slots=True)
class Reshape(DataMovement):
    """The same numbers in the same order under another shape."""

    shape: tuple[int, ...]  # Logical shape of the result

    @property
    def measured_as(self) -> str:
        """The operation's own name."""
        return "Reshape"

    def moved(self, values: Array) -> Array:
        """The same numbers under the other shape."""
        return values.reshape(self.shape)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Rows move between pages."""
        return reshape_movement(read, written, spec)


RESHAPE_KERNELS = 2  # that share the sticks of a core


def reshape_movement(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Movement:
    """A program that moves rows between pages, since they lie differently under another shape."""
    ends = sides_of(source, target, spec)
    return _reshaped_tiles(ends) if ends.from_tiles else _reshaped_sticks(ends, spec)


def _reshaped_tiles(ends: Sides) -> Movement:
    """For each output tile its map and its input tiles, row by row, are waited for; then it is written."""
    counted = tile_map(ends.source.shape, ends.target.shape)
    tiles, fetched = ends.written.core_pages, 1 + counted.fetched
    all_pages = round(ends.written.all_pages * fetched)
    reads = replace(ends.read, access=Access.WAIT, core_pages=ceil(tiles * fetched), all_pages=all_pages)
    writes = replace(ends.written, access=Access.WAIT)
    return Movement(cores=ends.cores, reads=reads, writes=writes, segments=round(tiles * counted.segments))


def _reshaped_sticks(ends: Sides, spec: DeviceSpec) -> Movement:
    """The processors of a core read sticks, copy pieces, byte by byte where they do not lie alike, and write."""
    read, written, cores = ends.read, ends.written, ends.cores.num_cores()
    parts = min(hands(spec, RESHAPE_KERNELS) * cores, read.all_pages)
    share = div_up(read.all_pages, parts)
    together = read.all_bytes // lcm(read.page_bytes, written.page_bytes)  # ends of sticks of both sides
    alike = all(pages.page_bytes % spec.l1.alignment_bytes == 0 for pages in (read, written))
    return Movement(
        cores=ends.cores,
        reads=replace(read, access=Access.WAIT, core_pages=share),
        writes=replace(written, access=Access.WAIT, core_pages=div_up(written.all_pages, parts)),
        segments=div_up(read.all_pages + written.all_pages - together, parts),
        stores=0 if alike else share * read.page_bytes,
    )


WORD_BYTES = 16  # pages of whole words need no second place
READ_BYTES, READ_ROOM_BYTES = 64, 128  # a row is read from such an address on, with room behind
WRITE_ROOM_BYTES = 80  # behind a row that is written
READS = 2  # places that rows are read to
WRITES = 8  # places that rows are put together in, if L1 has room
SEGMENT_BYTES = 16  # of the map, for each run of neighbors
COUNTED_TILES = 1 << 10  # output tiles whose elements are looked at together


def stick_buffers(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Scratchpads of the program that moves rows, of one processor or both: rows as they are read, and as they become.

    Both work where pages of one side divide those of the other and can be written as they are.
    """
    read, written = (row_bytes(one, one.shape[-1]) for one in (source, made))
    cores = first_cores(spec.grid.cores, spec.grid.cols, spec.grid.rows)
    place = (read - 1) // READ_BYTES * READ_BYTES + READ_ROOM_BYTES
    result = (written - 1) // READ_BYTES * READ_BYTES + WRITE_ROOM_BYTES
    whole = read % WORD_BYTES == 0 and written % WORD_BYTES == 0
    in_dram = made.memory_config.buffer_type is BufferType.DRAM
    divides = read % written == 0 or written % read == 0
    copies = 2 if divides and (written % WORD_BYTES == 0 or not in_dram) else 1
    slots = 1
    if not whole:
        slots = max(1, min(WRITES, (_room_bytes(source, made, spec) - copies * READS * place) // (copies * result)))
    sizes = {"read": READS * place, "made": slots * result}
    return tuple(
        scratchpad(f"{name}_{copy}", size, made.data_format, cores)
        for copy in range(copies)
        for name, size in sizes.items()
    )


def _room_bytes(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> int:
    """Bytes of a core's L1 that neither tensor takes; what else lies there the plan does not know."""
    held = [one.buffer(spec) for one in (source, made)]
    return spec.l1.usable_bytes - sum(one.bank_bytes for one in held if one.buffer_type is BufferType.L1)


def tile_buffers(source: TensorSpec, made: TensorSpec, segments: int, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program that moves rows of tiles: a page of the map, a tile, and one put together."""
    cores = page_cores(volume_tiles(made), spec.grid)
    return (
        buffer("map", segments * SEGMENT_BYTES, made.data_format, cores),
        buffer("tile", source.data_format.tile_bytes, source.data_format, cores),
        scratchpad("made", made.data_format.tile_bytes, made.data_format, cores),
    )


def most_segments(before: tuple[int, int, int], after: tuple[int, int, int]) -> int:
    """Segments that the map of a reshape to rows of another length reserves for an output tile, before alignment.

    A segment is a run of elements that are neighbors in an input tile and in an output tile alike, as they are stored,
    face by face. Each output tile takes as many input tiles as it reads times the most segments of one of them.

    Args:
        before: Input shape as three axes.
        after: Output shape as three axes.
    """
    down, across = div_up(after[1], TILE), div_up(after[2], TILE)
    tiles = after[0] * down * across
    return max(
        _most_of(np.arange(first, min(first + COUNTED_TILES, tiles)), before, after)
        for first in range(0, tiles, COUNTED_TILES)
    )


def _most_of(tiles: Integers, before: tuple[int, int, int], after: tuple[int, int, int]) -> int:
    """The most segments among some output tiles."""
    down, across = div_up(after[1], TILE), div_up(after[2], TILE)
    plane, place = np.divmod(tiles, down * across)
    inside = np.arange(TILE)
    shape = (len(tiles), TILE, TILE)
    row = np.broadcast_to((TILE * (place // across))[:, None, None] + inside[:, None], shape)
    column = np.broadcast_to((TILE * (place % across))[:, None, None] + inside, shape)
    there = (row < after[1]) & (column < after[2])
    number = np.broadcast_to(np.arange(len(tiles))[:, None, None], shape)[there]
    row, column = row[there], column[there]
    flat = (plane[number] * after[1] + row) * after[2] + column
    line, in_column = np.divmod(flat, before[2])
    in_plane, in_row = np.divmod(line, before[1])
    in_tile = (in_plane * div_up(before[1], TILE) + in_row // TILE) * div_up(before[2], TILE) + in_column // TILE
    begins = np.ones(len(flat), np.bool_)
    same = (number[1:] == number[:-1]) & (in_tile[1:] == in_tile[:-1])
    begins[1:] = ~(same & (np.diff(_stored(row, column)) == 1) & (np.diff(_stored(in_row, in_column)) == 1))
    pairs, counts = np.unique(np.stack([number[begins], in_tile[begins]]), axis=1, return_counts=True)
    firsts = np.flatnonzero(np.diff(pairs[0], prepend=-1))
    most: Integers = np.maximum.reduceat(counts, firsts) * np.diff(np.append(firsts, len(counts)))
    return int(most.max())


def _stored(row: Integers, column: Integers) -> Integers:
    """Places of elements in a tile as it is stored, face by face."""
    down, in_row = np.divmod(row % TILE, FACE)
    across, in_column = np.divmod(column % TILE, FACE)
    return ((down * 2 + across) * FACE + in_row) * FACE + in_column


def map_tiles(shape: tuple[int, int, int]) -> int:
    """Output tiles, each of which has a page of the map."""
    return shape[0] * prod(div_up(side, TILE) for side in shape[1:])
