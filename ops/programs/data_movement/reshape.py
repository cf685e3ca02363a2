"""The operation that moves rows between pages, since they lie differently under another shape, and its buffers.

A reshape of tiles goes through an output tile row by row. A piece ends where a row of a face ends, in the input or in
the output; an input tile is fetched again whenever the piece before lay in another one. Both are counted over tiles
evenly spread through the output, so that a large tensor takes no longer to plan than a small one. Source: tt-metal
0.81.1 (data_movement/reshape_view), compared with recorded plans.
"""

from dataclasses import dataclass, replace
from math import ceil, lcm, prod
from typing import NamedTuple

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
    before, after = three_axes(source), three_axes(target)
    tiles = np.unique(np.linspace(0, map_tiles(after) - 1, COUNTED).astype(np.int64))
    elements = _elements(tiles, before, after)
    segments = _runs(elements.number, elements.row, elements.column // FACE, elements.line, elements.in_column // FACE)
    return TileMap(segments / len(tiles), _runs(elements.number, elements.in_tile) / len(tiles))


def three_axes(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """The shape with all but the last two axes put together."""
    padded = (1,) * (3 - len(shape)) + tuple(shape)
    return prod(padded[:-2]), padded[-2], padded[-1]


def map_tiles(shape: tuple[int, int, int]) -> int:
    """Output tiles, each of which has a page of the map."""
    return shape[0] * prod(div_up(side, TILE) for side in shape[1:])


class _Elements(NamedTuple):
    """Elements of some output tiles, tile by tile and row by row."""

    number: Integers  # Which of the tiles
    row: Integers  # In the output image
    column: Integers
    in_tile: Integers  # The input tile
    line: Integers  # The flat input row
    in_row: Integers  # In the input image
    in_column: Integers


def _elements(tiles: Integers, before: tuple[int, int, int], after: tuple[int, int, int]) -> _Elements:
    """The elements of output tiles, for the shapes of both sides as three axes."""
    down, across = div_up(after[1], TILE), div_up(after[2], TILE)
    plane, place = np.divmod(tiles, down * across)
    inside, shape = np.arange(TILE), (len(tiles), TILE, TILE)
    row = np.broadcast_to((TILE * (place // across))[:, None, None] + inside[:, None], shape)
    column = np.broadcast_to((TILE * (place % across))[:, None, None] + inside, shape)
    there = (row < after[1]) & (column < after[2])
    number = np.broadcast_to(np.arange(len(tiles))[:, None, None], shape)[there]
    row, column = row[there], column[there]
    line, in_column = np.divmod((plane[number] * after[1] + row) * after[2] + column, before[2])
    in_plane, in_row = np.divmod(line, before[1])
    in_tile = (in_plane * div_up(before[1], TILE) + in_row // TILE) * div_up(before[2], TILE) + in_column // TILE
    return _Elements(number, row, column, in_tile, line, in_row, in_column)


def _runs(*keys: Integers) -> int:
    """Runs of elements that agree in all keys."""
    return 1 + int(np.any([np.diff(key) != 0 for key in keys], axis=0).sum())


@dataclass(frozen=True, slots=True)
class Reshape(DataMovement):
    """The same numbers in the same order under another shape."""

    MEASURED = True

    shape: tuple[int, ...]  # Logical shape of the result

    def moved(self, values: Array) -> Array:
        """The same numbers under the other shape."""
        return values.reshape(self.shape)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Rows move between pages, because their places differ under another shape."""
        sides = sides_of(read, written, spec)
        return _reshaped_tiles(sides) if sides.from_tiles else _reshaped_sticks(sides, spec)


RESHAPE_KERNELS = 2  # that share the sticks of a core


def _reshaped_tiles(sides: Sides) -> Movement:
    """For each output tile its map and its input tiles, row by row, are waited for; then it is written."""
    counted = tile_map(sides.source.shape, sides.target.shape)
    tiles, fetched = sides.written.core_pages, 1 + counted.fetched
    all_pages = round(sides.written.all_pages * fetched)
    reads = replace(sides.read, access=Access.WAIT, core_pages=ceil(tiles * fetched), all_pages=all_pages)
    writes = replace(sides.written, access=Access.WAIT)
    return Movement(cores=sides.cores, reads=reads, writes=writes, segments=round(tiles * counted.segments))


def _reshaped_sticks(sides: Sides, spec: DeviceSpec) -> Movement:
    """The processors of a core read sticks, copy pieces (byte by byte where alignments differ) and write."""
    read, written, cores = sides.read, sides.written, sides.cores.num_cores()
    parts = min(hands(spec, RESHAPE_KERNELS) * cores, read.all_pages)
    share = div_up(read.all_pages, parts)
    together = read.all_bytes // lcm(read.page_bytes, written.page_bytes)  # ends of sticks of both sides
    aligned = all(pages.page_bytes % spec.l1.alignment_bytes == 0 for pages in (read, written))
    return Movement(
        cores=sides.cores,
        reads=replace(read, access=Access.WAIT, core_pages=share),
        writes=replace(written, access=Access.WAIT, core_pages=div_up(written.all_pages, parts)),
        segments=div_up(read.all_pages + written.all_pages - together, parts),
        stores=0 if aligned else share * read.page_bytes,
    )


WORD_BYTES = 16  # pages of whole words need no second place
READ_BYTES, READ_ROOM_BYTES = 64, 128  # a row is read from such an address on, with room behind
WRITE_ROOM_BYTES = 80  # behind a row that is written
READS = 2  # places that rows are read to
WRITES = 8  # places that rows are put together in, if L1 has room
SEGMENT_BYTES = 16  # of the map, for each run of neighbors
COUNTED_TILES = 1 << 10  # output tiles whose elements are looked at together
SEGMENT_ALIGNMENT = 16  # alignment of L1 in bytes, which the real library takes as a number of segments


def stick_buffers(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Scratchpads for one or both processors of the program that moves rows: rows as read, and rows as written.

    Both processors work where pages of one side divide those of the other and can be written unchanged.
    """
    read, written = row_bytes(source, source.shape[-1]), row_bytes(target, target.shape[-1])
    cores = first_cores(spec.grid.cores, spec.grid.cols, spec.grid.rows)
    place = (read - 1) // READ_BYTES * READ_BYTES + READ_ROOM_BYTES
    result = (written - 1) // READ_BYTES * READ_BYTES + WRITE_ROOM_BYTES
    in_dram = target.memory_config.buffer_type is BufferType.DRAM
    divides = read % written == 0 or written % read == 0
    copies = 2 if divides and (written % WORD_BYTES == 0 or not in_dram) else 1
    slots = 1
    if read % WORD_BYTES or written % WORD_BYTES:  # what else lies in L1 than both tensors, the plan does not know
        in_l1 = [
            tensor_buffer
            for tensor_buffer in (source.buffer(spec), target.buffer(spec))
            if tensor_buffer.buffer_type is BufferType.L1
        ]
        room = spec.l1.usable_bytes - sum(tensor_buffer.bank_bytes for tensor_buffer in in_l1)
        slots = max(1, min(WRITES, (room - copies * READS * place) // (copies * result)))
    sizes = {"read": READS * place, "made": slots * result}
    return tuple(
        scratchpad(f"{name}_{copy}", size, target.data_format, cores)
        for copy in range(copies)
        for name, size in sizes.items()
    )


def tile_buffers(source: TensorSpec, target: TensorSpec, segments: int, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program that moves rows of tiles: a page of the map, an input and an output tile."""
    cores = page_cores(volume_tiles(target), spec.grid)
    return (
        buffer("map", segments * SEGMENT_BYTES, target.data_format, cores),
        buffer("tile", source.data_format.tile_bytes, source.data_format, cores),
        scratchpad("made", target.data_format.tile_bytes, target.data_format, cores),
    )


def segments_per_page(before: tuple[int, int, int], after: tuple[int, int, int]) -> int:
    """Segments that the row map reserves for each output tile, for the shapes of both sides as three axes.

    A segment is a run of elements that are neighbors in an input tile and in an output tile alike. Each output tile
    has room for as many input tiles as it reads times the most segments of one of them; the largest product counts
    for all, and is aligned by adding its own remainder (as the real library does, though that need not align it).
    """
    if before[2] != after[2]:
        tiles = map_tiles(after)
        parts = (np.arange(at, min(at + COUNTED_TILES, tiles)) for at in range(0, tiles, COUNTED_TILES))
        most = max(_most_of_tiles(part, before, after) for part in parts)
    else:
        most = _most_of_rows(before, after)
    return most + most % SEGMENT_ALIGNMENT


def _most_of_tiles(tiles: Integers, before: tuple[int, int, int], after: tuple[int, int, int]) -> int:
    """The most segments of any output tile, when rows change their length."""
    elements = _elements(tiles, before, after)
    begins = np.ones(len(elements.number), np.bool_)
    keys = (elements.number, elements.in_tile)
    steps = [
        np.diff(_stored(*place)) for place in ((elements.row, elements.column), (elements.in_row, elements.in_column))
    ]
    begins[1:] = np.any([*(np.diff(key) != 0 for key in keys), *(step != 1 for step in steps)], axis=0)
    pairs, counts = np.unique(np.stack([key[begins] for key in keys]), axis=1, return_counts=True)
    firsts = np.flatnonzero(np.diff(pairs[0], prepend=-1))
    most: Integers = np.maximum.reduceat(counts, firsts) * np.diff(np.append(firsts, len(counts)))
    return int(most.max())


def _stored(row: Integers, column: Integers) -> Integers:
    """Places of elements in a tile as it is stored, face by face."""
    down, in_row = np.divmod(row % TILE, FACE)
    across, in_column = np.divmod(column % TILE, FACE)
    return ((down * 2 + across) * FACE + in_row) * FACE + in_column


def _most_of_rows(before: tuple[int, int, int], after: tuple[int, int, int]) -> int:
    """The most segments among output tiles whose rows stay as long: only where rows lie counts.

    Input and output tiles meet again as from the start after some rows; what is left over is part of such a run.
    """
    rows = after[0] * after[1]
    periods = [height if height < rows and height % TILE else TILE for height in (before[1], after[1])]
    numbers = np.arange(min(rows, lcm(*periods)))
    page_out, in_tile_out = _tile_rows(numbers, after[1])
    page_in, in_tile_in = _tile_rows(numbers, before[1])
    joined = np.zeros(len(numbers), np.bool_)
    joined[1:] = (page_out[1:] == page_out[:-1]) & (page_in[1:] == page_in[:-1])
    pairs = np.flatnonzero(~joined)  # first rows of pairs of tiles
    pairs_of_page = np.bincount(page_out[pairs])
    first_pairs = np.cumsum(pairs_of_page) - pairs_of_page
    most = 0
    for width in {min(after[2], TILE), (after[2] - 1) % TILE + 1}:
        segments = np.add.reduceat(_segments(width, joined, in_tile_in, in_tile_out), pairs)
        most = max(most, int((np.maximum.reduceat(segments, first_pairs) * pairs_of_page).max()))
    return most


def _segments(width: int, joined: Array, in_tile_in: Array, in_tile_out: Array) -> Array:
    """New segments that each row begins, in a tile with ``width`` columns in use.

    A row crosses two faces when it is wider than one. The end of a row and the start of the next touch in memory only
    if rows fill whole faces: one face wide, within a face; two faces wide, from the end of the upper right face to
    the lower left one.
    """
    per_row = np.full(len(joined), 2 if width > FACE else 1)
    if width == FACE:
        per_row -= joined & (in_tile_in % FACE != 0) & (in_tile_out % FACE != 0)
    elif width == TILE:
        per_row -= joined & (in_tile_in == FACE) & (in_tile_out == FACE)
    return per_row


def _tile_rows(rows: Array, height: int) -> tuple[Array, Array]:
    """Row of tiles, and row within it, of flat rows of a tensor whose second last axis is ``height``."""
    image, row = np.divmod(rows, height)
    return image * div_up(height, TILE) + row // TILE, row % TILE
