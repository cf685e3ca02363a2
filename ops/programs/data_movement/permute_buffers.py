"""Buffers of permute and transpose programs, and the shards of their results.

Source: tt-metal 0.81.1 (data_movement/permute, transpose and common), compared with recorded plans.
"""

from dataclasses import replace
from math import prod

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec, aligned_page_bytes
from device.memory.memory_config import (
    L1_MEMORY_CONFIG,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import (
    BUFFERING,
    buffer,
    page_alignment_bytes,
    page_cores,
    row_bytes,
    sized_buffers,
    volume_tiles,
)

FACE_ROW = 16  # elements of a row of a face


def keeps_tiles(axes: tuple[int, ...]) -> bool:
    """Whether tiles stay whole, transposed or not: the last two axes stay the last two."""
    return set(axes[-2:]) == {len(axes) - 2, len(axes) - 1}


def permute_buffers(
    source: TensorSpec, target: TensorSpec, axes: tuple[int, ...], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program: rows that stay whole, tiles that do, or blocks of both axes that are last.

    A row of a face of a number fills tiles that are left ragged; short reads of blocks need room to be aligned.
    """
    data_format, rank, last = source.data_format, len(axes), axes[-1]
    page, element_bytes = BUFFERING * data_format.tile_bytes, data_format.element_bytes or 1  # block floats are bytes
    alignment = page_alignment_bytes(source.memory_config, spec)
    moved, columns, rows = source.shape[last], source.shape[-1], prod(source.shape[:-1])
    blocks = rows // moved * div_up(moved, TILE) * div_up(columns, TILE)
    fill = {"fill": FACE_ROW * element_bytes} if source.shape[axes[-2]] % TILE else {}
    if source.layout is Layout.ROW_MAJOR:
        stays, row = last == rank - 1, round_up(row_bytes(source, columns), alignment)
        sizes = {"rows": BUFFERING * row} if stays else dict.fromkeys(("read", "turned", "tiled"), page)
        pages = rows if stays else blocks
    elif keeps_tiles(axes):
        sizes, pages = {"tiles": page} if last == rank - 1 else {"tiles": page, "turned": page}, volume_tiles(target)
    elif last >= rank - 2:  # rows of tiles go elsewhere, turned or not
        turns = last == rank - 2
        sizes = {"tiles": page, **fill, "turned": page} if turns else {"tiles": page, **fill}
        pages = max(volume_tiles(source), volume_tiles(target) // (target.padded_shape[-1 if turns else -2] // TILE))
    else:
        size = page + BUFFERING * max(0, alignment - FACE_ROW * element_bytes)
        sizes = {**dict.fromkeys(("read", "tiled", "turned"), size), **fill}
        pages = max(blocks, volume_tiles(target) // (target.padded_shape[-2] // TILE))
    return sized_buffers(sizes, data_format, page_cores(pages, spec.grid))


Shape = tuple[int, ...]

LAST_TWO, MIDDLE_TWO = (2, 3), (1, 2)  # axes of a tensor of rank 4 that are swapped


def is_native(tensor: TensorSpec, place: MemoryConfig | None = None) -> bool:
    """Whether programs swap axes of a tensor's shards where they lie.

    The shards are in L1, not BLOCK, all of them full, and their rows fill whole tiles' worth. The place of the result
    meets the same conditions on the same cores.
    """
    shard_spec = tensor.memory_config.shard_spec
    if shard_spec is None or not _side_is_native(tensor.memory_config, tensor.layout):
        return False
    rows, columns = tensor.matrix
    if rows % shard_spec.shape[0] or columns % shard_spec.shape[1]:
        return False
    if place is None:
        return True
    same = place.shard_spec is None or place.shard_spec.grid == shard_spec.grid
    return same and _side_is_native(place, tensor.layout)


def _side_is_native(place: MemoryConfig, layout: Layout) -> bool:
    by_blocks = place.memory_layout is TensorMemoryLayout.BLOCK_SHARDED
    if not place.is_sharded() or place.buffer_type is BufferType.DRAM or by_blocks:
        return False
    shards = place.shard_spec
    return layout is Layout.TILE or shards is None or prod(shards.shape) % TILE**2 == 0


def place_of_swap(tensor: TensorSpec, swapped: tuple[int, int]) -> MemoryConfig:
    """The place of a tensor of rank 4 with two axes swapped: without shards where the program chooses them."""
    place, shards = tensor.memory_config, tensor.memory_config.shard_spec
    if not place.is_sharded():
        return place
    if shards is None or not is_native(tensor):
        return MemoryConfig(place.memory_layout, place.buffer_type)
    before = tensor.padded_shape
    if swapped == LAST_TWO:
        if before[:2] == (1, 1) and shards.shape[1] == before[3]:
            turned = replace(shards, shape=(shards.shape[1], shards.shape[0]))
            return MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, place.buffer_type, turned)
        after = (before[0], before[1], before[3], before[2])
    elif swapped == MIDDLE_TWO and tensor.layout is Layout.TILE:
        after = (before[0], tensor.shape[2], round_up(tensor.shape[1], TILE), before[3])
    else:
        return place
    adjusted_shards = adjusted(shards, before, after)
    if adjusted_shards is None or (tensor.layout is Layout.TILE and any(side % TILE for side in adjusted_shards.shape)):
        return L1_MEMORY_CONFIG
    return replace(place, shard_spec=adjusted_shards)


def adjusted(shards: ShardSpec, before: Shape, after: Shape) -> ShardSpec | None:
    """The same number of shards for another shape; None if a shard has no whole number of rows or columns."""
    rows, left = divmod(shards.shape[0] * prod(after[:-1]), prod(before[:-1]))
    columns, over = divmod(shards.shape[1] * after[-1], before[-1])
    return None if left or over else replace(shards, shape=(rows, columns))


def with_shards(tensor: TensorSpec, after: Shape, place: MemoryConfig, spec: DeviceSpec) -> MemoryConfig:
    """A place with shards for a tensor of padded shape `after`: its own, adjusted, or whole tiles for all cores.

    `place` is returned as it is if it needs no shards or has some.
    """
    if not place.is_sharded() or place.shard_spec is not None:
        return place
    shard_spec = tensor.memory_config.shard_spec
    if shard_spec is not None and tensor.memory_config.memory_layout is place.memory_layout:
        fitted = adjusted(shard_spec, tensor.padded_shape, after)
        if fitted is not None and (tensor.layout is not Layout.TILE or not any(side % TILE for side in fitted.shape)):
            return replace(place, shard_spec=fitted)
    orientation = ShardOrientation.ROW_MAJOR if shard_spec is None else shard_spec.orientation
    return replace(place, shard_spec=even_shards(after, place.memory_layout, orientation, spec.grid))


def even_shards(shape: Shape, layout: TensorMemoryLayout, orientation: ShardOrientation, grid: GridSpec) -> ShardSpec:
    """Shards of whole tiles that share a tensor evenly on all cores, without empty shards."""
    rows, columns, along = prod(shape[:-1]), shape[-1], orientation is ShardOrientation.ROW_MAJOR
    by_blocks = layout is TensorMemoryLayout.BLOCK_SHARDED
    if by_blocks:
        down, across = (grid.rows, grid.cols) if along else (grid.cols, grid.rows)
    else:
        down, across = (grid.cores, 1) if layout is TensorMemoryLayout.HEIGHT_SHARDED else (1, grid.cores)
    shard = (round_up(div_up(rows, down), TILE), round_up(div_up(columns, across), TILE))
    high, wide = div_up(rows, shard[0]), div_up(columns, shard[1])
    cores = first_cores(high * wide, grid.cols, grid.rows, row_wise=along)
    if by_blocks:
        x, y = (wide, high) if along else (high, wide)
        cores = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(x - 1, y - 1)))
    return ShardSpec(cores, shard, orientation)


FACE_ELEMENTS = 256  # of the number that fills ragged tiles
SPLIT_TILES = 8  # tiles down an image in shards beyond which its result is put together on the way


def swapped_shape(tensor: TensorSpec, swapped: tuple[int, int]) -> Shape:
    """The padded shape of a tensor of rank 4 whose two axes are swapped: tiles get padding of their own."""
    shape = list(tensor.shape if tensor.layout is Layout.TILE else tensor.padded_shape)
    shape[swapped[0]], shape[swapped[1]] = shape[swapped[1]], shape[swapped[0]]
    if tensor.layout is Layout.ROW_MAJOR:
        return tuple(shape)
    return TensorSpec(shape, tensor.data_format, tensor.layout).padded_shape


def transpose_buffers(
    source: PlanTensor, target: PlanTensor, swapped: tuple[int, int], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Buffers of the program, in order of allocation: dataflow buffers, unless some are views of rows.

    Where shards hold whole rows, or images, sticks stay where they lie; an image passes as tiles. Other rows that are
    swapped are gathered, all rows of a core, at multiples of the larger page of both sides.
    """
    tensor, rows, tile_bytes = source.spec, source.spec.layout is Layout.ROW_MAJOR, source.spec.data_format.tile_bytes
    after, data_format = swapped_shape(tensor, swapped), tensor.data_format
    high, wide = (div_up(side, TILE) for side in tensor.shape[-2:])
    tiles, views = {"tiles": BUFFERING}, tuple[CircularBuffer, ...]()
    if swapped == LAST_TWO and rows:
        pages = prod(tensor.shape[:2])
        tiles = {"rows": BUFFERING * wide, "turned": BUFFERING * high, "image": high * wide}
        if _images_stay(tensor, target.spec, after):
            views = _row_views(source, target)
            column = {"column": high, "turned": BUFFERING * high} if high > SPLIT_TILES else {}
            tiles = {"rows": BUFFERING * wide, "image": high * wide, **column}
    elif swapped == LAST_TWO:
        if _turns_shards(tensor, target.spec, after):  # as many tiles as a shard of the source has, on all cores
            cores = first_cores(spec.grid.cores, spec.grid.cols, spec.grid.rows)
            return _views(source, target, prod(tensor.shards.shape) // TILE**2 * tile_bytes, cores)
        tiles, pages = {"tiles": BUFFERING, "turned": BUFFERING}, volume_tiles(tensor)
    elif swapped == MIDDLE_TWO and rows:
        if _rows_stay(tensor, target.spec, after):
            return _row_views(source, target)
        lines = prod(tensor.shape[:-1])
        stick = max(
            row_bytes(tensor, tensor.shape[-1]),
            *(_aligned_page(side, spec) for side in (tensor, target.spec)),
        )
        gathered = {"rows": div_up(lines, spec.grid.cores) * stick}
        return sized_buffers(gathered, data_format, page_cores(lines, spec.grid))
    elif swapped == MIDDLE_TWO:
        pages = max(volume_tiles(tensor), volume_tiles(target.spec) // (target.spec.padded_shape[-2] // TILE))
    else:
        page, pages = (row_bytes(tensor), tensor.matrix[0]) if rows else (tile_bytes, volume_tiles(tensor))
        return sized_buffers({"pages": BUFFERING * page}, data_format, page_cores(pages, spec.grid))
    cores = views[0].cores if views else page_cores(pages, spec.grid)
    sizes = {name: count * tile_bytes for name, count in tiles.items()}
    if swapped == MIDDLE_TWO and tensor.shape[1] % TILE:
        sizes["fill"] = FACE_ELEMENTS * (data_format.element_bytes or 0)
    return (*views, *sized_buffers(sizes, data_format, cores))


def _aligned_page(tensor: TensorSpec, spec: DeviceSpec) -> int:
    return aligned_page_bytes(tensor.buffer(spec).page_bytes, tensor.memory_config.buffer_type, spec)


def _row_views(source: PlanTensor, target: PlanTensor) -> tuple[CircularBuffer, ...]:
    """Views of as many sticks as a shard of the source has."""
    tensor, shards = source.spec, source.spec.shards
    return _views(source, target, shards.shape[0] * row_bytes(tensor, tensor.shape[-1]), shards.grid)


def _views(source: PlanTensor, target: PlanTensor, size: int, cores: CoreRangeSet) -> tuple[CircularBuffer, ...]:
    data_format = source.spec.data_format
    return tuple(buffer(tensor.name, size, data_format, cores, tensor.name) for tensor in (source, target))


def _rows_stay(source: TensorSpec, target: TensorSpec, after: Shape) -> bool:
    """Whether shards on both sides hold whole rows that the program reorders in place."""
    if target.memory_config.shard_spec is None or not is_native(source, target.memory_config):
        return False
    return source.shards.shape[1] == source.padded_shape[-1] and target.shards.shape[1] == after[-1]


def _images_stay(source: TensorSpec, target: TensorSpec, after: Shape) -> bool:
    whole_rows = _rows_stay(source, target, after)
    return whole_rows and source.shards.shape[0] % source.padded_shape[-2] == target.shards.shape[0] % after[-2] == 0


def _turns_shards(source: TensorSpec, target: TensorSpec, after: Shape) -> bool:
    """Whether tiles are transposed in their shards: whole images, or the rows of an image that become columns."""
    if target.memory_config.shard_spec is None or not is_native(source, target.memory_config):
        return False
    alone = source.padded_shape[:2] == (1, 1) and source.shards.shape[1] == source.padded_shape[-1]
    return _images_stay(source, target, after) or (alone and target.shards.shape[0] == after[-2])
