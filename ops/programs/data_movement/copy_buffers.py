"""Circular buffers of the programs that copy, redistribute, tilize and untilize tensors.

Interleaved tensors pass through a core by page, by rows of tiles, or for wide rows by blocks; shards are processed in
place. Source: tt-metal 0.81.1 (copy, clone, move, sharded, tilize, untilize and their padded variants), compared with
recorded plans.
"""

from itertools import chain
from math import gcd, prod
from typing import Final

from device.cores import CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import L1_MEMORY_CONFIG, TILE, Layout, TensorMemoryLayout as Scheme, ragged_tiles
from device.numbers.formats import div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import FreeL1, PlanTensor
from ops.programs.buffer_shapes import (
    BUFFERING,
    aligned_page,
    in_dram,
    is_uneven,
    page_alignment_bytes,
    page_cores,
    paged_buffer,
    paged_view,
    row_bytes,
    scratchpad,
    shard_buffers,
    spread_evenly,
    tile_buffer,
    volume_tiles,
)
from ops.programs.data_movement.copy import (
    TILIZES,
    Conversion,
    generated_depths,
    generated_pieces,
    tile_blocks,
    tiles_alone,
)

MOST_BYTES = 1 << 18  # of a row that is copied at once
TILES_OF_SOME_CORES = 2  # of a row of tiles that some cores untilize, on their way through each
HALF_TILE = 16  # columns of rows that have a writer of their own, and tiles on their way to it

ENDS: Final = ("argument", "result")

Buffers = tuple[CircularBuffer, ...]


def buffers_of_copy(
    conversion: Conversion,
    read: PlanTensor,
    written: PlanTensor,
    spec: DeviceSpec,
    *,
    on_one_core: bool = False,
    by_tile: bool = False,
    free_l1: FreeL1 | None = None,
    within: CoreRangeSet | None = None,
) -> Buffers:
    """Dataflow buffers of a program outside of a convolution.

    Programs that tilize or untilize have rows of tiles of both tensors, blocks of such rows, or views of shards. A
    single core has the part of a row of tiles that fits half of its L1, at least a tile.
    """
    source, target = read.spec, written.spec
    tilizes, untilizes = conversion in TILIZES, conversion is Conversion.UNTILIZE
    match conversion:
        case Conversion.COPY:
            return _copy_buffers(source, target, spec)
        case Conversion.INTERLEAVED_TO_SHARDED | Conversion.SHARDED_TO_INTERLEAVED | Conversion.RESHARD:
            return shard_buffers(read, written, spec)
        case Conversion.UNTILIZE_CODEGEN:
            cores, tiles = generated_pieces(source, spec)
            read_depth, written_depth = generated_depths(source, target, spec, free_l1) or (1, 1)
            return (
                tile_buffer("tiles", read_depth * tiles, source.data_format, cores),
                tile_buffer("rows", written_depth * tiles, target.data_format, cores),
            )
    if untilizes and within is not None:
        return _both(ENDS, TILES_OF_SOME_CORES, source, target, _cores_of_a_row(source, spec, within))
    if source.memory_config.is_sharded() and within is None and not (on_one_core and untilizes) and not by_tile:
        on_one_core, in_shards = False, _buffers_in_shards(conversion, read, written, spec)
        if in_shards is not None:
            return in_shards
    blocks = tile_blocks(conversion, source, target, spec, on_one_core=on_one_core, free_l1=free_l1, within=within)
    if blocks is not None:  # sticks are aligned in a scratchpad on their way in
        by_width = blocks.cores_by_width(spec)
        step = blocks.step
        tiles_of_blocks = [_both(ENDS, min(width, step), source, target, cores) for width, cores in by_width.items()]
        room, in_rows = 2 * spec.dram.alignment_bytes, source.layout is Layout.ROW_MAJOR
        pads = [
            scratchpad("sticks", row_bytes(source, min(width, step) * TILE) + room, source.data_format, cores)
            for width, cores in reversed(by_width.items())
            if in_rows
        ]
        return (*chain.from_iterable(tiles_of_blocks), *pads)
    rows, across = (side // TILE for side in (target if tilizes else source).matrix)
    if on_one_core:
        cores, depth = page_cores(1, spec.grid, within=within), 1
        if untilizes and target.memory_config.is_sharded():
            across = _shard_tiles(target)[1]
        across = 1 if by_tile else tiles_alone(conversion, source, target, across, spec)
    else:
        used, core_rows = spread_evenly(rows, spec.grid.cores if within is None else within.num_cores())
        cores = page_cores(used, spec.grid, row_wise=untilizes, within=within)
        pair_bytes = across * (source.data_format.tile_bytes + target.data_format.tile_bytes)
        twice = core_rows > 1 and BUFFERING * pair_bytes <= spec.l1.usable_bytes
        depth = BUFFERING if twice and untilizes else 1
    return _both(ENDS, depth * across, source, target, cores)


def _cores_of_a_row(source: TensorSpec, spec: DeviceSpec, within: CoreRangeSet) -> CoreRangeSet:
    """The cores, of some that may be used, that untilize as many tiles each of a single row of tiles."""
    tiles = source.matrix[1] // TILE
    count = next(cores for cores in range(min(within.num_cores(), tiles), 0, -1) if tiles % cores == 0)
    return page_cores(count, spec.grid, row_wise=True, within=within)


def _copy_buffers(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Buffers:
    """Two pages in transit through each core, and two pages of the other format if it differs.

    Rows that move to another memory are assembled from pages of the source, one at a time; if there are fewer rows than
    cores, they move in the largest parts that divide the pages of both sides.
    """
    page_bytes, data_format = aligned_page(target, spec), target.data_format
    if source.layout is Layout.ROW_MAJOR and source.memory_config != target.memory_config:
        width = prod(source.shape[-1:])
        rows, row, part = source.volume // width, row_bytes(source, width), _common_part(source, target, spec)
        if rows < spec.grid.cores and part < row:
            cores = page_cores(rows * div_up(row, part), spec.grid)
            return (paged_buffer("parts", BUFFERING, part, data_format, cores),)
        cores, read_bytes = page_cores(rows, spec.grid), source.buffer(spec).page_bytes
        return (
            paged_buffer("written", BUFFERING, min(page_bytes, MOST_BYTES), data_format, cores),
            scratchpad("read", min(read_bytes, MOST_BYTES), source.data_format, cores),
        )
    cores = page_cores(_pages(target), spec.grid)
    if stays(source, target):
        cores = first_cores(cores.num_cores(), spec.grid.cols, spec.grid.rows, row_wise=False)
    read = paged_buffer("read", BUFFERING, aligned_page(source, spec), source.data_format, cores)
    if source.data_format == data_format:
        return (read,)
    return read, paged_buffer("written", BUFFERING, page_bytes, data_format, cores)


def _common_part(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> int:
    """Bytes of the largest part that divides the pages of rows in both memories; a whole row if it is not aligned."""
    row, sides, alignment = row_bytes(source, prod(source.shape[-1:])), [], 1
    for tensor in (source, target):
        cuts = tensor.memory_config.memory_layout in (Scheme.WIDTH_SHARDED, Scheme.BLOCK_SHARDED)
        sides.append(row_bytes(tensor, tensor.shards.shape[1]) if cuts else row)
        alignment = max(alignment, page_alignment_bytes(tensor.memory_config, spec))
    part = gcd(*sides)
    return part if part <= MOST_BYTES and part % alignment == 0 else row


def stays(source: TensorSpec, target: TensorSpec) -> bool:
    """Whether Copy writes to the same memory config, with circular buffers."""
    return source.memory_config == target.memory_config


def clone_buffers(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> Buffers:
    """Dataflow buffers of Clone: two pages in transit through each core, of both formats, or on the cores of shards."""
    shards = target.memory_config.shard_spec
    cores = page_cores(_pages(target), spec.grid) if shards is None else shards.grid
    pages = paged_buffer("pages", BUFFERING, aligned_page(source, spec), source.data_format, cores)
    if source.data_format == target.data_format:
        return (pages,)
    return pages, tile_buffer("converted", BUFFERING, target.data_format, cores)


def move_buffers(source: TensorSpec, target: TensorSpec, spec: DeviceSpec) -> tuple[Buffers, Buffers]:
    """Circular buffers of Move: two pages in transit through each core, and the buffers if source and target overlap.

    With an overlap all pages of a core are read before the first is written.
    """
    written, alignment = target.buffer(spec), spec.l1.alignment_bytes
    cores = first_cores(min(_pages(target), spec.grid.cores), spec.grid.cols, spec.grid.rows, row_wise=False)
    pages = paged_buffer("pages", BUFFERING, aligned_page(source, spec), source.data_format, cores)
    core_pages = div_up(written.size_bytes // written.page_bytes, spec.grid.cores)
    size, page_bytes = core_pages * round_up(written.page_bytes, alignment), source.buffer(spec).page_bytes
    return (pages,), (pages._replace(size_bytes=size, page_bytes=round_up(page_bytes, alignment)),)


def _pages(tensor: TensorSpec) -> int:
    """Pages of a tensor: its tiles, or its rows."""
    return volume_tiles(tensor) if tensor.layout is Layout.TILE else prod(tensor.padded_shape[:-1])


def _both(names: tuple[str, str], tiles: int, read: TensorSpec, written: TensorSpec, cores: CoreRangeSet) -> Buffers:
    """As many tiles of both tensors."""
    ends = zip(names, (read, written), strict=True)
    return tuple(tile_buffer(name, tiles, tensor.data_format, cores) for name, tensor in ends)


def _buffers_in_shards(
    conversion: Conversion, read: PlanTensor, written: PlanTensor, spec: DeviceSpec
) -> Buffers | None:
    """Buffers of a program that tilizes or untilizes shards in place; None if it treats them like other tensors."""
    (source, target), (high, across) = (read.spec, written.spec), _shard_tiles(read.spec)
    before, after = (tensor.memory_config.memory_layout for tensor in (source, target))
    argument, out_format = paged_view("argument", read, spec), target.data_format
    if conversion in TILIZES and (in_dram(source) or in_dram(target)):
        return None
    if conversion is Conversion.TILIZE:
        if ragged_tiles(source.shards) is not None:
            return None
        argument = argument._replace(page_bytes=source.data_format.tile_bytes)  # rows are read as tiles
        if before is after:
            return argument, paged_view("result", written, spec)
        whole_rows = before is Scheme.HEIGHT_SHARDED and source.shards.shape[0] % TILE == 0
        if not whole_rows or target.memory_config != L1_MEMORY_CONFIG:
            return None
        return argument, tile_buffer("result", target.matrix[1] // TILE, out_format, argument.cores)
    if conversion is Conversion.TILIZE_WITH_VAL_PADDING:
        # WIDTH shards that stay: the rows of an image in transit, and a stick of the padding
        if not before is after is Scheme.WIDTH_SHARDED or len(target.shape) == 1:
            return None
        result, across = paged_view("result", written, spec), _shard_tiles(target)[1]
        if (argument.cores, source.shards.shape[1]) != (result.cores, target.shards.shape[1]):
            return None
        tiles = BUFFERING * (target.padded_shape[-2] // TILE) * across
        padding = scratchpad("padding", row_bytes(source, across * TILE), source.data_format, argument.cores)
        return tile_buffer("argument", tiles, source.data_format, result.cores), result, padding
    if conversion is Conversion.UNTILIZE:
        if source.memory_config == target.memory_config and not in_dram(source):  # rows are written as tiles
            return argument, paged_view("result", written, spec)._replace(page_bytes=out_format.tile_bytes)
        cores, tiles = source.data_cores, (BUFFERING if high > 1 else 1) * across
        in_transit, result = _both(ENDS, tiles, source, target, cores)
        passes = in_dram(source) or is_uneven(source)
        return in_transit if passes else paged_view("argument", read, spec, cores), result
    if not target.memory_config.is_sharded():
        return argument, tile_buffer("result", BUFFERING * across, out_format, argument.cores)
    if before is Scheme.WIDTH_SHARDED or images_of_shard(source):  # all rows of an image at a time
        high = source.padded_shape[-2] // TILE
    is_half_tile = target.padded_shape[-1] == HALF_TILE and target.shape[-2] % TILE == 0 and before is after
    tiles = HALF_TILE if is_half_tile else BUFFERING * high * across
    in_transit = tile_buffer("rows", tiles, out_format, argument.cores)
    if before is not after:
        return argument, in_transit  # to the cores that have these rows in the other scheme
    result, rows, shard_rows = paged_view("result", written, spec), target.matrix[0], target.shards.shape[0]
    last = rows - (div_up(rows, shard_rows) - 1) * shard_rows  # the buffer is as long as the last shard
    result = result._replace(size_bytes=result.size_bytes // shard_rows * last)
    return argument, in_transit, result


def _shard_tiles(tensor: TensorSpec) -> tuple[int, int]:
    """Tiles down and across a shard."""
    rows, columns = tensor.shards.shape
    return div_up(rows, TILE), div_up(columns, TILE)


def images_of_shard(source: TensorSpec) -> int:
    """Number of whole images in a HEIGHT shard if it has several, ignoring a remainder; otherwise 0."""
    shards = source.memory_config.shard_spec
    if shards is None or source.memory_config.memory_layout is not Scheme.HEIGHT_SHARDED:
        return 0
    images = shards.shape[0] // source.padded_shape[-2]
    return images if images > 1 else 0
