"""A data movement program as the pages that each side reads and writes: what its cycles are counted from."""

from dataclasses import dataclass, replace
from enum import Enum

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout
from device.numbers.formats import BFLOAT16, DataFormat, div_up
from device.spec.device_spec import DeviceSpec
from ops.programs.buffer_shapes import dealt_evenly


class Access(Enum):
    """How a core gets at pages."""

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

    access: Access
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
    reshards: bool = False  # Shards are dealt anew


MOST_ROW_BYTES = 800_000  # of two rows of bfloat16 tiles that generated code untilizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Both sides of a movement."""

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


def ends_of(source: TensorSpec, target: TensorSpec, spec: DeviceSpec, *, on_one_core: bool = False) -> Sides:
    """Both sides of a movement; of interleaved tensors one core may be to do all."""
    sharded = source.memory_config.is_sharded() or target.memory_config.is_sharded()
    alone = on_one_core and not sharded
    cores = first_cores(1, spec.grid.cols, spec.grid.rows) if alone else _cores(source, target, spec)
    width = (target if target.layout is Layout.TILE else source).matrix[1]
    return Sides(
        source=source,
        target=target,
        cores=cores,
        read=pages_of(source, cores.num_cores()),
        written=pages_of(target, cores.num_cores()),
        width_tiles=div_up(shard_width(source, target, width), TILE),
    )


def in_pieces(ends: Sides, spec: DeviceSpec) -> Sides:
    """Both sides of a program of generated code, each core of which has pieces of rows of tiles (`dealt_pieces`)."""
    cores, piece_tiles = dealt_pieces(ends.source, spec)
    pieces = div_up(ends.width_tiles, piece_tiles)
    core_rows = div_up(ends.source.matrix[0] // TILE * pieces, cores.num_cores())
    page_bytes = min(ends.written.page_bytes, piece_tiles * TILE * (ends.target.data_format.element_bytes or 0))
    return replace(
        ends,
        cores=cores,
        width_tiles=piece_tiles,
        core_tile_rows=core_rows,
        read=replace(ends.read, core_pages=core_rows * piece_tiles),
        written=replace(
            ends.written,
            core_pages=core_rows * TILE,
            page_bytes=page_bytes,
            all_pages=div_up(ends.written.all_bytes, page_bytes),
        ),
    )


def fits_generated_code(tiles: TensorSpec) -> bool:
    """Whether generated code untilizes interleaved tiles: older programs take wide tensors of several rows of tiles."""
    rows, columns = tiles.matrix
    return rows <= TILE or 2 * columns // TILE * BFLOAT16.tile_bytes <= MOST_ROW_BYTES


def dealt_pieces(source: TensorSpec, spec: DeviceSpec) -> tuple[CoreRangeSet, int]:
    """The cores of the program that makes rows of interleaved tiles by generated code, and the tiles of a piece.

    A row of tiles is cut into as many equal pieces as give every piece a core of its own; a tensor of one row of tiles
    into pieces that differ by a tile, of which this is the longer. Rows stay whole where there are more of them than
    cores, or where the program drops padding.
    """
    tile_rows, across = source.matrix[0] // TILE, source.matrix[1] // TILE
    pieces = 1
    if source.shape == source.padded_shape:
        most = min(spec.grid.cores // tile_rows, across)
        pieces = most if tile_rows == 1 else next((count for count in range(most, 1, -1) if across % count == 0), 1)
    cores = first_cores(min(tile_rows * pieces, spec.grid.cores), spec.grid.cols, spec.grid.rows)
    return cores, div_up(across, pieces)


def got_at(pages: Pages, access: Access, *, in_dram: bool | None = None) -> Pages:
    """The same pages, got at in some way."""
    return replace(pages, access=access, in_dram=pages.in_dram if in_dram is None else in_dram)


def pages_of(tensor: TensorSpec, cores: int) -> Pages:
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


def shard_width(source: TensorSpec, target: TensorSpec, width: int) -> int:
    """Columns of a core's part."""
    for tensor in (source, target):
        if tensor.memory_config.shard_spec is not None:
            return min(width, tensor.memory_config.shard_spec.shape[1])
    return width


def _cores(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> CoreRangeSet:
    """The cores that hold shards; of interleaved tensors as many as have work, in tile rows if the layout changes."""
    for tensor in (target, source):
        if tensor.memory_config.shard_spec is not None:
            return tensor.data_cores
    whole_rows = source.layout is not target.layout
    op = div_up(source.matrix[0], TILE) if whole_rows else pages_of(target, 1).all_pages
    used, _ = dealt_evenly(op, spec.grid.cores)
    return first_cores(used, spec.grid.cols, spec.grid.rows)


def copy_movement(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Movement:
    """A program that reads page by page and changes what it writes: zeros in the padding or around."""
    return copy_pages(ends_of(source, target, spec))


def copy_pages(ends: Sides) -> Movement:
    """Every page is waited for, and written while the next one comes."""
    reads, writes = got_at(ends.read, Access.WAIT), got_at(ends.written, Access.WAIT)
    return Movement(cores=ends.cores, reads=reads, writes=writes, blocks=reads.core_pages)
