"""Circular buffers of the programs that copy, redistribute, tilize and untilize tensors.

Interleaved tensors pass through a core page by page, or by rows of tiles, wide ones by blocks; shards lie where they
are. Source: tt-metal 0.81.1 (copy, clone, move, sharded, tilize, untilize and their padded kin), compared with recorded
plans.
"""

from math import prod

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import BufferSpec, TensorSpec, aligned_page_bytes
from device.memory.memory_config import TILE, BufferType, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import (
    BUFFERING,
    buffer,
    page_cores,
    paged_buffer,
    row_bytes,
    scratchpad,
    spread_evenly,
    tile_buffer,
)
from ops.programs.data_movement.copy import TILIZES, Conversion, TileBlocks, generated_pieces, tile_blocks

MOST_BYTES = 1 << 18  # of a row that is copied at once
STICKS = 4  # of the scratchpad in which sticks are aligned
HALF_TILE = 16  # columns of rows that have a writer of their own
HALF_TILES = 16  # tiles on their way to it

Buffers = tuple[CircularBuffer, ...]


def buffers_of_copy(
    conversion: Conversion, read: PlanTensor, written: PlanTensor, spec: DeviceSpec, *, on_one_core: bool = False
) -> Buffers:
    """Dataflow buffers of a program that is run by itself, not within a convolution."""
    source, target = read.spec, written.spec
    from_shards, in_shards = source.memory_config.is_sharded(), None
    match conversion:
        case Conversion.COPY:
            return _copy_buffers(source, target, spec)
        case Conversion.INTERLEAVED_TO_SHARDED | Conversion.SHARDED_TO_INTERLEAVED | Conversion.RESHARD:
            return _shard_buffers(conversion, read, written, spec)
        case Conversion.UNTILIZE_CODEGEN:  # two pieces of a row of tiles in, and two out
            cores, tiles = generated_pieces(source, spec)
            return _both_buffers("tiles", "rows", BUFFERING * tiles, source, target, cores)
        case Conversion.TILIZE if from_shards and not on_one_core:
            in_shards = _tilized_shards(read, written, spec)
        case Conversion.UNTILIZE if from_shards and not on_one_core:
            in_shards = _untilized_shards(read, written, spec)
        case Conversion.UNTILIZE_WITH_UNPADDING if from_shards:
            in_shards = _unpadded_shards(read, written, spec)
        case Conversion.TILIZE_WITH_VAL_PADDING if from_shards:
            on_one_core, in_shards = False, _padded_shards(read, written, spec)
    if in_shards is not None:
        return in_shards
    blocks = tile_blocks(conversion, source, target, spec, on_one_core=on_one_core)
    if blocks is not None:
        return _block_buffers(blocks, source, target, spec)
    untilizes, depth = conversion is Conversion.UNTILIZE, 1
    rows, across = (side // TILE for side in (target if conversion in TILIZES else source).matrix)
    if on_one_core:
        cores = first_cores(1, spec.grid.cols, spec.grid.rows)
        if untilizes and target.memory_config.is_sharded():
            across = _shard_tiles(target)[1]
    else:
        used, core_rows = spread_evenly(rows, spec.grid.cores)
        cores = first_cores(used, spec.grid.cols, spec.grid.rows, row_wise=untilizes).merged()
        depth = BUFFERING if core_rows > 1 and untilizes else 1
    return _both_buffers("argument", "result", depth * across, source, target, cores)


def _copy_buffers(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Buffers:
    """Two pages in transit through each core, and two of the other format if there is one.

    Rows that move to another place are put together from pages of the source, one at a time.
    """
    read, written = source.buffer(spec), target.buffer(spec)
    if source.layout is Layout.ROW_MAJOR and source.memory_config != target.memory_config:
        cores = page_cores(source.volume // source.shape[-1], spec.grid)
        page_bytes = min(_aligned(written, spec), MOST_BYTES)
        return (
            paged_buffer("written", BUFFERING, page_bytes, target.data_format, cores),
            scratchpad("read", min(read.page_bytes, MOST_BYTES), source.data_format, cores),
        )
    (pages,) = clone_buffers(source, target, spec)
    pages = pages._replace(name="read")
    if source.data_format == target.data_format:
        return (pages,)
    return pages, paged_buffer("written", BUFFERING, _aligned(written, spec), target.data_format, pages.cores)


def clone_buffers(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Buffers:
    """Dataflow buffers of Clone: two pages in transit through each core."""
    page_bytes = _aligned(source.buffer(spec), spec)
    return (paged_buffer("pages", BUFFERING, page_bytes, source.data_format, page_cores(_pages(target), spec.grid)),)


def move_buffers(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> tuple[Buffers, Buffers]:
    """Circular buffers of Move: two pages in transit through each core; and the buffers where both places overlap.

    With an overlap all pages of a core are read before the first is written.
    """
    read, written, alignment = source.buffer(spec), target.buffer(spec), spec.l1.alignment_bytes
    used = min(_pages(target), spec.grid.cores)
    cores = first_cores(used, spec.grid.cols, spec.grid.rows, row_wise=False)
    core_pages = div_up(written.size_bytes // written.page_bytes, spec.grid.cores)
    pages = paged_buffer("pages", BUFFERING, _aligned(read, spec), source.data_format, cores)
    size, page_bytes = core_pages * round_up(written.page_bytes, alignment), round_up(read.page_bytes, alignment)
    return (pages,), (pages._replace(size_bytes=size, page_bytes=page_bytes),)


def _pages(tensor: TensorSpec) -> int:
    """Pages of a tensor: its tiles, or its rows."""
    rows, columns = tensor.matrix
    return rows * columns // TILE**2 if tensor.layout is Layout.TILE else prod(tensor.padded_shape[:-1])


def _aligned(buffer: BufferSpec, spec: DeviceSpec) -> int:
    return aligned_page_bytes(buffer.page_bytes, buffer.buffer_type, spec)


def _both_buffers(
    first: str, second: str, tiles: int, read: TensorSpec, written: TensorSpec, cores: CoreRangeSet
) -> Buffers:
    return tile_buffer(first, tiles, read.data_format, cores), tile_buffer(second, tiles, written.data_format, cores)


def _block_buffers(blocks: TileBlocks, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Buffers:
    """A row of tiles of a block, in and out; sticks of a block are aligned in a scratchpad on their way in."""
    tiles: Buffers = ()
    pads: Buffers = ()
    for width, cores in blocks.cores_by_width(spec).items():
        tiles += _both_buffers("argument", "result", width, read, written, cores)
        if read.layout is Layout.ROW_MAJOR:
            stick_bytes = row_bytes(read, width * TILE) + 2 * spec.dram.alignment_bytes
            pads = (scratchpad("sticks", stick_bytes, read.data_format, cores), *pads)
    return (*tiles, *pads)


def _tilized_shards(read: PlanTensor, written: PlanTensor, spec: DeviceSpec) -> Buffers | None:
    """Shards that stay in their scheme, and rows of whole tiles for L1; None of others."""
    before, after = read.spec.memory_config, written.spec.memory_config
    view = _view("argument", read, spec)
    if before.memory_layout is after.memory_layout:
        return view, _view("result", written, spec)
    by_height = before.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    if not by_height or after != MemoryConfig(buffer_type=BufferType.L1) or read.spec.shards.shape[0] % TILE:
        return None
    return view, tile_buffer("result", written.spec.matrix[1] // TILE, written.spec.data_format, view.cores)


def _padded_shards(read: PlanTensor, written: PlanTensor, spec: DeviceSpec) -> Buffers | None:
    """WIDTH shards that are padded and stay: the rows of an image in transit, and a stick of the padding; else None."""
    places = {tensor.spec.memory_config.memory_layout for tensor in (read, written)}
    if places != {TensorMemoryLayout.WIDTH_SHARDED} or len(written.spec.shape) == 1:
        return None
    before, after = read.spec.shards, written.spec.shards
    if (before.grid, before.shape[1]) != (after.grid, after.shape[1]):
        return None
    across, view = _shard_tiles(written.spec)[1], _view("result", written, spec)
    tiles = BUFFERING * written.spec.padded_shape[-2] // TILE * across
    return (
        tile_buffer("argument", tiles, read.spec.data_format, view.cores),
        view,
        scratchpad("padding", row_bytes(read.spec, across * TILE), read.spec.data_format, before.grid),
    )


def _untilized_shards(read: PlanTensor, written: PlanTensor, spec: DeviceSpec) -> Buffers:
    """Both shards where they stay; otherwise rows of tiles in transit."""
    if read.spec.memory_config == written.spec.memory_config:
        return _view("argument", read, spec), _view("result", written, spec)
    high, across = _shard_tiles(read.spec)
    tiles, cores = (BUFFERING if high > 1 else 1) * across, read.spec.data_cores
    argument, result = _both_buffers("argument", "result", tiles, read.spec, written.spec, cores)
    if any(side % part for side, part in zip(read.spec.matrix, read.spec.shards.shape, strict=True)):
        return argument, result
    return _view("argument", read, spec, cores), result


def _unpadded_shards(read: PlanTensor, written: PlanTensor, spec: DeviceSpec) -> Buffers:
    """The shards, and all rows of an image at a time if they stay shards, else one row."""
    high, across = _shard_tiles(read.spec)
    view = _view("argument", read, spec)
    if not written.spec.memory_config.is_sharded():
        return view, tile_buffer("result", BUFFERING * across, written.spec.data_format, view.cores)
    by_width = read.spec.memory_config.memory_layout is TensorMemoryLayout.WIDTH_SHARDED
    if by_width or images_of_shard(read.spec):
        high = read.spec.padded_shape[-2] // TILE
    is_half_tile = written.spec.padded_shape[-1] == HALF_TILE and written.spec.shape[-2] % TILE == 0
    tiles = HALF_TILES if is_half_tile else BUFFERING * high * across
    result, rows, shard_rows = _view("result", written, spec), written.spec.matrix[0], written.spec.shards.shape[0]
    last = rows - (div_up(rows, shard_rows) - 1) * shard_rows  # the buffer is as long as the last shard
    return (
        view,
        tile_buffer("rows", tiles, written.spec.data_format, view.cores),
        result._replace(size_bytes=result.size_bytes // shard_rows * last),
    )


def _shard_tiles(tensor: TensorSpec) -> tuple[int, int]:
    """Tiles down and across a shard."""
    rows, columns = tensor.shards.shape
    return div_up(rows, TILE), div_up(columns, TILE)


def _view(name: str, tensor: PlanTensor, spec: DeviceSpec, cores: CoreRangeSet | None = None) -> CircularBuffer:
    """A buffer on the shards of a tensor, with as many pages as the shards."""
    shards, data_format = tensor.spec.shards, tensor.spec.data_format
    page_bytes, size = data_format.tile_bytes, prod(shards.shape) * data_format.tile_bytes // TILE**2
    if tensor.spec.layout is Layout.ROW_MAJOR:
        page_bytes = row_bytes(tensor.spec, shards.shape[1])
        size = shards.shape[0] * round_up(page_bytes, spec.l1.alignment_bytes)
    view = buffer(name, size, data_format, shards.grid if cores is None else cores, tensor.name)
    return view._replace(page_bytes=page_bytes)


def _shard_buffers(conversion: Conversion, read: PlanTensor, written: PlanTensor, spec: DeviceSpec) -> Buffers:
    """Buffers of the programs between shards and interleaved memory or other shards.

    A view of the shards, and as many tiles of the other format if there is one; sticks on their way into shards are
    aligned in a scratchpad, and so are HEIGHT shards of rows that L1 would align, two of which a reshard has room for.
    """
    shards, other = (read, written) if conversion is Conversion.SHARDED_TO_INTERLEAVED else (written, read)
    view = _view("shards", shards, spec, shards.spec.data_cores)
    pads: Buffers = ()
    if conversion is Conversion.INTERLEAVED_TO_SHARDED and written.spec.layout is Layout.ROW_MAJOR:
        alignment_bytes = spec.dram.alignment_bytes
        stick = round_up(view.page_bytes, alignment_bytes) + alignment_bytes
        pads = (scratchpad("sticks", STICKS * stick, view.data_format, view.cores)._replace(page_bytes=stick),)
    if conversion is Conversion.RESHARD:
        view = view._replace(size_bytes=resharded_bytes(written.spec, view.size_bytes, spec))
        row = read.spec.buffer(spec)
        by_height = read.spec.memory_config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
        if by_height and read.spec.layout is Layout.ROW_MAJOR and _aligned(row, spec) != row.page_bytes:
            pages, page_bytes = BUFFERING * read.spec.shards.shape[0], _aligned(row, spec)
            pads = (paged_buffer("unaligned", pages, page_bytes, view.data_format, view.cores),)
    if shards.spec.data_format == other.spec.data_format:
        return (view, *pads)
    return view, tile_buffer("converted", view.size_bytes // view.page_bytes, other.spec.data_format, view.cores)


def resharded_bytes(target: TensorSpec, shard_bytes: int, spec: DeviceSpec) -> int:
    """Bytes of a reshard's view of a shard: as many whole aligned pages as the tensor's unaligned bytes fill."""
    tensor = target.buffer(spec)
    page_bytes = _aligned(tensor, spec)
    return min(shard_bytes, tensor.size_bytes // page_bytes * page_bytes)


def images_of_shard(source: TensorSpec) -> int:
    """Whole images that a HEIGHT shard holds, if it holds several, whatever is left over; otherwise 0."""
    shards = source.memory_config.shard_spec
    if shards is None or source.memory_config.memory_layout is not TensorMemoryLayout.HEIGHT_SHARDED:
        return 0
    images = shards.shape[0] // source.padded_shape[-2]
    return images if images > 1 else 0
