"""Reshapes on the device: as a view, or by moving every row between pages; the program and its map.

A tile has rows of only one image row, so an image whose width is not a multiple of 32 contains padding rows, and
flattening it moves rows between tiles. Block floats are converted to bfloat16 before and back afterwards. A sharded
tensor is redistributed: tiles by the same program, rows and block floats through an interleaved tensor. The program
builds an output tile row by row. A piece ends where a row of a face ends, in the input or in the output; an input tile
is fetched again if the previous piece was in another tile. If the row length changes, both are counted on a sample of
tiles spread evenly over the output, so planning a large tensor takes no longer than a small one. Source: tt-metal
0.81.1 (ttnn.reshape, data_movement/reshape_view), compared with recorded plans.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import ceil, lcm, prod
from typing import NamedTuple, TypeAlias

import numpy as np

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    FACE,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16, FLOAT32, INT32, UINT32, Array, Integers, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.time.network import hands
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.buffer_shapes import (
    buffer,
    page_cores,
    require_cores,
    row_bytes,
    scratchpad,
    shard_counts,
    volume_tiles,
)
from ops.programs.data_movement import placement
from ops.programs.data_movement.conversions import typecast_by
from ops.programs.data_movement.copy import Conversion
from ops.programs.data_movement.movement import Access, DataMovement, Movement, Sides, copy_pages, sides_of
from ops.programs.data_movement.pad import FillPad, fill_buffers

Shape: TypeAlias = tuple[int, ...]
Axes: TypeAlias = tuple[int, int, int]  # images, rows, columns

RESHAPE_KERNELS = 2  # that share the sticks of a core
COUNTED = 16  # output tiles at most


@dataclass(frozen=True, slots=True)
class Reshape(DataMovement):
    """A reshape of a tensor."""

    shape: Shape  # Logical shape of the result
    cores: CoreRangeSet | None = None  # That may be used; None for all

    def moved(self, values: Array) -> Array:
        """The reshaped values."""
        return values.reshape(self.shape)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Rows move between pages, because their positions change with the shape."""
        sides = sides_of(read, written, spec, within=self.cores)
        return _reshaped_tiles(sides) if sides.read.tiles else _reshaped_sticks(sides, spec)


@dataclass(frozen=True, slots=True)
class ReshapeOnDevice(Reshape):
    """A reshape by an older program: one core moves tiles, all cores move rows."""

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Pages are read, and written while the next ones arrive."""
        return copy_pages(sides_of(read, written, spec, on_one_core=read.layout is Layout.TILE))


def _reshaped_tiles(sides: Sides) -> Movement:
    """For each output tile its map and its input tiles, row by row, are waited for; then it is written."""
    shapes = sides.source.shape, sides.target.shape
    segments, fetched = tile_map(*shapes)
    tiles, all_tiles = sides.written.core_pages, sides.written.all_pages
    map_bytes = all_tiles * segments_per_page(*map(three_axes, shapes)) * SEGMENT_WORDS * SEGMENT_WORD_BYTES
    reads = replace(
        sides.read,
        access=Access.WAIT,
        core_pages=ceil(tiles * (1 + fetched)),
        all_pages=round(all_tiles * (1 + fetched)),
        uneven_bytes=round(all_tiles * fetched) * sides.read.page_bytes + map_bytes,
    )
    writes = replace(sides.written, access=Access.WAIT)
    return Movement(cores=sides.cores, reads=reads, writes=writes, segments=round(tiles * segments))


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


def tile_map(source: Shape, target: Shape) -> tuple[float, float]:
    """Pieces of rows of an output tile, and input tiles fetched for it, in the mean; for the logical shapes."""
    before, after = three_axes(source), three_axes(target)
    if before[2] == after[2]:
        begun, read = (_first_lines(axes) for axes in (after, before))
        rows, across = after[0] * after[1], div_up(after[2], TILE)
        return rows * div_up(after[2], FACE) / (len(begun) * across), len(np.union1d(begun, read)) / len(begun)
    tiles = np.unique(np.linspace(0, map_tiles(after) - 1, COUNTED).astype(np.int64))
    # A row of a face comes from a row of a face where rows stay as long, or are whole faces: its first element does
    whole = before[2] == after[2] or before[2] % FACE == after[2] % FACE == 0
    elements = _elements(tiles, before, after, step=FACE if whole else 1)
    faces = elements.column // FACE, elements.in_column // FACE
    segments = _runs(elements.number, elements.row, elements.line, *faces)
    return segments / len(tiles), _runs(elements.number, elements.in_tile) / len(tiles)


def _first_lines(shape: Axes) -> Integers:
    """The flat rows with which rows of tiles begin."""
    lines: Integers = np.add.outer(np.arange(shape[0]) * shape[1], np.arange(0, shape[1], TILE)).ravel()
    return lines


def three_axes(shape: Shape) -> Axes:
    """The shape with all but the last two axes put together."""
    padded = (1,) * (3 - len(shape)) + tuple(shape)
    return prod(padded[:-2]), padded[-2], padded[-1]


def map_tiles(shape: Axes) -> int:
    """Number of output tiles; each has a page of the map."""
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


def _elements(tiles: Integers, before: Axes, after: Axes, *, step: int = 1) -> _Elements:
    """The elements of output tiles, or a sample of each row, for the shapes of both sides."""
    down, across = div_up(after[1], TILE), div_up(after[2], TILE)
    number, row, column = np.ix_(np.arange(len(tiles)), np.arange(TILE), np.arange(0, TILE, step))
    plane, place = np.divmod(tiles[number], down * across)
    row, column = row + TILE * (place // across), column + TILE * (place % across)
    inside = (row < after[1]) & (column < after[2])
    number, plane, row, column = (
        np.broadcast_to(index, inside.shape)[inside] for index in (number, plane, row, column)
    )
    line, in_column = np.divmod((plane * after[1] + row) * after[2] + column, before[2])
    in_plane, in_row = np.divmod(line, before[1])
    in_tile = (in_plane * div_up(before[1], TILE) + in_row // TILE) * div_up(before[2], TILE) + in_column // TILE
    return _Elements(number, row, column, in_tile, line, in_row, in_column)


def _runs(*keys: Integers) -> int:
    """Runs of elements that agree in all keys."""
    return 1 + int(np.any([np.diff(key) != 0 for key in keys], axis=0).sum())


SEGMENT_WORDS = (
    4  # of the map, for each run of neighbors: input page, offset in it, offset in the output page, elements
)
SEGMENT_WORD_BYTES = 4
SEGMENT_ALIGNMENT = 16  # alignment of L1 in bytes, which the real library takes as a number of segments
MAPS = 256  # that are kept: planning a reshape and counting its bytes ask for the same map
COUNTED_TILES = 1 << 10  # output tiles whose elements are looked at together


@lru_cache(MAPS)
def segments_per_page(before: Axes, after: Axes) -> int:
    """Segments that the row map reserves for each output tile, for the shapes of both sides.

    A segment is a run of elements that are contiguous both in an input tile and in an output tile. Each output tile
    has room for as many input tiles as it reads times the most segments of one of them; the largest product counts
    for all, and is aligned by adding its own remainder (as the real library does, though that need not align it).
    """
    if before[2] == after[2]:
        most = _most_of_rows(before, after)
    else:
        tiles = map_tiles(after)
        parts = (np.arange(at, min(at + COUNTED_TILES, tiles)) for at in range(0, tiles, COUNTED_TILES))
        most = max(_most_of_elements(_elements(part, before, after)) for part in parts)
    return most + most % SEGMENT_ALIGNMENT


def _most_of_elements(elements: _Elements) -> int:
    """The most segments of any output tile, when rows change their length."""
    places = (elements.row, elements.column), (elements.in_row, elements.in_column)
    joined = [np.diff(_stored(*place)) == 1 for place in places]
    joined += [np.diff(key) == 0 for key in (elements.number, elements.in_tile)]
    begins = np.append(True, ~np.all(joined, axis=0))
    in_tiles = int(elements.in_tile.max()) + 1
    pairs, counts = np.unique(elements.number[begins] * in_tiles + elements.in_tile[begins], return_counts=True)
    firsts = np.flatnonzero(np.diff(pairs // in_tiles, prepend=-1))
    most: Integers = np.maximum.reduceat(counts, firsts) * np.diff(np.append(firsts, len(counts)))
    return int(most.max())


def _most_of_rows(before: Axes, after: Axes) -> int:
    """The most segments of an output tile if rows keep their length: only the positions of rows count.

    The pattern of input and output tiles repeats after some rows; the remainder is part of such a period. A row crosses
    two faces if it is wider than one. The end of a row and the start of the next row are contiguous in memory only if
    rows fill whole faces: one face wide, within a face; two faces wide, from the upper right to the lower left face.
    """
    rows = after[0] * after[1]
    periods = [height if height < rows and height % TILE else TILE for height in (before[1], after[1])]
    image_rows = [np.divmod(np.arange(min(rows, lcm(*periods))), height) for height in (before[1], after[1])]
    down_in, down_out = (row % TILE for _, row in image_rows)
    page_in, page_out = (
        image * div_up(height, TILE) + row // TILE
        for (image, row), height in zip(image_rows, (before[1], after[1]), strict=True)
    )
    joined = np.append(False, (np.diff(page_in) == 0) & (np.diff(page_out) == 0))
    touching = {FACE: (down_in % FACE != 0) & (down_out % FACE != 0), TILE: (down_in == FACE) & (down_out == FACE)}
    pairs = np.flatnonzero(~joined)  # first rows of pairs of tiles
    pairs_of_page = np.bincount(page_out[pairs])
    first_pairs, most = np.cumsum(pairs_of_page) - pairs_of_page, 0
    for width in {min(after[2], TILE), (after[2] - 1) % TILE + 1}:
        begun = (2 if width > FACE else 1) - (joined & touching.get(width, False))
        segments = np.add.reduceat(begun, pairs)
        most = max(most, int((np.maximum.reduceat(segments, first_pairs) * pairs_of_page).max()))
    return most


def _stored(row: Integers, column: Integers) -> Integers:
    """Places of elements in a tile as it is stored, face by face."""
    down, in_row = np.divmod(row % TILE, FACE)
    across, in_column = np.divmod(column % TILE, FACE)
    return ((down * 2 + across) * FACE + in_row) * FACE + in_column


WORD_BYTES = 16  # pages of whole words need no second place
READ_BYTES, READ_ROOM_BYTES = 64, 128  # alignment of the start of a read row, and room after it
WRITE_ROOM_BYTES = 80  # after a row that is written
READS = 2  # places that rows are read to
WRITES = 8  # places that rows are put together in, if L1 has room


def stick_buffers(
    source: TensorSpec, target: TensorSpec, spec: DeviceSpec, within: CoreRangeSet | None = None
) -> tuple[CircularBuffer, ...]:
    """Scratchpads for one or both processors of the program that moves rows: rows as read, and rows as written.

    Both processors work if pages of one side divide pages of the other side and can be written unchanged.
    """
    read, written = (row_bytes(tensor, prod(tensor.shape[-1:])) for tensor in (source, target))
    cores = within or first_cores(spec.grid.cores, spec.grid.cols, spec.grid.rows)
    place = (read - 1) // READ_BYTES * READ_BYTES + READ_ROOM_BYTES
    result = (written - 1) // READ_BYTES * READ_BYTES + WRITE_ROOM_BYTES
    in_dram = target.memory_config.buffer_type is BufferType.DRAM
    divides = read % written == 0 or written % read == 0
    copies = 2 if divides and (written % WORD_BYTES == 0 or not in_dram) else 1
    slots = 1
    if read % WORD_BYTES or written % WORD_BYTES:  # the plan does not know other tensors in L1
        both = source.buffer(spec), target.buffer(spec)
        taken = sum(tensor.bank_bytes for tensor in both if tensor.buffer_type is BufferType.L1)
        room = spec.l1.usable_bytes - taken
        slots = max(1, min(WRITES, (room - copies * READS * place) // (copies * result)))
    sizes = {"read": READS * place, "made": slots * result}
    return tuple(
        scratchpad(f"{name}_{copy}", size, target.data_format, cores)
        for copy in range(copies)
        for name, size in sizes.items()
    )


def tile_buffers(
    source: TensorSpec, target: TensorSpec, segments: int, spec: DeviceSpec, within: CoreRangeSet | None = None
) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program that moves rows of tiles: a page of the map, an input and an output tile."""
    cores = page_cores(volume_tiles(target), spec.grid, within=within)
    return (
        buffer("map", segments * SEGMENT_WORDS * SEGMENT_WORD_BYTES, target.data_format, cores),
        buffer("tile", source.data_format.tile_bytes, source.data_format, cores),
        scratchpad("made", target.data_format.tile_bytes, target.data_format, cores),
    )


BLOCK_ROW_BYTES = 64  # a row of a BLOCK shard is whole multiples of this
MOVED_FORMATS = (BFLOAT16, FLOAT32, INT32, UINT32)  # of tensors whose rows are moved


def resharded_place(spec: TensorSpec, before: MemoryConfig) -> MemoryConfig:
    """The memory of a reshaped tensor that was sharded in `before`.

    HEIGHT and WIDTH shards stay on their cores and share the rows (the columns) evenly, rounded up. BLOCK shards keep
    the most rows and columns of cores, from the first one, that split the tensor into equal aligned parts. A grid that
    is not a rectangle makes the result interleaved. The library treats a single HEIGHT shard with all rows as a WIDTH
    shard: it compares the height first.
    """
    shards, scheme = before.shard_spec, before.memory_layout
    apart = MemoryConfig(buffer_type=before.buffer_type)
    if shards is None or shards.grid.bounding_box().num_cores() != shards.num_cores():
        return apart
    (rows, cols), (down, across), grid = spec.matrix, shard_counts(scheme, shards), shards.grid
    by_blocks, row_unit, column_unit = scheme is TensorMemoryLayout.BLOCK_SHARDED, TILE, TILE
    if spec.layout is Layout.ROW_MAJOR:
        row_unit, column_unit = 1, BLOCK_ROW_BYTES // (spec.data_format.element_bytes or 1) if by_blocks else 1
    if by_blocks:
        down, across = _equal_parts(rows, down, row_unit), _equal_parts(cols, across, column_unit)
        if not down or not across:
            return apart
        start, by_rows = grid.bounding_box().start, shards.orientation is ShardOrientation.ROW_MAJOR
        x, y = (across, down) if by_rows else (down, across)
        grid = CoreRangeSet(CoreRange(start, CoreCoord(start.x + x - 1, start.y + y - 1)))
    shape = (round_up(div_up(rows, down), row_unit), round_up(div_up(cols, across), column_unit))
    if scheme is TensorMemoryLayout.HEIGHT_SHARDED and shape[0] == rows:
        scheme = TensorMemoryLayout.WIDTH_SHARDED
    return MemoryConfig(scheme, before.buffer_type, ShardSpec(grid, shape, shards.orientation))


def _equal_parts(length: int, most: int, unit: int) -> int:
    """The largest number of equal parts of whole units; 0 if there are none."""
    return next((parts for parts in range(most, 0, -1) if length % (parts * unit) == 0), 0)


def is_view(spec: TensorSpec, shape: Shape) -> bool:
    """Whether a view can give the tensor this ``shape``."""
    before, after = three_axes(spec.shape), three_axes(shape)
    if before[-1] != after[-1]:
        return False
    whole_tiles = before[-2] % TILE == 0 and after[-2] % TILE == 0
    return spec.layout is Layout.ROW_MAJOR or before[-2] == after[-2] or whole_tiles


def without_shards(place: MemoryConfig) -> MemoryConfig:
    """The same memory, interleaved."""
    return MemoryConfig(buffer_type=place.buffer_type)


def memory_after(spec: TensorSpec, shape: Shape) -> MemoryConfig:
    """Where `reshaped` leaves a tensor under another shape of the same volume."""
    place = spec.memory_config
    if is_view(spec, shape) or not place.is_sharded():
        return place
    return resharded_place(spec.changed(shape=shape, memory_config=without_shards(place)), place)


def reshaped(builder: PlanBuilder, source: PlanTensor, shape: Shape, name: str) -> PlanTensor:
    """The tensor of a convolution under another shape of the same volume; the source stays allocated.

    A view keeps the source's name and takes no step; a new buffer is called `name`, and its intermediates start with
    it. An ArgumentError refuses another volume.
    """
    spec = source.spec
    if prod(shape) != spec.volume:
        raise ArgumentError(
            "Attempting to reshape between two shapes with different volumes\n"
            f"input_tensor: shape {list(spec.shape)} has {spec.volume} elements, {list(shape)} has {prod(shape)}; "
            "batch_size, input_height, input_width and in_channels must describe the tensor"
        )
    if is_view(spec, shape):
        same = tuple(shape) == spec.shape
        return PlanTensor(source.name, spec if same else spec.changed(shape=shape))
    return RowMover(builder, source, shape, spec.memory_config, name).moved()


def rows_in_shards(
    builder: PlanBuilder, source: PlanTensor, config: MemoryConfig | None, name: str, *, deallocate: bool
) -> PlanTensor:
    """An input on the device, flattened to rows of channels, in the shards of `config`; None leaves its shards alone.

    With `deallocate` (Conv2dConfig.deallocate_activation) an input in L1 is released once copied, and the copy moved
    up.
    """
    rows = reshaped(builder, source, placement.flattened(source.spec.shape), f"{name}.rows")
    if config is None:
        return rows
    copy = placement.to_shards(builder, rows, config, name)
    placement.replace_input(builder, source, rows, copy, deallocate=deallocate)
    return copy


class RowMover:
    """Reshapes a tensor by moving its rows, as a convolution does; the source stays allocated."""

    def __init__(
        self,
        builder: PlanBuilder,
        source: PlanTensor,
        shape: Shape,
        where: MemoryConfig,
        name: str,
        cores: CoreRangeSet | None = None,
    ) -> None:
        """Prepares the move of ``source`` to the memory ``where``, whose shards follow from the shape, by ``cores``."""
        self.cores = cores
        self.builder, self.source, self.shape, self.where, self.name = builder, source, shape, where, name

    @property
    def wide_name(self) -> str:
        """The name of block floats while they are bfloat16."""
        return f"{self.name}.bfloat16"

    @cached_property
    def place(self) -> MemoryConfig:
        """The memory of the result; the library computes it when it is needed, and may fail to."""
        if not self.where.is_sharded():
            return self.where
        spec = self.source.spec
        return self.sharded_place(spec.changed(shape=self.shape, memory_config=without_shards(self.where)))

    def sharded_place(self, flat: TensorSpec) -> MemoryConfig:
        """The memory of a sharded result without a shard spec."""
        return resharded_place(flat, self.where)

    def gathered(self) -> PlanTensor:
        """The source without shards."""
        place = without_shards(self.source.spec.memory_config)
        return placement.to_interleaved(self.builder, self.source, place, f"{self.name}.interleaved")

    def dealt(self, tensor: PlanTensor) -> PlanTensor:
        """A tensor copied to the shards of the result."""
        result, name = tensor.spec.changed(memory_config=self.place), self.name
        return placement.converted(self.builder, Conversion.INTERLEAVED_TO_SHARDED, tensor, result, name)

    def filled(self, tensor: PlanTensor) -> PlanTensor:
        """Tiles with zeros in their padding, if they have padding, since padding shares exponents with values."""
        buffers = fill_buffers(tensor.spec, self.builder.device_spec)
        self.builder.run("FillPadDeviceOperation", FillPad(), [tensor], buffers=buffers, dataflow=True)
        return tensor

    def filled_tiles(self, tensor: PlanTensor) -> PlanTensor:
        """Tiles that are not block floats, with the filling of their padding."""
        return tensor

    def moved(self) -> PlanTensor:
        """The result in its memory; intermediates are freed."""
        spec = self.source.spec
        gathers, rows = spec.memory_config.is_sharded(), spec.layout is Layout.ROW_MAJOR
        if not rows:
            gathers = gathers and self.where.is_sharded() and (spec.data_format.is_block or not self.place.is_sharded())
        if gathers and not self.source.in_l1:
            raise DeviceError(placement.GATHERED_IN_DRAM)
        read = self.gathered() if gathers else self.source
        if spec.data_format.is_block:
            return self._block_floats(read)
        if rows:
            name = self._before_distribution("moved")
            result = self._in_place(self._by_program(read, without_shards(self.where), name))
        else:
            result = self.filled_tiles(self._by_program(read, self.place, self.name))
        if read.name != self.source.name:
            self.builder.free(read)
        return result

    def _by_program(self, read: PlanTensor, place: MemoryConfig, name: str) -> PlanTensor:
        """A tensor whose rows one program moves: interleaved rows, or tiles by a map of their rows in DRAM.

        Raises DeviceError for formats whose elements the program cannot move.
        """
        spec, device = read.spec, self.builder.device_spec
        if spec.data_format not in MOVED_FORMATS:
            raise DeviceError(
                "Can only work with bfloat16/float32 or int32/uint32 tensors\n"
                f"reshape: rows of {spec.data_format} can not be moved; typecast the tensor before"
            )
        result = spec.changed(shape=self.shape, memory_config=place)
        resident: list[PlanTensor] = []
        key: Hashable = None
        if spec.layout is Layout.ROW_MAJOR:
            buffers = stick_buffers(spec, result, device, self.cores)
        else:
            before, after = three_axes(spec.shape), three_axes(self.shape)
            segments = segments_per_page(before, after)
            pages = (map_tiles(after), SEGMENT_WORDS * segments)
            rows_map = TensorSpec(pages, UINT32, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
            resident = [PlanTensor(f"{name}.map", rows_map)]
            buffers = tile_buffers(spec, result, segments, device, self.cores)
            key = (
                "reshape tiles",
                before,
                spec.data_format,
                spec.memory_config,
                spec.alignment,
                after,
                place,
                self.cores,
            )
        require_cores(self.cores, device, "reshape", unit="main", used=buffers[0].cores)
        return self.builder.run(
            "ReshapeViewDeviceOperation",
            Reshape(self.shape, self.cores),
            [read],
            PlanTensor(name, result),
            buffers,
            resident=resident,
            dataflow=True,
            key=key,
        )

    def _block_floats(self, read: PlanTensor) -> PlanTensor:
        """Block floats move as bfloat16; padding is filled before the way back because it shares exponents."""
        builder = self.builder
        wide = typecast_by(builder, read, BFLOAT16, self.wide_name)
        if read.name != self.source.name:
            builder.free(read)
        moved = self._by_program(wide, without_shards(self.where), f"{self.name}.moved")
        if is_ragged(self.shape):
            self.filled(moved)
        narrow = typecast_by(builder, moved, self.source.spec.data_format, self._before_distribution("narrow"))
        builder.free(moved)
        result = self._in_place(narrow)
        builder.free(wide)
        return result

    def _before_distribution(self, step: str) -> str:
        """Name of the tensor before it is sharded; the result's name if it is not sharded."""
        return f"{self.name}.{step}" if self.place.is_sharded() else self.name

    def _in_place(self, tensor: PlanTensor) -> PlanTensor:
        """An interleaved tensor copied to shards and released; the tensor itself if the result stays interleaved.

        Rows are dealt as a matrix, of which the result is a view.
        """
        if not self.place.is_sharded():
            return tensor
        result = self.dealt(tensor)
        self.builder.free(tensor)
        if result.spec.layout is Layout.TILE:
            return result
        matrix = result.spec.changed(shape=(prod(self.shape[:-1]), self.shape[-1]))
        return PlanTensor(result.name, placement.viewed(matrix, self.shape, self.builder.device_spec))


def is_ragged(shape: Shape) -> bool:
    """Whether tiles of a shape have padding."""
    return any(side % TILE for side in (1, *shape)[-2:])
