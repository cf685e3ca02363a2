"""Which pages the data movement programs of the library read and write, and how, by their tensors' layouts."""

from dataclasses import replace
from math import ceil, lcm, prod

from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout
from device.numbers.block_floats import div_up, round_up
from device.spec.device_spec import DeviceSpec
from device.time.network import NETWORKS, hands
from ops.programs.buffer_shapes import page_cores
from ops.programs.movement.cut_tiles import cut_from_tiles
from ops.programs.movement.ends import Ends, ends_of, got_at, in_pieces
from ops.programs.movement.movement import Access, Movement, Pages
from ops.programs.movement.segments import tile_map
from ops.programs.movement.tile_blocks import in_blocks, tile_blocks
from ops.programs.movement.work import Conversion, Window

WORD_BYTES = 4  # that a processor fills at a time
READ_AHEAD_PARTS = 512  # that all cores of an interleaved-to-sharded program share: tiles asked for before a wait
READ_AHEAD_PART_BYTES = 1152
RESHAPE_KERNELS = 2  # that share the sticks of a core
FOLD_KERNELS = 2  # that share the sticks of a shard
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
            return _copied(ends)
        case Conversion.TILIZE:
            return _tilized(ends, Access.STICKS if blocks is None else Access.BOUNCE)
        case Conversion.TILIZE_WITH_VAL_PADDING:
            return _tilized(ends, Access.WAIT if blocks is None else Access.BOUNCE, pads=True)
        case Conversion.UNTILIZE:
            return _untilized(ends, Access.ROWS)
        case Conversion.UNTILIZE_CODEGEN:
            return _untilized(in_pieces(ends, spec), Access.ROWS)
        case Conversion.UNTILIZE_WITH_UNPADDING:
            return _untilized(ends, Access.WAIT)


def copy_movement(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Movement:
    """A program that reads page by page and changes what it writes: zeros in the padding or around."""
    return _copied(ends_of(source, target, spec))


def cast_movement(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Movement:
    """A program that reads tile by tile and writes each in another format."""
    copied = _copied(ends_of(source, target, spec))
    tiles = 0 if copied.writes is None else copied.writes.core_pages
    return replace(copied, cast_tiles=tiles, formats=(source.data_format, target.data_format))


def slice_movement(
    source: TensorSpec, target: TensorSpec, spec: DeviceSpec, *, columns: tuple[int, int] | None = None
) -> Movement:
    """A program that cuts a window out of an image in DRAM.

    Args:
        target: The slice, in L1.
        columns: First column of the image that is read, and the one behind the last; all if not given.
    """
    ends = ends_of(source, target, spec)
    if ends.from_tiles:
        return cut_from_tiles(ends, columns)
    return Movement(cores=ends.cores, reads=got_at(ends.written, Access.STICKS, in_dram=True))


def slice_write_movement(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Movement:
    """A program that writes a slice into an image in DRAM.

    Args:
        source: The slice, in L1.
        target: The part of the image that it is written into, as a tensor of its own.
    """
    ends = ends_of(source, target, spec)
    access = Access.WAIT if ends.from_tiles else Access.BOX
    return Movement(cores=ends.cores, writes=got_at(ends.read, access, in_dram=True))


def written_part(image: TensorSpec, window: Window) -> TensorSpec:
    """The part of an image under a window, as a tensor of its own."""
    shape = (1, 1, prod(window.window_shape[:-1]), window.window_shape[-1])
    return TensorSpec(shape, image.data_format, image.layout, image.memory_config)


def reshape_movement(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Movement:
    """A program that moves rows between pages, since they lie differently under another shape."""
    ends = ends_of(source, target, spec)
    return _reshaped_tiles(ends) if ends.from_tiles else _reshaped_sticks(ends, spec)


def fold_movement(source: TensorSpec, target: TensorSpec, window: tuple[int, int], spec: DeviceSpec) -> Movement:
    """A program that lays the sticks of a window side by side.

    The processors of a core copy sticks of shards where they are. Tiles are untilized, and sticks of rows are waited
    for by windows.
    """
    ends = ends_of(source, target, spec)
    read, writes = ends.read, got_at(ends.written, Access.WAIT)
    if ends.from_tiles:
        return replace(_untilized(ends, Access.WAIT), writes=writes)
    if ends.from_shards and ends.to_shards:
        moved = replace(read, access=Access.LOCAL_STICKS, core_pages=div_up(read.core_pages, hands(spec, FOLD_KERNELS)))
        return Movement(cores=ends.cores, writes=moved)
    reads = replace(read, access=Access.WAIT, in_flight=prod(window))
    return Movement(cores=ends.cores, reads=reads, writes=writes, blocks=writes.core_pages)


def _into_shards(ends: Ends, spec: DeviceSpec, *, bounces_always: bool) -> Pages:
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


def _dealt_anew(ends: Ends) -> Pages:
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


def _copied(ends: Ends) -> Movement:
    """Every page is waited for, and written while the next one comes."""
    reads, writes = got_at(ends.read, Access.WAIT), got_at(ends.written, Access.WAIT)
    return Movement(cores=ends.cores, reads=reads, writes=writes, blocks=reads.core_pages)


def _shared_out(ends: Ends, spec: DeviceSpec) -> Movement:
    """The same with rows, or tiles, shared out over all cores, wherever shards lie."""
    rows = ends.source.matrix[0] if ends.source.layout is Layout.ROW_MAJOR else ends.read.all_pages
    cores = page_cores(rows, spec.grid)
    count = cores.num_cores()
    reads = replace(ends.read, access=Access.WAIT, core_pages=div_up(ends.read.all_pages, count))
    writes = replace(ends.written, access=Access.WAIT, core_pages=div_up(ends.written.all_pages, count))
    return Movement(cores=cores, reads=reads, writes=writes, blocks=div_up(rows, count))


def _reshaped_tiles(ends: Ends) -> Movement:
    """For each output tile its map and its input tiles, row by row, are waited for; then it is written."""
    counted = tile_map(ends.source.shape, ends.target.shape)
    tiles, fetched = ends.written.core_pages, 1 + counted.fetched
    all_pages = round(ends.written.all_pages * fetched)
    reads = replace(ends.read, access=Access.WAIT, core_pages=ceil(tiles * fetched), all_pages=all_pages)
    writes = got_at(ends.written, Access.WAIT)
    return Movement(cores=ends.cores, reads=reads, writes=writes, segments=round(tiles * counted.segments))


def _reshaped_sticks(ends: Ends, spec: DeviceSpec) -> Movement:
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


def _tilized(ends: Ends, access: Access, *, pads: bool = False) -> Movement:
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


def _untilized(ends: Ends, access: Access) -> Movement:
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
