"""Copies of a tensor to another memory, layout or format: the operation, its pages, its values.

An operation without outputs writes into its last input: the real library allocates a sharded copy before it chooses the
program that fills it, and writes a slice into a shared tensor. A program that tilizes or untilizes assigns whole rows
of tiles to each core, unless rows are wide and square blocks of tiles occupy more cores; rows that do not fit into L1
are always split into blocks, and a core has the block at one position of every image. Source: tt-metal 0.81.1
(work_split_tilize; data_movement/copy, move), compared with recorded plans.

Reshard between shards of different widths (get_core_page_ranges_diff_width) cuts rows into the largest units that fill
the rows of both shards, and counts the units of the shards' padding out. It finds the padding only in the last column
of cores of the *grid*, so that in a wider grid, or one that does not begin at the first core, units are counted on:
`uneven` says which rows are lost or misplaced.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import cycle
from math import gcd, isqrt, prod
from typing import Final

import numpy as np

from device.cores import CoreRange, CoreRangeSet, first_cores
from device.matrix_unit.packer import typecast, without_nan
from device.memory.layouts import TensorSpec, side
from device.memory.memory_config import TILE, Layout, MemoryConfig, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, Array, DataFormat, Integers, div_up, round_up
from device.plan import Operation, Plan
from device.spec.device_spec import DeviceSpec
from device.spec.releases import release_of
from device.time.network import NETWORKS
from ops.builder import FreeL1
from ops.programs.buffer_shapes import is_uneven, page_cores, row_bytes, shard_counts, spread_evenly
from ops.programs.data_movement.movement import (
    Access,
    DataMovement,
    Movement,
    Pages,
    Sides,
    copy_pages,
    sides_of,
    tile_writes,
)


class Conversion(Enum):
    """The programs that copy a tensor to another memory or layout; member values are their names."""

    INTERLEAVED_TO_SHARDED = "InterleavedToSharded"
    SHARDED_TO_INTERLEAVED = "ShardedToInterleaved"
    RESHARD = "Reshard"
    MOVE = "Move"
    COPY = "Copy"
    PAD = "Pad"
    TYPECAST = "Typecast"
    TILIZE = "Tilize"
    TILIZE_WITH_VAL_PADDING = "TilizeWithValPadding"
    UNTILIZE = "Untilize"
    UNTILIZE_CODEGEN = "UntilizeCodegen"
    UNTILIZE_WITH_UNPADDING = "UntilizeWithUnpadding"


FORMAT_CHANGED: Final = ", format changed"  # of classes of programs that are measured by themselves
TILIZES: Final = frozenset({Conversion.TILIZE, Conversion.TILIZE_WITH_VAL_PADDING})
UNTILIZES: Final = frozenset({Conversion.UNTILIZE, Conversion.UNTILIZE_WITH_UNPADDING})  # not by generated code


@dataclass(frozen=True, slots=True)
class CopyTensor(DataMovement):
    """A copy of a tensor to another memory, layout or format."""

    conversion: Conversion  # By which program
    formats: tuple[DataFormat, DataFormat] | None = None  # Before and after; None if both are one
    kept: tuple[int, ...] | None = None  # Shape of what is kept of the source, from its first element on; None for all
    # Padded shape of the source if the result takes its rows of padding for rows of its own; None if not
    padded: tuple[int, ...] | None = None
    on_one_core: bool = False  # One core does all
    by_tile: bool = False  # One core tilizes rows tile by tile
    cores: CoreRangeSet | None = None  # That may be used; None for all
    # Bytes of each core's L1 that the plan releases above a shard that moves up: so far it moves. None if unknown
    room_bytes: int | None = None
    # The L1 below the tensors that live, by which rows of tiles are cut; None where an empty L1 cuts no others
    free_l1: FreeL1 | None = None

    @property
    def name(self) -> str:
        """The device operation."""
        return f"{self.conversion.value}DeviceOperation"

    @property
    def casts(self) -> bool:
        """Whether the format changes on the way."""
        return self.formats is not None and self.formats[0] != self.formats[1]

    @property
    def alone(self) -> bool:
        """Whether one core does all the work: by the call's request, or because only one core may tilize."""
        only = self.conversion is Conversion.TILIZE and self.cores is not None and self.cores.num_cores() < 2
        return self.on_one_core or self.by_tile or only

    def moved(self, values: Array) -> Array:
        """The values in the format of the result, including padding rows that the program keeps.

        When rows are tilized to bfloat16, the packer turns NaN into infinity. Block floats pass through bfloat16 and
        back, and may get other neighbors.
        """
        if self.kept is not None:
            values = values[tuple(map(slice, self.kept))]
        if self.padded is not None:  # as many rows as there were: zeros below each image push the last images out
            below = [(0, 0)] * (values.ndim - 2) + [(0, self.padded[-2] - values.shape[-2]), (0, 0)]
            rows = np.pad(values, below).reshape(-1, values.shape[-1])
            values = rows[: prod(values.shape[:-1])].reshape(values.shape)
        if self.formats is not None and self.casts:
            return typecast(values, *self.formats)
        if self.conversion not in TILIZES or values.dtype != BFLOAT16.storage or not np.isnan(values).any():
            return values
        return without_nan(values.astype(np.float32).view(np.uint32)).view(np.float32).astype(values.dtype)

    def blocks(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> "TileBlocks | None":
        """The blocks of the program; see `tile_blocks`."""
        free, within = self.free_l1, self.cores
        return tile_blocks(self.conversion, read, written, spec, on_one_core=self.alone, free_l1=free, within=within)

    def cut(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> "TileBlocks | tuple[int, int] | None":
        """The program's choice by the free L1: its blocks, or the number of pieces in the buffers of generated code."""
        if self.conversion is Conversion.UNTILIZE_CODEGEN:
            return generated_depths(read, written, spec, self.free_l1)
        return self.blocks(read, written, spec)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """The pages of the program; some cores take shards page by page."""
        if self.cores is not None:
            read, written = (
                tensor.changed(memory_config=MemoryConfig(buffer_type=tensor.memory_config.buffer_type))
                for tensor in (read, written)
            )
        sides = sides_of(read, written, spec, on_one_core=self.alone, within=self.cores)
        blocks = self.blocks(read, written, spec)
        if blocks is not None:  # the counted core has a whole block of every image
            tile_rows, columns = (min(side, blocks.side) for side in (blocks.high, blocks.wide))
            lines = (1, *(written if sides.read.tiles else read).shape)[-2]
            sticks = blocks.images * min(tile_rows * TILE, lines)
            sides = _in_parts(sides, blocks.cores(spec).merged(), blocks.images * tile_rows, columns, sticks)
        elif self.conversion in TILIZES | UNTILIZES and not (sides.from_shards or sides.to_shards):
            sides = _of_whole_rows(sides)
        cores, before, after = sides.cores, sides.read, sides.written
        match self.conversion:
            case Conversion.INTERLEAVED_TO_SHARDED:
                return _cast_whole(sides, Movement(cores=cores, reads=_into_shards(sides, spec)))
            case Conversion.SHARDED_TO_INTERLEAVED:
                access = Access.STREAM if before.tiles else Access.STICKS
                return _cast_whole(sides, Movement(cores=cores, writes=replace(_moved(before, after), access=access)))
            case Conversion.RESHARD:
                return Movement(cores=cores, reads=_resharded(sides), reshards=True)
            case Conversion.MOVE if sides.from_shards and sides.to_shards:
                return Movement(cores=cores, reads=_moved_up(before, self.room_bytes))
            case Conversion.COPY if sides.from_shards or sides.to_shards:
                return _shared_out(sides, spec)
            case Conversion.MOVE | Conversion.COPY | Conversion.PAD:
                return copy_pages(sides)
            case Conversion.TYPECAST:
                return _cast_pages(sides)
            case Conversion.TILIZE | Conversion.TILIZE_WITH_VAL_PADDING:
                pads = self.conversion is Conversion.TILIZE_WITH_VAL_PADDING
                return _tilize_pages(sides, blocks, spec, pads=pads)
            case Conversion.UNTILIZE:
                return untilize_pages(sides, Access.ROWS)
            case Conversion.UNTILIZE_CODEGEN:
                cores, tiles = generated_pieces(read, spec)
                core_rows = div_up(read.matrix[0] // TILE * div_up(sides.width_tiles, tiles), cores.num_cores())
                parts = _in_parts(sides, cores, core_rows, tiles, core_rows * TILE)
                untilized = untilize_pages(parts, Access.GENERATED if tiles == sides.width_tiles else Access.PIECES)
                return replace(untilized, reads=replace(parts.read, access=Access.BATCH, in_flight=tiles))
            case Conversion.UNTILIZE_WITH_UNPADDING:
                waits = tile_writes(spec) is Access.WAIT
                return untilize_pages(sides, Access.WAIT if waits else Access.EACH)

    @property
    def measured_as(self) -> str:
        """A class of its own where the program changes formats on the way."""
        casts = self.casts and self.conversion is not Conversion.TYPECAST
        return f"{self.conversion.value}{FORMAT_CHANGED}" if casts else ""


WIDE_TILES = 32  # rows of tiles that are no wider are not cut


@dataclass(frozen=True, slots=True, kw_only=True)
class TileBlocks:
    """How the tiles of a tensor's images are cut into blocks."""

    side: int  # Tiles on each side of a block; blocks at the right and lower edge may have fewer
    step: int  # Tiles across a block that L1 holds at a time: a part of the side, or all
    high: int  # Tiles down an image
    wide: int  # Tiles across an image
    images: int
    row_wise: bool  # Blocks go to the cores row by row, not column by column
    within: CoreRangeSet | None = None  # Cores that may be used; None for all

    @property
    def refusal(self) -> str | None:
        """Why the library does not use such blocks: L1 has no room for a tile, or there are too few cores."""
        if self.within is not None and self.num_cores > (cores := self.within.num_cores()):
            return beyond_cores(cores)
        if self.step < 1:
            return "single_block_size_limit must be at least 1"
        return "No solution found for single_block_size" if self.step == 1 < self.side else None

    @property
    def across(self) -> int:
        """Blocks across an image."""
        return div_up(self.wide, self.side)

    @property
    def num_cores(self) -> int:
        """Cores, of which each has one block of every image."""
        return div_up(self.high, self.side) * self.across

    def cores(self, spec: DeviceSpec) -> CoreRangeSet:
        """The cores, in the order of their blocks: row by row of an image, each from the left."""
        return page_cores(self.num_cores, spec.grid, row_wise=self.row_wise, within=self.within)

    def cores_by_width(self, spec: DeviceSpec) -> dict[int, CoreRangeSet]:
        """Tiles across a block, and the cores with blocks of this width; the widest blocks first."""
        across = [self.side] * (self.across - 1) + [self.wide - (self.across - 1) * self.side]
        of_width: dict[int, list[CoreRange]] = {width: [] for width in sorted(across, reverse=True)}
        for core, width in zip(self.cores(spec).cores(row_major=self.row_wise), cycle(across), strict=False):
            of_width[width].append(CoreRange(core, core))
        return {width: CoreRangeSet(set(CoreRangeSet(cores).merged().ranges)) for width, cores in of_width.items()}


def beyond_cores(cores: int) -> str:
    """The library's error text if it indexes one core beyond this number of cores."""
    return f"vector::_M_range_check: __n (which is {cores}) >= this->size() (which is {cores})"


def _free_beside(result: TensorSpec, spec: DeviceSpec, free_l1: FreeL1 | None) -> tuple[int, int]:
    """The assumed and the actual free L1 besides a result; all of L1 if unknown."""
    return (spec.l1.usable_bytes,) * 2 if free_l1 is None else free_l1.beside(result, spec)


def tile_blocks(
    conversion: Conversion,
    source: TensorSpec,
    target: TensorSpec,
    spec: DeviceSpec,
    *,
    on_one_core: bool = False,
    free_l1: FreeL1 | None = None,
    within: CoreRangeSet | None = None,
) -> TileBlocks | None:
    """The blocks of a program that tilizes or untilizes; None if cores (or one core) have whole rows of tiles.

    A program that pads on one core has blocks if rows do not fit L1. ``free_l1`` is the free L1 before the result is
    allocated; None means an empty L1 without the result.
    """
    sharded = source.memory_config.is_sharded() or (conversion in UNTILIZES and target.memory_config.is_sharded())
    cores = spec.grid.cores if within is None else within.num_cores()
    pads_alone = on_one_core and conversion is Conversion.TILIZE_WITH_VAL_PADDING
    if sharded or not cores or conversion not in TILIZES | UNTILIZES or (on_one_core and not pads_alone):
        return None
    tiles = target if target.layout is Layout.TILE else source
    high, wide = (side // TILE for side in (TILE, *tiles.padded_shape)[-2:])
    images = prod(tiles.padded_shape[:-2])
    core_tiles = div_up(prod((1, *source.padded_shape)[-2:]) // TILE**2, cores)
    pair_bytes = source.data_format.tile_bytes + target.data_format.tile_bytes
    expected, left = _free_beside(target, spec, free_l1)
    most = left // pair_bytes  # tiles of both tensors that L1 holds
    by_rows, smallest = conversion is Conversion.UNTILIZE, isqrt(max(core_tiles, 1) - 1) + 1

    def cut(rows: int) -> TileBlocks:
        """In the smallest squares that hold a core's tiles and leave a core over; else in single tiles."""
        sides = range(smallest, max(smallest, rows, wide) + 1)
        fitting = [side for side in sides if div_up(wide, side) * div_up(rows, side) < cores]
        side = next(iter(fitting), 1)
        step = min(side, most)
        if 1 < step < side:  # of a longer side, if need be, that has parts which fit
            parts = ((side, step) for side in fitting for step in range(most, 1, -1) if side % step == 0)
            side, step = next(parts, (side, 1))
        return TileBlocks(side=side, step=step, high=rows, wide=wide, images=images, row_wise=by_rows, within=within)

    blocks = cut(high)
    if blocks.num_cores > cores and within is None:
        return None
    if wide * pair_bytes >= expected:
        return blocks
    if on_one_core:
        return None
    # To choose, Untilize counts the blocks that all images would have as one, though it cuts every image
    counted = cut(high * images) if by_rows else blocks
    is_wide = wide > WIDE_TILES and (counted.high > WIDE_TILES or wide > counted.high)
    return blocks if is_wide and spread_evenly(high * images, cores)[0] < counted.num_cores else None


PADDING_ALIGNMENT: Final = 32  # bytes that a core alone keeps free beside the rows that it pads or cuts


def tiles_alone(conversion: Conversion, source: TensorSpec, target: TensorSpec, across: int, spec: DeviceSpec) -> int:
    """Width in tiles that a single core processes at a time: the whole row, or a divisor of it that fits half of L1."""
    room = spec.l1.bytes // 2 - spec.l1.base_bytes
    rows = source if source.layout is Layout.ROW_MAJOR else target
    if conversion in (Conversion.TILIZE_WITH_VAL_PADDING, Conversion.UNTILIZE_WITH_UNPADDING):
        element_bytes = row_bytes(rows, 1)
        most = (room - PADDING_ALIGNMENT) // (element_bytes * (2 * TILE + 1)) // TILE
    else:
        most = room // (source.data_format.tile_bytes + target.data_format.tile_bytes)
    return next((tiles for tiles in range(min(across, most), 0, -1) if across % tiles == 0), 1)


def _in_parts(sides: Sides, cores: CoreRangeSet, tile_rows: int, width_tiles: int, sticks: int) -> Sides:
    """Both sides of a program whose cores have parts of rows of tiles; sizes are those of the modeled core."""

    def part(pages: Pages, tensor: TensorSpec) -> Pages:
        if pages.tiles:
            return replace(pages, core_pages=tile_rows * width_tiles)
        page_bytes = row_bytes(tensor, min(width_tiles * TILE, side(tensor.shape, -1)))
        return replace(pages, core_pages=sticks, page_bytes=page_bytes, all_pages=div_up(pages.all_bytes, page_bytes))

    read, written = part(sides.read, sides.source), part(sides.written, sides.target)
    return replace(sides, cores=cores, width_tiles=width_tiles, tile_rows=tile_rows, read=read, written=written)


def _of_whole_rows(sides: Sides) -> Sides:
    """Both sides of a program whose cores have whole rows of tiles, and the sticks of the core with most of them.

    The sticks of an image end within its last row of tiles that holds any.
    """
    rows, tiles = (sides.target, sides.source) if sides.read.tiles else (sides.source, sides.target)
    high, lines = (TILE, *tiles.padded_shape)[-2] // TILE, (1, 1, *rows.shape)[-2]
    first = np.arange(sides.cores.num_cores() + 1) * sides.tile_rows
    before = np.minimum(first // high * lines + np.minimum(first % high * TILE, lines), rows.matrix[0])
    sticks = int(np.diff(before).max())
    read, written = (
        pages if pages.tiles else replace(pages, core_pages=sticks) for pages in (sides.read, sides.written)
    )
    return replace(sides, read=read, written=written)


MOST_ROW_BYTES = 800_000  # of two rows of bfloat16 tiles that generated code untilizes


def fits_generated_code(tiles: TensorSpec, spec: DeviceSpec) -> bool:
    """Whether generated code untilizes interleaved tiles of an empty device; older programs take others.

    Several rows of tiles, or rows with padding, may not be wide; pieces of a single row must fit L1.
    """
    rows, columns = tiles.matrix
    if rows > TILE or tiles.shape[-2:] != tiles.padded_shape[-2:]:
        return 2 * columns // TILE * BFLOAT16.tile_bytes <= MOST_ROW_BYTES
    return 2 * generated_pieces(tiles, spec)[1] * BFLOAT16.tile_bytes <= spec.l1.usable_bytes


DEPTHS: Final = ((2, 2), (2, 1), (1, 1))  # pieces of tiles, and of rows, on their way through generated code


def generated_depths(
    source: TensorSpec, target: TensorSpec, spec: DeviceSpec, free_l1: FreeL1 | None = None, *, expected: bool = False
) -> tuple[int, int] | None:
    """Numbers of pieces of tiles and of rows in the buffers of a core, the most that fit its L1; None if none do.

    ``free_l1`` as in `tile_blocks`; the library chooses the program by the expected free L1, the depths by the actual.
    """
    tile_bytes = max(source.data_format.tile_bytes, target.data_format.tile_bytes)
    piece_bytes = generated_pieces(source, spec)[1] * tile_bytes
    left = _free_beside(target, spec, free_l1)[0 if expected else 1]
    return next((depths for depths in DEPTHS if sum(depths) * piece_bytes <= left), None)


def generated_pieces(source: TensorSpec, spec: DeviceSpec) -> tuple[CoreRangeSet, int]:
    """The cores of the program that makes rows of interleaved tiles by generated code, and the tiles of a piece.

    A row of tiles is split into equal pieces with a core each; a tensor of one row of tiles into pieces that differ by
    at most a tile (the longer counts). Rows stay whole if there are more rows than cores, or if the program removes
    padding.
    """
    tile_rows, across = source.matrix[0] // TILE, source.matrix[1] // TILE
    row_pieces = 1
    if source.shape == source.padded_shape:
        most = min(spec.grid.cores // tile_rows, across)
        row_pieces = most if tile_rows == 1 else next((count for count in range(most, 1, -1) if across % count == 0), 1)
    cores = first_cores(min(tile_rows * row_pieces, spec.grid.cores), spec.grid.cols, spec.grid.rows)
    return cores, div_up(across, row_pieces)


WORD_BYTES = 4  # that a processor fills at a time
READ_AHEAD_PARTS = 512  # of all cores of an interleaved-to-sharded program: tiles requested before a wait
READ_AHEAD_PART_BYTES = 1152
BOUNCES_IN_FLIGHT = 4  # sticks on their way through the scratchpad of an interleaved-to-sharded program


def _moved(shards: Pages, interleaved: Pages) -> Pages:
    """The pages of shards in the memory and format of an interleaved tensor, which has no padding of shards."""
    if shards.tiles:
        pages = min(shards.all_pages, interleaved.all_pages)
        return replace(shards, all_pages=pages, page_bytes=interleaved.page_bytes, in_dram=interleaved.in_dram)
    size = min(shards.all_bytes, interleaved.all_bytes)
    return replace(shards, all_pages=div_up(size, shards.page_bytes), uneven_bytes=size, in_dram=interleaved.in_dram)


def _into_shards(sides: Sides, spec: DeviceSpec) -> Pages:
    """Reads of an interleaved-to-sharded program; a stick that DRAM does not align is read in parts that bounce."""
    read, written, alignment = sides.read, sides.written, spec.dram.alignment_bytes
    moved = _moved(written, read)
    if read.tiles:
        group = READ_AHEAD_PARTS // sides.cores.num_cores() * READ_AHEAD_PART_BYTES // moved.page_bytes
        return replace(moved, access=Access.WAIT, in_flight=max(1, min(group, moved.core_pages)))
    if release_of(spec.release).bounces_all_sticks:
        return replace(moved, access=Access.BOUNCE)
    if not read.in_dram:
        return moved  # no barrier before the last
    whole = written.all_pages == sides.target.matrix[0] or moved.page_bytes % alignment == 0
    if whole and round_up(moved.page_bytes, spec.l1.alignment_bytes) % alignment == 0:
        return replace(moved, access=Access.STICKS)
    return replace(moved, access=Access.BOUNCE, in_flight=BOUNCES_IN_FLIGHT)


def _resharded(sides: Sides) -> Pages:
    """Reads of a reshard: runs of whole rows where shards keep their width, otherwise page by page.

    A core whose shard several others read answers them on both networks.
    """
    read, written = sides.read, sides.written
    core_bytes = max(written.core_pages * written.page_bytes, div_up(read.core_pages * read.page_bytes, len(NETWORKS)))
    shards = ((tensor.memory_config.shard_spec, tensor.matrix[1]) for tensor in (sides.source, sides.target))
    if len({columns if shard_spec is None else shard_spec.shape[1] for shard_spec, columns in shards}) == 1:
        return replace(written, core_pages=1, page_bytes=core_bytes, all_pages=sides.cores.num_cores())
    return replace(written, core_pages=div_up(core_bytes, written.page_bytes))


ASSUMED_PIECES: Final = 4  # of sticks, the outputs of halos: the median of 18 measured moves after halos


def _moved_up(shard: Pages, room_bytes: int | None) -> Pages:
    """Moves a shard that may overlap its new address: the last piece first, each as long as the move distance.

    If a plan does not know the distance, because it has no addresses, tiles move in one piece.
    """
    core_bytes = shard.core_pages * shard.page_bytes
    pieces = (1 if shard.tiles else ASSUMED_PIECES) if room_bytes is None else div_up(core_bytes, room_bytes)
    piece_bytes = div_up(core_bytes, pieces)
    count = div_up(shard.all_pages * shard.page_bytes, piece_bytes)
    return replace(shard, access=Access.LOCAL, core_pages=pieces, page_bytes=piece_bytes, all_pages=count)


def _shared_out(sides: Sides, spec: DeviceSpec) -> Movement:
    """A copy whose rows or tiles are distributed over all cores, independent of the cores of shards."""
    items = sides.read.all_pages if sides.read.tiles else sides.source.matrix[0]
    cores = page_cores(items, spec.grid)
    reads, writes = (
        replace(pages, access=Access.WAIT, core_pages=div_up(pages.all_pages, cores.num_cores()))
        for pages in (sides.read, sides.written)
    )
    return Movement(cores=cores, reads=reads, writes=writes, blocks=div_up(items, cores.num_cores()))


def _tilize_pages(sides: Sides, blocks: TileBlocks | None, spec: DeviceSpec, *, pads: bool) -> Movement:
    """Tilizes sticks; a program that pads fills the rows below each image. Shards are processed in place."""
    writes = tile_writes(spec)
    source, target = sides.source, sides.target
    filled = target.padded_shape[-2] - side(source.shape, -2)  # a vector is one row
    images, columns = div_up(prod(source.shape[:-2]), sides.cores.num_cores()), target.padded_shape[-1]
    access = Access.BATCH if writes is Access.FLUSH else Access.WAIT if pads else Access.STICKS
    if blocks is not None:
        access, images, columns = Access.WAIT, blocks.images, sides.width_tiles * TILE
        filled = min(filled, sides.tile_rows // images * TILE)
    together = min(TILE, sides.read.core_pages) if access is Access.BATCH else 1  # the sticks of a row of tiles
    return Movement(
        cores=sides.cores,
        reads=None if sides.from_shards else replace(sides.read, access=access, in_flight=together),
        writes=None if sides.to_shards else replace(sides.written, access=writes),
        blocks=sides.tile_rows,
        stores=images * filled * div_up(row_bytes(source, columns), WORD_BYTES) if pads else 0,
        tilized_tiles=sides.tile_rows * sides.width_tiles,
        formats=(source.data_format, target.data_format),
        width_tiles=sides.width_tiles,
    )


def _cast_whole(sides: Sides, movement: Movement) -> Movement:
    """A movement into or out of shards; where the format changes, all tiles of a core after reading, before writing."""
    formats = sides.source.data_format, sides.target.data_format
    if formats[0] == formats[1]:
        return movement
    tiles = (sides.written if sides.to_shards else sides.read).core_pages
    return replace(movement, cast_tiles=tiles, formats=formats, whole=True)


def _cast_pages(sides: Sides) -> Movement:
    """Converts each tile to the other format; in place, if whole shards have the same size in that format."""
    source, target = sides.source, sides.target
    formats, by_number = (source.data_format, target.data_format), sides.from_shards
    if by_number and formats[0].tile_bytes == formats[1].tile_bytes and not is_uneven(source):
        return Movement(cores=sides.cores, cast_tiles=sides.read.core_pages, formats=formats)
    copied = copy_pages(replace(sides, read=replace(sides.read, by_number=by_number)))
    written = replace(sides.written, access=Access.WAIT, by_number=by_number)
    return replace(copied, writes=written, cast_tiles=sides.written.core_pages, formats=formats)


def untilize_pages(sides: Sides, access: Access) -> Movement:
    """Untilizes tiles; shards are processed in place."""
    return Movement(
        cores=sides.cores,
        reads=None if sides.from_shards else replace(sides.read, access=Access.WAIT),
        writes=None if sides.to_shards else replace(sides.written, access=access),
        blocks=sides.tile_rows,
        untilized_rows=sides.tile_rows,
        width_tiles=sides.width_tiles,
    )


UNIT_COUNTS = 1 << 32  # the library counts units without a sign, in 32 bits
CORE_STRIDE = 1 << 12  # more than there are in a row or column of cores


class Uneven(Enum):
    """The fate of uneven units."""

    MOVED = auto()
    MISPLACED = auto()
    LOST = auto()  # a core of the result gets none, which the library does not expect


def uneven(source: TensorSpec, target: TensorSpec) -> Uneven:
    """How Reshard treats uneven rows in shards of another width; other rows are moved."""
    pages = [row_bytes(tensor, tensor.shards.shape[1]) for tensor in (source, target)]
    if source.layout is Layout.TILE or pages[0] == pages[1]:
        return Uneven.MOVED
    schemes = {tensor.memory_config.memory_layout for tensor in (source, target)}
    if schemes == {TensorMemoryLayout.HEIGHT_SHARDED}:  # the length of rows of one is taken for that of both
        return Uneven.MOVED if source.shards.shape[0] == target.shards.shape[0] == 1 else Uneven.MISPLACED
    if schemes == {TensorMemoryLayout.WIDTH_SHARDED}:
        return Uneven.MOVED
    unit_bytes, lines = gcd(*pages), prod(source.shape[:-1])
    units = div_up(row_bytes(source, source.shape[-1]), unit_bytes)
    if all(units * unit_bytes == row_bytes(tensor) for tensor in (source, target)):
        return Uneven.MOVED
    counted, wanted = (_counted(tensor, lines, units, unit_bytes) for tensor in (source, target))
    if set(_cores(target).ravel().tolist()) - set((wanted // UNIT_COUNTS).tolist()):
        return Uneven.LOST
    moved = dict(zip(wanted.tolist(), counted.tolist(), strict=True))
    right = (_unit_places(tensor, lines, units, unit_bytes).tolist() for tensor in (target, source))
    return Uneven.MOVED if all(moved.get(at) == unit for at, unit in zip(*right, strict=True)) else Uneven.MISPLACED


def misplaced_rows(plan: Plan) -> str | None:
    """The rows that a Reshard of a plan misplaces in the real library; None if there are none, or it is refused."""
    for step in plan.steps:
        if not isinstance(step, Operation) or step.name != f"{Conversion.RESHARD.value}DeviceOperation":
            continue
        if step.refused is not None:
            return None
        source = plan.tensors[step.inputs[0]]
        result = plan.tensors[step.outputs[0].tensor if step.outputs else step.inputs[-1]]
        if uneven(source, result) is not Uneven.MOVED:
            return (
                f"rows of {source.shape[-1]} do not fill their shards of {source.shards.shape[1]} and "
                f"{result.shards.shape[1]} columns: the real library misplaces parts of them; give shards of one width "
                "on a grid of just their cores from the first on, or go by way of interleaved memory"
            )
    return None


def _cores(tensor: TensorSpec) -> Integers:
    """The core of each shard, down and across, as a number."""
    (rows, columns), shards = tensor.matrix, tensor.shards
    cores = shards.grid.cores(shards.orientation is ShardOrientation.ROW_MAJOR)
    numbers = np.array([core.x * CORE_STRIDE + core.y for core in cores], np.int64)
    filled = div_up(rows, shards.shape[0]), div_up(columns, shards.shape[1])
    return numbers.reshape(shard_counts(tensor.memory_config.memory_layout, shards))[: filled[0], : filled[1]]


def _unit_places(tensor: TensorSpec, lines: int, units: int, unit_bytes: int) -> Integers:
    """The position of every unit, row by row, as one number: its core and its index among the core's units."""
    high, wide = tensor.shards.shape
    per_page = row_bytes(tensor, wide) // unit_bytes
    row, unit = np.indices((lines, units))
    core = _cores(tensor)[row // high, unit // per_page]
    return (core * UNIT_COUNTS + row % high * per_page + unit % per_page).ravel()


def _counted(tensor: TensorSpec, lines: int, units: int, unit_bytes: int) -> Integers:
    """The position at which the library expects every unit; 0 (first unit of the first core) if it does not count it.

    It excludes units of padding, found by the first page with padding in the last cores of the grid.
    """
    (high, wide), first, cores = tensor.shards.shape, tensor.shards.grid.ranges[0], _cores(tensor)
    per_page = row_bytes(tensor, wide) // unit_bytes
    down, across, row = np.indices((*cores.shape, high)).reshape(3, -1)  # shard by shard
    down, across, row = (index[down * high + row < lines] for index in (down, across, row))
    line, core = down * high + row, cores[down, across]
    begin, end = (line * cores.shape[1] + across) * per_page, (line + 1) * units
    x, y = np.divmod(core, CORE_STRIDE)
    by_rows = tensor.shards.orientation is ShardOrientation.ROW_MAJOR
    last = x == first.end.x - first.start.x if by_rows else y == first.end.y - first.start.y
    left = (end - begin)[last] % UNIT_COUNTS
    begin = begin - line * next((int(per_page - count) for count in left if count < per_page), 0)
    unit = np.arange(per_page)
    valid, index = (end - begin) % UNIT_COUNTS, begin[:, None] + unit
    counts = (unit < valid[:, None]) & (index >= 0) & (index < lines * units)
    taken = np.zeros(lines * units, np.int64)
    taken[index[counts]] = ((core * UNIT_COUNTS + row * per_page)[:, None] + unit)[
        counts
    ]  # of pages that meet, the last
    return taken
