"""Data movement programs as the pages that each side reads and writes: what their cycles are counted from."""

from dataclasses import dataclass, replace
from enum import Enum
from math import prod

from device.cores import CoreRangeSet, first_cores
from device.layouts import BufferType, Layout, TensorSpec
from device.rounding import div_up, round_up
from device.spec import DeviceSpec
from device.tiles import TILE

SEGMENTS_OF_A_ROW = 2  # a row of a tile lies in two faces
BOUNCES_IN_FLIGHT = 4  # sticks on their way through the scratchpad of an interleaved-to-sharded program


class Access(Enum):
    """How a core gets at pages.

    Attributes:
        STREAM: One request after the other.
        STICKS: The same for rows of a row-major tensor.
        BOX: Pages of a part of an image, or rows that come out of tiles: an address is worked out for each.
        WAIT: Every page is waited for.
        BOUNCE: The same, and it is copied once more within L1.
        LOCAL: Within the core, in one piece.
        LOCAL_STICKS: Within the core, stick by stick.
    """

    STREAM = "stream"
    STICKS = "sticks"
    BOX = "box"
    WAIT = "wait"
    BOUNCE = "bounce"
    LOCAL = "local"
    LOCAL_STICKS = "local sticks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Pages that one side of a movement reads or writes.

    Attributes:
        access: How.
        core_pages: Pages of the core with most of them.
        page_bytes: Bytes of a page.
        all_pages: Pages of all cores.
        tiles: They are tiles; otherwise sticks.
        in_dram: They are in DRAM; otherwise in L1.
        in_flight: Pages asked for before the first of them is waited for, where pages are waited for.
    """

    access: Access
    core_pages: int
    page_bytes: int
    all_pages: int
    tiles: bool
    in_dram: bool
    in_flight: int = 1

    @property
    def all_bytes(self) -> int:
        """Bytes of all cores."""
        return self.all_pages * self.page_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """One data movement program.

    Attributes:
        cores: Cores that take part.
        reads: What they read; None if their input is in place already.
        writes: What they write; None if their output is in place already.
        tilised_tiles: Tiles a core makes of sticks.
        tilise_formats: Names of the formats before and after that.
        untilised_rows: Rows of tiles a core makes sticks of.
        width_tiles: Tiles of such a row.
        segments: Pieces of rows a core moves between tiles.
        reshards: Shards are dealt anew.
    """

    cores: CoreRangeSet
    reads: Pages | None = None
    writes: Pages | None = None
    tilised_tiles: int = 0
    tilise_formats: tuple[str, str] = ("bfloat16", "bfloat16")
    untilised_rows: int = 0
    width_tiles: int = 1
    segments: int = 0
    reshards: bool = False


def movement_of(
    operation: str,
    source: TensorSpec,
    target: TensorSpec,
    spec: DeviceSpec,
    *,
    window: tuple[int, int] | None = None,
    bounces_always: bool = False,
) -> Movement:
    """The program that makes one tensor of another.

    Args:
        operation: Name of the device operation, with or without its common ending.
        source: What is read.
        target: What is written; for a slice that is written, the slice alone.
        spec: The machine.
        window: First column of an image that a slice reads, and the one behind its last; all if not given.
        bounces_always: Interleaved-to-sharded programs copy every stick twice and one at a time, aligned or not, as
            the library did on Blackhole until 2025; release 0.81.1 does not.

    Raises:
        ValueError: There is no model of such an operation.
    """
    cores = _cores(source, target, spec)
    count = cores.num_cores()
    read, written = _pages(source, count), _pages(target, count)
    width = (target if target.layout is Layout.TILE else source).matrix[1]
    width_tiles = div_up(_shard_width(source, target, width), TILE)
    tile_rows = div_up(read.all_pages if source.layout is Layout.TILE else written.all_pages, width_tiles * count)
    sharded = (source.memory_config.is_sharded(), target.memory_config.is_sharded())
    formats = (source.data_format.name, target.data_format.name)
    in_tiles = source.layout is Layout.TILE
    slice_rows = _tile_rows_under(written.core_pages, source.shape[-2], window)
    match operation.removesuffix("DeviceOperation").removesuffix("Partial"):
        case "InterleavedToSharded":
            moved = replace(written, all_pages=min(read.all_pages, written.all_pages), in_dram=read.in_dram)
            if in_tiles:
                return Movement(cores=cores, reads=_as(moved, Access.STREAM))
            if bounces_always:
                return Movement(cores=cores, reads=_as(moved, Access.BOUNCE))
            if _sticks_are_aligned(moved, written.all_pages // target.matrix[0], spec):
                return Movement(cores=cores, reads=_as(moved, Access.STICKS))
            return Movement(cores=cores, reads=replace(moved, access=Access.BOUNCE, in_flight=BOUNCES_IN_FLIGHT))
        case "ShardedToInterleaved":
            moved = replace(read, all_pages=min(read.all_pages, written.all_pages), in_dram=written.in_dram)
            return Movement(cores=cores, writes=_as(moved, Access.STREAM if in_tiles else Access.STICKS))
        case "Reshard":
            return Movement(cores=cores, reads=_as(written, Access.STREAM), reshards=True)
        case "Move" if all(sharded):
            return Movement(cores=cores, reads=_as(read, Access.LOCAL))
        case "Move" | "Copy" | "Typecast" | "FillPad" | "Pad":
            return Movement(cores=cores, reads=_as(read, Access.WAIT), writes=_as(written, Access.STREAM))
        case "Tilize" | "TilizeWithValPadding" as name:
            access = Access.STICKS if name == "Tilize" else Access.WAIT
            return Movement(
                cores=cores,
                reads=None if sharded[0] else _as(read, access),
                writes=None if sharded[1] else _as(written, Access.STREAM),
                tilised_tiles=tile_rows * width_tiles,
                tilise_formats=formats,
                width_tiles=width_tiles,
            )
        case "Untilize" | "UntilizeCodegen" | "UntilizeWithUnpadding" as name:
            access = Access.BOX if written.in_dram else Access.STICKS
            access = Access.WAIT if name == "UntilizeWithUnpadding" else access
            return Movement(
                cores=cores,
                reads=None if sharded[0] else _as(read, Access.STREAM),
                writes=None if sharded[1] else _as(written, access),
                untilised_rows=tile_rows,
                width_tiles=width_tiles,
            )
        case "PaddedSlice" if in_tiles:
            return Movement(
                cores=cores,
                reads=_as(_tiles_under(read, source, target, slice_rows), Access.STREAM),
                writes=_as(written, Access.LOCAL_STICKS),
                untilised_rows=slice_rows,
                width_tiles=width_tiles,
            )
        case "PaddedSlice":
            return Movement(cores=cores, reads=_as(written, Access.STICKS, in_dram=True))
        case "SliceWrite":
            return Movement(cores=cores, writes=_as(read, Access.BOX, in_dram=True))
        case "ReshapeView" | "Reshape" if in_tiles:
            segments = written.core_pages * SEGMENTS_OF_A_ROW * min(TILE, target.padded_shape[-2], source.shape[-2])
            return Movement(cores=cores, reads=_as(written, Access.WAIT), segments=segments)
        case "ReshapeView" | "Reshape":
            return Movement(cores=cores, reads=_as(read, Access.WAIT), writes=_as(written, Access.WAIT))
        case other:
            raise ValueError(f"there is no model of {other}; known are conversions, moves, slices and reshapes")


def _sticks_are_aligned(pages: Pages, parts: int, spec: DeviceSpec) -> bool:
    """Whether every core's part of a stick may be read straight to its place (interleaved-to-sharded of 0.81.1).

    Args:
        pages: Parts of sticks, as long as a shard is wide.
        parts: Parts of a stick.
        spec: The machine.
    """
    alignment = spec.dram.alignment_bytes
    begins = parts == 1 or pages.page_bytes % alignment == 0
    return not pages.in_dram or (begins and round_up(pages.page_bytes, spec.l1.alignment_bytes) % alignment == 0)


def _as(pages: Pages, access: Access, *, in_dram: bool | None = None) -> Pages:
    """The same pages, got at in some way."""
    return replace(pages, access=access, in_dram=pages.in_dram if in_dram is None else in_dram)


def _pages(tensor: TensorSpec, cores: int) -> Pages:
    """All pages of a tensor."""
    rows, cols = tensor.matrix
    shards = tensor.memory_config.shard_spec
    if tensor.layout is Layout.TILE:
        page_bytes, across = tensor.data_format.tile_bytes, div_up(cols, TILE)
        rows = div_up(rows, TILE)
        shard_pages = 0 if shards is None else div_up(shards.shape[0], TILE) * div_up(shards.shape[1], TILE)
    else:
        width = cols if shards is None else min(cols, shards.shape[1])
        page_bytes, across = width * (tensor.data_format.element_bytes or 0), div_up(cols, width)
        shard_pages = 0 if shards is None else shards.shape[0]
    return Pages(
        access=Access.STREAM,
        core_pages=shard_pages or div_up(rows * across, cores),
        page_bytes=page_bytes,
        all_pages=rows * across,
        tiles=tensor.layout is Layout.TILE,
        in_dram=tensor.memory_config.buffer_type is BufferType.DRAM,
    )


def _tile_rows_under(sticks: int, image_cols: int, window: tuple[int, int] | None) -> int:
    """Rows of tiles under the sticks of a core: every image row of a slice begins and ends within tiles of its own."""
    begin, end = (0, image_cols) if window is None else window
    if (begin, end) == (0, image_cols) and image_cols % TILE == 0:
        return div_up(sticks, TILE)
    spanned = (end - 1) // TILE - begin // TILE + 1
    return div_up(sticks * spanned, end - begin)


def _tiles_under(read: Pages, source: TensorSpec, target: TensorSpec, core_rows: int) -> Pages:
    """The tiles under a slice."""
    width = source.matrix[1]
    across = div_up(_shard_width(target, target, width), TILE)
    tile_rows = div_up(prod(target.shape[:-1]), TILE)
    return replace(read, core_pages=core_rows * across, all_pages=tile_rows * div_up(width, TILE), in_dram=True)


def _shard_width(source: TensorSpec, target: TensorSpec, width: int) -> int:
    """Columns of a core's part."""
    for tensor in (source, target):
        if tensor.memory_config.shard_spec is not None:
            return min(width, tensor.memory_config.shard_spec.shape[1])
    return width


def _cores(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> CoreRangeSet:
    """The cores of the shards; for interleaved tensors as many as have work, in tile rows where the layout changes."""
    for tensor in (target, source):
        if tensor.memory_config.shard_spec is not None:
            return tensor.memory_config.shard_spec.grid
    whole_rows = source.layout is not target.layout
    work = div_up(source.matrix[0], TILE) if whole_rows else _pages(target, 1).all_pages
    per_core = div_up(work, spec.grid.cores)
    return first_cores(div_up(work, per_core), spec.grid.cols, spec.grid.rows)
