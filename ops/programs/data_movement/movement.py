"""A data movement program as the pages that each side reads and writes: what its cycles are counted from."""

from dataclasses import dataclass, replace
from enum import Enum

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout
from device.numbers.formats import BFLOAT16, DataFormat, div_up
from device.spec.device_spec import DeviceSpec
from ops.programs.buffer_shapes import dealt_evenly, row_bytes


class Access(Enum):
    """How a core accesses pages."""

    STREAM = "stream"  # One request after the other
    STICKS = "sticks"  # The same for rows of a row-major tensor; those read from DRAM are waited for in groups
    ROWS = "rows"  # Sticks that come out of a row of tiles, written where they belong; the row is waited for
    BOX = "box"  # Sticks of a part of an image: an address is worked out for each
    WAIT = "wait"  # Every page, or every group of pages, is waited for
    BOUNCE = "bounce"  # The same, and it is copied once more within L1
    LOCAL = "local"  # Within the core, in one piece
    LOCAL_STICKS = "local sticks"  # Within the core, stick by stick


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Pages that one side of a movement reads or writes."""

    access: Access = Access.STREAM
    core_pages: int  # Pages of the core with most of them
    page_bytes: int
    all_pages: int
    tiles: bool  # They are tiles; otherwise sticks
    in_dram: bool  # They are in DRAM; otherwise in L1
    in_flight: int = 1  # Pages asked for before the first of them is waited for, where pages are waited for

    @property
    def all_bytes(self) -> int:
        """Bytes of all cores."""
        return self.all_pages * self.page_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """One data movement program."""

    cores: CoreRangeSet  # Cores that take part
    reads: Pages | None = None  # What they read; None if their input is in place already
    writes: Pages | None = None  # What they write; None if their output is in place already
    blocks: int = 1  # Blocks that a core's stages hand on to each other; 1 if each begins when the one before has ended
    tilized_tiles: int = 0  # Tiles a core makes of sticks
    # The formats before and after that, or before and after a cast
    formats: tuple[DataFormat, DataFormat] = (BFLOAT16, BFLOAT16)
    untilized_rows: int = 0  # Rows of tiles a core makes sticks of
    width_tiles: int = 1  # Tiles of such a row
    cast_tiles: int = 0  # Tiles a core casts to another format
    segments: int = 0  # Pieces of rows a core moves between pages
    stores: int = 0  # Words that a processor fills, or bytes that it copies by itself
    reshards: bool = False  # Shards are redistributed

    @property
    def sides(self) -> tuple[Pages, ...]:
        """The read pages and the written pages, if there are any."""
        return tuple(pages for pages in (self.reads, self.writes) if pages is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Both tensors of a movement, and the cores between them."""

    source: TensorSpec  # What is read
    target: TensorSpec  # What is written
    cores: CoreRangeSet  # Cores that take part
    read: Pages  # Pages of the source
    written: Pages  # Pages of the target
    width_tiles: int  # Tiles across a core's part
    # Rows of tiles of a core that has parts of them; None where it has whole rows or shards
    core_tile_rows: int | None = None

    @property
    def from_tiles(self) -> bool:
        """Whether tiles are read."""
        return self.source.layout is Layout.TILE

    @property
    def from_shards(self) -> bool:
        """Whether the source is sharded."""
        return self.source.memory_config.is_sharded()

    @property
    def to_shards(self) -> bool:
        """Whether the target is sharded."""
        return self.target.memory_config.is_sharded()

    @property
    def tile_rows(self) -> int:
        """Rows of tiles of a core."""
        if self.core_tile_rows is not None:
            return self.core_tile_rows
        tiles = self.read.all_pages if self.from_tiles else self.written.all_pages
        return div_up(tiles, self.width_tiles * self.cores.num_cores())


def sides_of(source: TensorSpec, target: TensorSpec, spec: DeviceSpec, *, on_one_core: bool = False) -> Sides:
    """Both sides of a movement.

    The cores are those that hold shards; of interleaved tensors one, or as many as have pages of the target, or whole
    rows of tiles where the layout changes.
    """
    sharded = next((tensor for tensor in (target, source) if tensor.memory_config.shard_spec is not None), None)
    if sharded is not None:
        cores = sharded.data_cores
    else:
        changes = source.layout is not target.layout
        items = div_up(source.matrix[0], TILE) if changes else pages_of(target, 1).all_pages
        used = 1 if on_one_core else dealt_evenly(items, spec.grid.cores)[0]
        cores = first_cores(used, spec.grid.cols, spec.grid.rows)
    width = (target if target.layout is Layout.TILE else source).matrix[1]
    return Sides(
        source=source,
        target=target,
        cores=cores,
        read=pages_of(source, cores.num_cores()),
        written=pages_of(target, cores.num_cores()),
        width_tiles=div_up(shard_width(width, source, target), TILE),
    )


def pages_of(tensor: TensorSpec, cores: int) -> Pages:
    """All pages of a tensor that cores share."""
    (rows, cols), shards, tiled = tensor.matrix, tensor.memory_config.shard_spec, tensor.layout is Layout.TILE
    width = shard_width(cols, tensor)
    if tiled:
        page_bytes, pages = tensor.data_format.tile_bytes, div_up(rows, TILE) * div_up(cols, TILE)
    else:
        page_bytes, pages = row_bytes(tensor, width), rows * div_up(cols, width)
    shard_pages = 0
    if shards is not None:
        high, wide = shards.shape
        shard_pages = div_up(high, TILE) * div_up(wide, TILE) if tiled else high
    return Pages(
        core_pages=shard_pages or div_up(pages, cores),
        page_bytes=page_bytes,
        all_pages=pages,
        tiles=tiled,
        in_dram=tensor.memory_config.buffer_type is BufferType.DRAM,
    )


def shard_width(width: int, *tensors: TensorSpec) -> int:
    """Columns of a core's part of a tensor `width` wide: those of the first sharded tensor, if there is one."""
    shards = (tensor.memory_config.shard_spec for tensor in tensors)
    return next((min(width, shard_spec.shape[1]) for shard_spec in shards if shard_spec is not None), width)


def copy_movement(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Movement:
    """A program that reads page by page and changes what it writes: zeros in the padding or around."""
    return copy_pages(sides_of(source, target, spec))


def copy_pages(sides: Sides) -> Movement:
    """Every page is waited for, and written while the next page arrives."""
    reads, writes = replace(sides.read, access=Access.WAIT), replace(sides.written, access=Access.WAIT)
    return Movement(cores=sides.cores, reads=reads, writes=writes, blocks=reads.core_pages)
