"""The same numbers in another place or another order of bytes: the operation, its pages, its buffers, its values.

An operation with no outputs writes into its last input: a sharded copy is allocated before the program that fills it is
known to the real library, and a slice is written into a tensor that others share. A program that tilizes or untilizes
gives each core whole rows of tiles, unless rows are wide and square blocks of tiles occupy more cores; rows that do not
fit into L1 are always cut into blocks, and a core has the block of one place in every image. Source: tt-metal 0.81.1
(work_split_tilize; data_movement/copy, move), compared with recorded plans.
"""

from dataclasses import dataclass, replace
from enum import Enum
from math import isqrt, prod
from typing import Final

import numpy as np

from device.cores import CoreRange, CoreRangeSet, first_cores
from device.matrix_unit.packer import without_nan
from device.memory.layouts import BufferSpec, TensorSpec, aligned_page_bytes
from device.memory.memory_config import TILE, Layout
from device.numbers.formats import BFLOAT16, Array, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.time.network import NETWORKS
from ops.programs.buffer_shapes import BUFFERING, dealt_evenly, page_cores, paged_buffer, scratchpad
from ops.programs.data_movement.movement import Access, Movement, Pages, Sides, copy_pages, ends_of, got_at, in_pieces
from ops.programs.data_movement.movement_cycles import DataMovement


class Conversion(Enum):
    """The programs that put the same numbers in another place or another order of bytes; values are their names."""

    INTERLEAVED_TO_SHARDED = "InterleavedToSharded"
    SHARDED_TO_INTERLEAVED = "ShardedToInterleaved"
    RESHARD = "Reshard"
    MOVE = "Move"
    COPY = "Copy"
    PAD = "Pad"
    TILIZE = "Tilize"
    TILIZE_WITH_VAL_PADDING = "TilizeWithValPadding"
    UNTILIZE = "Untilize"
    UNTILIZE_CODEGEN = "UntilizeCodegen"
    UNTILIZE_WITH_UNPADDING = "UntilizeWithUnpadding"


@dataclass(frozen=True, slots=True)
class CopyTensor(DataMovement):
    """The same numbers in another place or another order of bytes."""

    conversion: Conversion  # By which program

    def moved(self, values: Array) -> Array:
        """The same numbers; where rows become tiles, the packer makes infinities of NaNs in bfloat16."""
        return packed_tiles(values) if self.conversion in TILIZES else values

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """The pages of the program."""
        return tensor_copy_movement(self.conversion, read, written, spec)

    @property
    def measured_as(self) -> str:
        """The name of the conversion, if it was measured."""
        return measured_name(self.conversion)


def measured_name(conversion: Conversion) -> str:
    """The name under which a program was measured; empty if there are no public measurements of it."""
    return "" if conversion in (Conversion.PAD, Conversion.UNTILIZE_CODEGEN) else conversion.value


TILIZES: Final = frozenset({Conversion.TILIZE, Conversion.TILIZE_WITH_VAL_PADDING})


def packed_tiles(values: Array) -> Array:
    """Numbers of bfloat16, whose NaNs are infinities once a packer wrote them; of other formats as they are."""
    if values.dtype != BFLOAT16.storage or not np.isnan(values).any():
        return values
    return without_nan(values.astype(np.float32).view(np.uint32)).view(np.float32).astype(values.dtype)


WIDE_TILES = 32  # rows of tiles that are no wider are not cut
BLOCK_CONVERSIONS = (
    Conversion.TILIZE,
    Conversion.TILIZE_WITH_VAL_PADDING,
    Conversion.UNTILIZE,
    Conversion.UNTILIZE_WITH_UNPADDING,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TileBlocks:
    """How the tiles of a tensor's images are cut into blocks."""

    side: int  # Tiles on each side of a block; blocks at the right and lower edge may have fewer
    high: int  # Tiles down an image
    wide: int  # Tiles across an image
    images: int
    row_wise: bool  # Blocks go to the cores row by row, not column by column

    @property
    def down(self) -> int:
        """Blocks down an image."""
        return div_up(self.high, self.side)

    @property
    def across(self) -> int:
        """Blocks across an image."""
        return div_up(self.wide, self.side)

    @property
    def num_cores(self) -> int:
        """Cores, of which each has one block of every image."""
        return self.down * self.across

    @property
    def last_wide(self) -> int:
        """Tiles across the blocks at the right edge."""
        return self.wide - (self.across - 1) * self.side

    def cores(self, spec: DeviceSpec) -> CoreRangeSet:
        """The cores, in the order of their blocks: row by row of an image, each from the left."""
        return first_cores(self.num_cores, spec.grid.cols, spec.grid.rows, row_wise=self.row_wise)

    def cores_by_width(self, spec: DeviceSpec) -> dict[int, CoreRangeSet]:
        """Tiles across a block, and the cores with blocks of this width; the widest blocks first."""
        of_width: dict[int, list[CoreRange]] = {}
        for number, core in enumerate(self.cores(spec).cores(row_major=self.row_wise)):
            width = self.last_wide if number % self.across == self.across - 1 else self.side
            of_width.setdefault(width, []).append(CoreRange(core, core))
        widest_first = sorted(of_width, reverse=True)
        return {width: CoreRangeSet(set(CoreRangeSet(of_width[width]).merged().ranges)) for width in widest_first}


def tile_blocks(
    conversion: Conversion, source: TensorSpec, target: TensorSpec, spec: DeviceSpec, *, on_one_core: bool = False
) -> TileBlocks | None:
    """The blocks of a program that tilizes or untilizes; None where each core has whole rows of tiles.

    Args:
        on_one_core: One core does all.
    """
    sharded = source.memory_config.is_sharded() or target.memory_config.is_sharded()
    if on_one_core or sharded or conversion not in BLOCK_CONVERSIONS:
        return None
    tiles, cores = target if target.layout is Layout.TILE else source, spec.grid.cores
    high, wide = (side // TILE for side in (TILE, *tiles.padded_shape)[-2:])
    images = prod(tiles.padded_shape[:-2])
    core_tiles = div_up(prod((1, *source.padded_shape)[-2:]) // TILE**2, cores)

    def cut(rows: int) -> TileBlocks:
        return TileBlocks(
            side=_block_side(core_tiles, rows, wide, cores),
            high=rows,
            wide=wide,
            images=images,
            row_wise=conversion is Conversion.UNTILIZE,
        )

    blocks = cut(high)
    if blocks.num_cores > cores:
        return None
    if wide * (source.data_format.tile_bytes + target.data_format.tile_bytes) >= spec.l1.usable_bytes:
        return blocks
    # To choose, Untilize counts the blocks that all images would have as one, though it cuts every image
    counted = cut(high * images) if conversion is Conversion.UNTILIZE else blocks
    is_wide = wide > WIDE_TILES and (counted.high > WIDE_TILES or wide > counted.high)
    by_rows, _ = dealt_evenly(high * images, cores)
    return blocks if is_wide and by_rows < counted.num_cores else None


def in_blocks(ends: Sides, blocks: TileBlocks, spec: DeviceSpec) -> Sides:
    """Both sides of a program that works in blocks; the core counted is one with a whole block of every image."""
    rows, columns = (min(side, blocks.side) for side in (blocks.high, blocks.wide))

    def of_block(pages: Pages, tensor: TensorSpec) -> Pages:
        if pages.tiles:
            return replace(pages, core_pages=blocks.images * rows * columns)
        high, wide = (1, *tensor.shape)[-2:]
        page_bytes = min(columns * TILE, wide) * (tensor.data_format.element_bytes or 0)
        sticks = blocks.images * min(rows * TILE, high)
        return replace(pages, core_pages=sticks, page_bytes=page_bytes, all_pages=div_up(pages.all_bytes, page_bytes))

    return replace(
        ends,
        cores=blocks.cores(spec).merged(),
        width_tiles=columns,
        core_tile_rows=blocks.images * rows,
        read=of_block(ends.read, ends.source),
        written=of_block(ends.written, ends.target),
    )


def _block_side(core_tiles: int, high: int, wide: int, cores: int) -> int:
    """Tiles on a side of the smallest square that holds a core's tiles and leaves a core over; 1 if there is none."""
    first = isqrt(core_tiles) + (isqrt(core_tiles) ** 2 != core_tiles)
    for side in range(max(first, 1), max(first, high, wide) + 1):
        if div_up(wide, side) * div_up(high, side) < cores:
            return side
    return 1


WORD_BYTES = 4  # that a processor fills at a time
READ_AHEAD_PARTS = 512  # that all cores of an interleaved-to-sharded program share: tiles asked for before a wait
READ_AHEAD_PART_BYTES = 1152
BOUNCES_IN_FLIGHT = 4  # sticks on their way through the scratchpad of an interleaved-to-sharded program


def tensor_copy_movement(
    conversion: Conversion,
    source: TensorSpec,
    target: TensorSpec,
    spec: DeviceSpec,
    *,
    bounces_always: bool = False,
    on_one_core: bool = False,
) -> Movement:
    """A program that puts a tensor in another place or another order of bytes.

    Args:
        source: What is read.
        target: What is written.
        bounces_always: Interleaved-to-sharded programs copy every stick twice and one at a time, aligned or not, as the
            library did on Blackhole until 2025; release 0.81.1 does not.
        on_one_core: One core does all, if no tensor is sharded.
    """
    ends = ends_of(source, target, spec, on_one_core=on_one_core)
    blocks = tile_blocks(conversion, source, target, spec, on_one_core=on_one_core)
    if blocks is not None:
        ends = in_blocks(ends, blocks, spec)
    cores, read, written = ends.cores, ends.read, ends.written
    match conversion:
        case Conversion.INTERLEAVED_TO_SHARDED:
            return Movement(cores=cores, reads=_into_shards(ends, spec, bounces_always=bounces_always))
        case Conversion.SHARDED_TO_INTERLEAVED:
            moved = replace(read, all_pages=min(read.all_pages, written.all_pages), in_dram=written.in_dram)
            return Movement(cores=cores, writes=got_at(moved, Access.STREAM if ends.from_tiles else Access.STICKS))
        case Conversion.RESHARD:
            return Movement(cores=cores, reads=_dealt_anew(ends), reshards=True)
        case Conversion.MOVE if ends.from_shards and ends.to_shards:
            return Movement(cores=cores, reads=got_at(read, Access.LOCAL))
        case Conversion.COPY if ends.from_shards or ends.to_shards:
            return _shared_out(ends, spec)
        case Conversion.MOVE | Conversion.COPY | Conversion.PAD:
            return copy_pages(ends)
        case Conversion.TILIZE:
            return tilize_pages(ends, Access.STICKS if blocks is None else Access.BOUNCE)
        case Conversion.TILIZE_WITH_VAL_PADDING:
            return tilize_pages(ends, Access.WAIT if blocks is None else Access.BOUNCE, pads=True)
        case Conversion.UNTILIZE:
            return untilize_pages(ends, Access.ROWS)
        case Conversion.UNTILIZE_CODEGEN:
            return untilize_pages(in_pieces(ends, spec), Access.ROWS)
        case Conversion.UNTILIZE_WITH_UNPADDING:
            return untilize_pages(ends, Access.WAIT)


def _into_shards(ends: Sides, spec: DeviceSpec, *, bounces_always: bool) -> Pages:
    """What an interleaved-to-sharded program reads."""
    read, written = ends.read, ends.written
    moved = replace(written, all_pages=min(read.all_pages, written.all_pages), in_dram=read.in_dram)
    if ends.from_tiles:
        group = READ_AHEAD_PARTS // ends.cores.num_cores() * READ_AHEAD_PART_BYTES // moved.page_bytes
        return replace(moved, access=Access.WAIT, in_flight=max(1, min(group, moved.core_pages)))
    if bounces_always:
        return got_at(moved, Access.BOUNCE)
    if _sticks_are_aligned(moved, written.all_pages // ends.target.matrix[0], spec):
        return got_at(moved, Access.STICKS)
    return replace(moved, access=Access.BOUNCE, in_flight=BOUNCES_IN_FLIGHT)


def _dealt_anew(ends: Sides) -> Pages:
    """What a reshard reads: runs of whole rows where shards are as wide as before, page by page where they are not.

    A core whose shard several others read answers them on both networks.
    """
    read, written = ends.read, ends.written
    dealt = max(written.core_pages * written.page_bytes, div_up(read.core_pages * read.page_bytes, len(NETWORKS)))
    if _shard_columns(ends.source) == _shard_columns(ends.target):
        return replace(written, access=Access.STREAM, core_pages=1, page_bytes=dealt, all_pages=ends.cores.num_cores())
    return replace(written, access=Access.STREAM, core_pages=div_up(dealt, written.page_bytes))


def _shard_columns(tensor: TensorSpec) -> int:
    shards = tensor.memory_config.shard_spec
    return tensor.matrix[1] if shards is None else shards.shape[1]


def _shared_out(ends: Sides, spec: DeviceSpec) -> Movement:
    """The same with rows, or tiles, shared out over all cores, wherever shards lie."""
    rows = ends.source.matrix[0] if ends.source.layout is Layout.ROW_MAJOR else ends.read.all_pages
    cores = page_cores(rows, spec.grid)
    count = cores.num_cores()
    reads = replace(ends.read, access=Access.WAIT, core_pages=div_up(ends.read.all_pages, count))
    writes = replace(ends.written, access=Access.WAIT, core_pages=div_up(ends.written.all_pages, count))
    return Movement(cores=cores, reads=reads, writes=writes, blocks=div_up(rows, count))


def tilize_pages(ends: Sides, access: Access, *, pads: bool = False) -> Movement:
    """Sticks become tiles; a program that pads fills the rows below each image. Shards lie where they are."""
    source, target = ends.source, ends.target
    filled = target.padded_shape[-2] - (1, *source.shape)[-2]  # a vector is one row
    images, columns = div_up(prod(source.shape[:-2]), ends.cores.num_cores()), target.padded_shape[-1]
    if ends.core_tile_rows is not None:  # of blocks, one in every image
        images, columns = prod(source.shape[:-2]), ends.width_tiles * TILE
        filled = min(filled, ends.core_tile_rows // images * TILE)
    row_bytes = columns * (source.data_format.element_bytes or 0)
    return Movement(
        cores=ends.cores,
        reads=None if ends.from_shards else got_at(ends.read, access),
        writes=None if ends.to_shards else got_at(ends.written, Access.WAIT),
        blocks=ends.tile_rows,
        stores=images * filled * div_up(row_bytes, WORD_BYTES) if pads else 0,
        tilized_tiles=ends.tile_rows * ends.width_tiles,
        formats=(ends.source.data_format, ends.target.data_format),
        width_tiles=ends.width_tiles,
    )


def untilize_pages(ends: Sides, access: Access) -> Movement:
    """Tiles become sticks; shards lie where they are."""
    return Movement(
        cores=ends.cores,
        reads=None if ends.from_shards else got_at(ends.read, Access.WAIT),
        writes=None if ends.to_shards else got_at(ends.written, access),
        blocks=ends.tile_rows,
        untilized_rows=ends.tile_rows,
        width_tiles=ends.width_tiles,
    )


def _sticks_are_aligned(pages: Pages, parts: int, spec: DeviceSpec) -> bool:
    """Whether every core's part of a stick may be read straight to its place (interleaved-to-sharded of 0.81.1).

    Args:
        pages: Parts of sticks, as long as a shard is wide.
    """
    alignment = spec.dram.alignment_bytes
    begins = parts == 1 or pages.page_bytes % alignment == 0
    return not pages.in_dram or (begins and round_up(pages.page_bytes, spec.l1.alignment_bytes) % alignment == 0)


MOST_BYTES = 1 << 18  # of a row that is copied at once


def copy_buffers(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of Copy: two pages on their way through each core, and two of the other format if there is one.

    Rows whose place is another are put together from pages of the source, one at a time.
    """
    read, written = source.buffer(spec), made.buffer(spec)
    if source.layout is Layout.ROW_MAJOR and source.memory_config != made.memory_config:
        cores = page_cores(source.volume // source.shape[-1], spec.grid)
        page_bytes = min(_aligned(written, spec), MOST_BYTES)
        return (
            paged_buffer("written", BUFFERING, page_bytes, made.data_format, cores),
            scratchpad("read", min(read.page_bytes, MOST_BYTES), source.data_format, cores),
        )
    cores = page_cores(_pages(made), spec.grid)
    pages = paged_buffer("read", BUFFERING, _aligned(read, spec), source.data_format, cores)
    if source.data_format == made.data_format:
        return (pages,)
    return pages, paged_buffer("written", BUFFERING, _aligned(written, spec), made.data_format, cores)


def clone_buffers(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of Clone: two pages on their way through each core."""
    page_bytes = _aligned(source.buffer(spec), spec)
    return (paged_buffer("pages", BUFFERING, page_bytes, source.data_format, page_cores(_pages(made), spec.grid)),)


def moved_buffers(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Circular buffers of Move: two pages on their way through each core."""
    page_bytes = _aligned(source.buffer(spec), spec)
    return (paged_buffer("pages", BUFFERING, page_bytes, source.data_format, _moving_cores(made, spec)),)


def overlapping_buffers(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """The same where both places overlap: all pages of a core, which are read before the first is written."""
    written = made.buffer(spec)
    held = div_up(written.size_bytes // written.page_bytes, spec.grid.cores)
    size = held * round_up(written.page_bytes, spec.l1.alignment_bytes)
    page_bytes = round_up(source.buffer(spec).page_bytes, spec.l1.alignment_bytes)
    return (
        CircularBuffer(
            name="pages",
            size_bytes=size,
            page_bytes=page_bytes,
            data_format=source.data_format,
            cores=_moving_cores(made, spec),
        ),
    )


def _moving_cores(made: TensorSpec, spec: DeviceSpec) -> CoreRangeSet:
    used = min(_pages(made), spec.grid.cores)
    return first_cores(used, spec.grid.cols, spec.grid.rows, row_wise=False)


def _pages(tensor: TensorSpec) -> int:
    """Tiles, or rows."""
    rows, columns = tensor.matrix
    return rows * columns // TILE**2 if tensor.layout is Layout.TILE else prod(tensor.padded_shape[:-1])


def _aligned(buffer: BufferSpec, spec: DeviceSpec) -> int:
    return aligned_page_bytes(buffer.page_bytes, buffer.buffer_type, spec)
