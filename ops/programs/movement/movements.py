"""Which pages the data movement programs of the library read and write, and how, by their tensors' layouts."""

from dataclasses import dataclass, replace
from math import prod

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout
from device.memory.tiles import TILE
from device.numbers.integers import div_up, round_up
from device.spec.device_spec import DeviceSpec
from ops.programs.movement.movement import Access, Movement, Pages
from ops.programs.movement.work import Conversion, Window

SEGMENTS_OF_A_ROW = 2  # a row of a tile lies in two faces
BOUNCES_IN_FLIGHT = 4  # sticks on their way through the scratchpad of an interleaved-to-sharded program


def relayout_movement(
    conversion: Conversion,
    source: TensorSpec,
    target: TensorSpec,
    spec: DeviceSpec,
    *,
    bounces_always: bool = False,
) -> Movement:
    """A program that puts a tensor in another place or another order of bytes.

    Args:
        conversion: Which.
        source: What is read.
        target: What is written.
        spec: The machine.
        bounces_always: Interleaved-to-sharded programs copy every stick twice and one at a time, aligned or not, as
            the library did on Blackhole until 2025; release 0.81.1 does not.
    """
    ends = _ends(source, target, spec)
    cores, read, written = ends.cores, ends.read, ends.written
    match conversion:
        case Conversion.INTERLEAVED_TO_SHARDED:
            return Movement(cores=cores, reads=_into_shards(ends, spec, bounces_always=bounces_always))
        case Conversion.SHARDED_TO_INTERLEAVED:
            moved = replace(read, all_pages=min(read.all_pages, written.all_pages), in_dram=written.in_dram)
            return Movement(cores=cores, writes=_as(moved, Access.STREAM if ends.from_tiles else Access.STICKS))
        case Conversion.RESHARD:
            return Movement(cores=cores, reads=_as(written, Access.STREAM), reshards=True)
        case Conversion.MOVE if ends.from_shards and ends.to_shards:
            return Movement(cores=cores, reads=_as(read, Access.LOCAL))
        case Conversion.MOVE | Conversion.COPY | Conversion.PAD:
            return _copied(ends)
        case Conversion.TILIZE:
            return _tilized(ends, Access.STICKS)
        case Conversion.TILIZE_WITH_VAL_PADDING:
            return _tilized(ends, Access.WAIT)
        case Conversion.UNTILIZE | Conversion.UNTILIZE_CODEGEN:
            return _untilized(ends, Access.BOX if written.in_dram else Access.STICKS)
        case Conversion.UNTILIZE_WITH_UNPADDING:
            return _untilized(ends, Access.WAIT)


def copy_movement(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Movement:
    """A program that reads page by page and changes what it writes: another format, zeros in the padding or around."""
    return _copied(_ends(source, target, spec))


def slice_movement(
    source: TensorSpec, target: TensorSpec, spec: DeviceSpec, *, columns: tuple[int, int] | None = None
) -> Movement:
    """A program that cuts a window out of an image in DRAM.

    Args:
        source: The image.
        target: The slice, in L1.
        spec: The machine.
        columns: First column of the image that is read, and the one behind the last; all if not given.
    """
    ends = _ends(source, target, spec)
    if ends.from_tiles:
        return _cut_from_tiles(ends, columns)
    return Movement(cores=ends.cores, reads=_as(ends.written, Access.STICKS, in_dram=True))


def slice_write_movement(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Movement:
    """A program that writes a slice into an image in DRAM.

    Args:
        source: The slice, in L1.
        target: The part of the image that it is written into, as a tensor of its own.
        spec: The machine.
    """
    ends = _ends(source, target, spec)
    return Movement(cores=ends.cores, writes=_as(ends.read, Access.BOX, in_dram=True))


def written_part(image: TensorSpec, window: Window) -> TensorSpec:
    """The part of an image under a window, as a tensor of its own."""
    shape = (1, 1, prod(window.window_shape[:-1]), window.window_shape[-1])
    return TensorSpec(shape, image.data_format, image.layout, image.memory_config)


def reshape_movement(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Movement:
    """A program that moves rows between pages, since they lie differently under another shape."""
    ends = _ends(source, target, spec)
    if ends.from_tiles:
        segments = ends.written.core_pages * SEGMENTS_OF_A_ROW * min(TILE, target.padded_shape[-2], source.shape[-2])
        return Movement(cores=ends.cores, reads=_as(ends.written, Access.WAIT), segments=segments)
    return Movement(cores=ends.cores, reads=_as(ends.read, Access.WAIT), writes=_as(ends.written, Access.WAIT))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ends:
    """Both sides of a movement.

    Attributes:
        source: What is read.
        target: What is written.
        cores: Cores that take part.
        read: Pages of the source.
        written: Pages of the target.
        width_tiles: Tiles across a core's part.
    """

    source: TensorSpec
    target: TensorSpec
    cores: CoreRangeSet
    read: Pages
    written: Pages
    width_tiles: int

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
        tiles = self.read.all_pages if self.from_tiles else self.written.all_pages
        return div_up(tiles, self.width_tiles * self.cores.num_cores())


def _ends(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> _Ends:
    """Both sides of a movement."""
    cores = _cores(source, target, spec)
    width = (target if target.layout is Layout.TILE else source).matrix[1]
    return _Ends(
        source=source,
        target=target,
        cores=cores,
        read=_pages(source, cores.num_cores()),
        written=_pages(target, cores.num_cores()),
        width_tiles=div_up(_shard_width(source, target, width), TILE),
    )


def _into_shards(ends: _Ends, spec: DeviceSpec, *, bounces_always: bool) -> Pages:
    """What an interleaved-to-sharded program reads."""
    read, written = ends.read, ends.written
    moved = replace(written, all_pages=min(read.all_pages, written.all_pages), in_dram=read.in_dram)
    if ends.from_tiles:
        return _as(moved, Access.STREAM)
    if bounces_always:
        return _as(moved, Access.BOUNCE)
    if _sticks_are_aligned(moved, written.all_pages // ends.target.matrix[0], spec):
        return _as(moved, Access.STICKS)
    return replace(moved, access=Access.BOUNCE, in_flight=BOUNCES_IN_FLIGHT)


def _copied(ends: _Ends) -> Movement:
    """Every page is waited for, and written while the next one comes."""
    return Movement(cores=ends.cores, reads=_as(ends.read, Access.WAIT), writes=_as(ends.written, Access.STREAM))


def _tilized(ends: _Ends, access: Access) -> Movement:
    """Sticks become tiles; shards lie where they are."""
    return Movement(
        cores=ends.cores,
        reads=None if ends.from_shards else _as(ends.read, access),
        writes=None if ends.to_shards else _as(ends.written, Access.STREAM),
        tilized_tiles=ends.tile_rows * ends.width_tiles,
        tilize_formats=(ends.source.data_format, ends.target.data_format),
        width_tiles=ends.width_tiles,
    )


def _untilized(ends: _Ends, access: Access) -> Movement:
    """Tiles become sticks; shards lie where they are."""
    return Movement(
        cores=ends.cores,
        reads=None if ends.from_shards else _as(ends.read, Access.STREAM),
        writes=None if ends.to_shards else _as(ends.written, access),
        untilized_rows=ends.tile_rows,
        width_tiles=ends.width_tiles,
    )


def _cut_from_tiles(ends: _Ends, columns: tuple[int, int] | None) -> Movement:
    """The sticks of a slice come out of the tiles that it touches."""
    rows = _tile_rows_under(ends.written.core_pages, ends.source.shape[-2], columns)
    return Movement(
        cores=ends.cores,
        reads=_as(_tiles_under(ends.read, ends.source, ends.target, rows), Access.STREAM),
        writes=_as(ends.written, Access.LOCAL_STICKS),
        untilized_rows=rows,
        width_tiles=ends.width_tiles,
    )


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


def _tile_rows_under(sticks: int, image_cols: int, columns: tuple[int, int] | None) -> int:
    """Rows of tiles under the sticks of a core: every image row of a slice begins and ends within tiles of its own."""
    begin, end = (0, image_cols) if columns is None else columns
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
