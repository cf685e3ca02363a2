"""The buffers of programs that put axes in another order, and the shards that their results go to.

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
    volume_tiles,
)

FACE_ROW = 16  # elements of a row of a face


def keeps_tiles(axes: tuple[int, ...]) -> bool:
    """Whether whole tiles go elsewhere, turned or not: the last two axes stay the last two."""
    return set(axes[-2:]) == {len(axes) - 2, len(axes) - 1}


def permute_buffers(
    source: TensorSpec, made: TensorSpec, axes: tuple[int, ...], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program: rows that stay whole, tiles that do, or blocks of both axes that are last."""
    if source.layout is Layout.ROW_MAJOR:
        return _row_buffers(source, axes, spec)
    if keeps_tiles(axes):
        return _tile_buffers(source, axes, volume_tiles(made), spec)
    if axes[-1] in (len(axes) - 2, len(axes) - 1):
        return _tile_row_buffers(source, made, axes, spec)
    return _block_buffers(source, made, axes, spec)


def _row_buffers(source: TensorSpec, axes: tuple[int, ...], spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    data_format, columns = source.data_format, source.shape[-1]
    rows = prod(source.shape[:-1])
    if axes[-1] == len(axes) - 1:
        page = round_up(row_bytes(source, columns), page_alignment_bytes(source.memory_config, spec))
        return (buffer("rows", BUFFERING * page, data_format, page_cores(rows, spec.grid)),)
    moved = source.shape[axes[-1]]
    cores = page_cores(rows // moved * div_up(moved, TILE) * div_up(columns, TILE), spec.grid)
    size = BUFFERING * data_format.tile_bytes
    return tuple(buffer(name, size, data_format, cores) for name in ("read", "turned", "tiled"))


def _tile_buffers(
    source: TensorSpec, axes: tuple[int, ...], tiles: int, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Two tiles, and two that are turned if the last two axes are swapped."""
    names = ("tiles",) if axes[-1] == len(axes) - 1 else ("tiles", "turned")
    cores, size = page_cores(tiles, spec.grid), BUFFERING * source.data_format.tile_bytes
    return tuple(buffer(name, size, source.data_format, cores) for name in names)


def _tile_row_buffers(
    source: TensorSpec, made: TensorSpec, axes: tuple[int, ...], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Two tiles whose rows, or columns, go elsewhere; a row of a number where they leave a tile ragged."""
    rank, data_format = len(axes), source.data_format
    turns = axes[-1] == rank - 2
    high = made.padded_shape[-1 if turns else -2]
    cores = page_cores(max(volume_tiles(source), volume_tiles(made) // (high // TILE)), spec.grid)
    whole = buffer("tiles", BUFFERING * data_format.tile_bytes, data_format, cores)
    fill = (_fill(source, whole),) if source.shape[axes[-2]] % TILE else ()
    turned = (buffer("turned", whole.size_bytes, data_format, cores),) if turns else ()
    return whole, *fill, *turned


def _block_buffers(
    source: TensorSpec, made: TensorSpec, axes: tuple[int, ...], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Blocks of both axes that are last, before and behind, in three stages; short reads need room to be aligned."""
    data_format, moved, columns = source.data_format, source.shape[axes[-1]], source.shape[-1]
    others = prod(source.shape[:-1]) // moved
    blocks = others * div_up(moved, TILE) * div_up(columns, TILE)
    cores = page_cores(max(blocks, volume_tiles(made) // (made.padded_shape[-2] // TILE)), spec.grid)
    short = page_alignment_bytes(source.memory_config, spec) - FACE_ROW * (data_format.element_bytes or 1)
    size = BUFFERING * (data_format.tile_bytes + max(0, short))
    stages = tuple(buffer(name, size, data_format, cores) for name in ("read", "tiled", "turned"))
    return (*stages, _fill(source, stages[0])) if source.shape[axes[-2]] % TILE else stages


def _fill(source: TensorSpec, beside: CircularBuffer) -> CircularBuffer:
    """A row of a face of the number that fills tiles."""
    element_bytes = source.data_format.element_bytes or 1  # block floats count as bytes
    return buffer("fill", FACE_ROW * element_bytes, source.data_format, beside.cores)


Shape = tuple[int, ...]

LAST_TWO, MIDDLE_TWO = (2, 3), (1, 2)  # axes of a tensor of rank 4 that are swapped


def is_native(tensor: TensorSpec, place: MemoryConfig | None = None) -> bool:
    """Whether programs swap axes of a tensor's shards where they lie.

    Args:
        tensor: Its shards are in L1, no blocks, all of them full, and rows in them fill whole tiles' worth.
        place: Where the result goes; the same is asked of it, and its cores are the tensor's.
    """
    held = tensor.memory_config.shard_spec
    if held is None or not _side_is_native(tensor.memory_config, tensor.layout):
        return False
    rows, columns = tensor.matrix
    if rows % held.shape[0] or columns % held.shape[1]:
        return False
    if place is None:
        return True
    same = place.shard_spec is None or place.shard_spec.grid == held.grid
    return same and _side_is_native(place, tensor.layout)


def _side_is_native(place: MemoryConfig, layout: Layout) -> bool:
    by_blocks = place.memory_layout is TensorMemoryLayout.BLOCK_SHARDED
    if not place.is_sharded() or place.buffer_type is BufferType.DRAM or by_blocks:
        return False
    shards = place.shard_spec
    return layout is Layout.TILE or shards is None or prod(shards.shape) % TILE**2 == 0


def place_of_swap(tensor: TensorSpec, swapped: tuple[int, int]) -> MemoryConfig:
    """Where a tensor of rank 4 goes whose two axes are swapped: without shards where the program is to choose them."""
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
    held = adjusted(shards, before, after)
    if held is None or (tensor.layout is Layout.TILE and any(side % TILE for side in held.shape)):
        return L1_MEMORY_CONFIG
    return replace(place, shard_spec=held)


def adjusted(shards: ShardSpec, before: Shape, after: Shape) -> ShardSpec | None:
    """As many shards as before, each its part of another shape; None if that is no whole number of rows or columns."""
    rows, left = divmod(shards.shape[0] * prod(after[:-1]), prod(before[:-1]))
    columns, over = divmod(shards.shape[1] * after[-1], before[-1])
    return None if left or over else replace(shards, shape=(rows, columns))


def with_shards(tensor: TensorSpec, after: Shape, place: MemoryConfig, spec: DeviceSpec) -> MemoryConfig:
    """A place with shards for what a tensor becomes: its own, adjusted to another shape, or whole tiles for all cores.

    Args:
        after: Padded shape of what it becomes.
        place: Where that goes; it is returned if it needs no shards, or has some.
    """
    if not place.is_sharded() or place.shard_spec is not None:
        return place
    held = tensor.memory_config.shard_spec
    if held is not None and tensor.memory_config.memory_layout is place.memory_layout:
        fitted = adjusted(held, tensor.padded_shape, after)
        if fitted is not None and (tensor.layout is not Layout.TILE or not any(side % TILE for side in fitted.shape)):
            return replace(place, shard_spec=fitted)
    orientation = ShardOrientation.ROW_MAJOR if held is None else held.orientation
    return replace(place, shard_spec=even_shards(after, place.memory_layout, orientation, spec.grid))


def even_shards(shape: Shape, layout: TensorMemoryLayout, orientation: ShardOrientation, grid: GridSpec) -> ShardSpec:
    """Shards of whole tiles that share a tensor on all cores, on as many of them as have some."""
    rows, columns, along = prod(shape[:-1]), shape[-1], orientation is ShardOrientation.ROW_MAJOR
    if layout is TensorMemoryLayout.BLOCK_SHARDED:
        down, across = (grid.rows, grid.cols) if along else (grid.cols, grid.rows)
        held = (round_up(div_up(rows, down), TILE), round_up(div_up(columns, across), TILE))
        high, wide = div_up(rows, held[0]), div_up(columns, held[1])
        x, y = (wide, high) if along else (high, wide)
        return ShardSpec(CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(x - 1, y - 1))), held, orientation)
    if layout is TensorMemoryLayout.HEIGHT_SHARDED:
        held = (round_up(div_up(rows, grid.cores), TILE), round_up(columns, TILE))
        used = div_up(rows, held[0])
    else:
        held = (round_up(rows, TILE), round_up(div_up(columns, grid.cores), TILE))
        used = div_up(columns, held[1])
    return ShardSpec(first_cores(used, grid.cols, grid.rows, row_wise=along), held, orientation)


FACE_ELEMENTS = 256  # of the number that fills ragged tiles
SPLIT_TILES = 8  # tiles down an image in shards beyond which its result is put together on the way


def swapped_shape(tensor: TensorSpec, swapped: tuple[int, int]) -> Shape:
    """The padded shape of a tensor of rank 4 whose two axes are swapped: tiles are padded anew."""
    shape = list(tensor.shape if tensor.layout is Layout.TILE else tensor.padded_shape)
    shape[swapped[0]], shape[swapped[1]] = shape[swapped[1]], shape[swapped[0]]
    if tensor.layout is Layout.ROW_MAJOR:
        return tuple(shape)
    return TensorSpec(shape, tensor.data_format, tensor.layout).padded_shape


def transpose_buffers(
    source: PlanTensor, made: PlanTensor, swapped: tuple[int, int], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Buffers of the program, in order of allocation."""
    given, rows = source.spec, source.spec.layout is Layout.ROW_MAJOR
    after = swapped_shape(given, swapped)
    if swapped == LAST_TWO:
        if rows:
            return (
                _row_image_shards(source, made) if _images_stay(given, made.spec, after) else _row_images(given, spec)
            )
        return _tile_shards(source, made, spec) if _turns_shards(given, made.spec, after) else _tiles(given, spec)
    if swapped == MIDDLE_TWO and rows:
        stays = _rows_stay(given, made.spec, after)
        return _row_shards(source, made) if stays else _gathered_rows(given, made.spec, spec)
    if swapped == MIDDLE_TWO:
        return _ragged_tiles(given, made.spec, spec)
    page = row_bytes(given) if rows else given.data_format.tile_bytes
    pages = given.matrix[0] if rows else volume_tiles(given)
    return (buffer("pages", BUFFERING * page, given.data_format, page_cores(pages, spec.grid)),)


def is_dataflow(source: TensorSpec, made: TensorSpec, swapped: tuple[int, int]) -> bool:
    """Whether the buffers are dataflow buffers: of all programs but those of rows in shards."""
    if source.layout is Layout.TILE:
        return True
    stay = {LAST_TWO: _images_stay, MIDDLE_TWO: _rows_stay}.get(swapped)
    return stay is None or not stay(source, made, swapped_shape(source, swapped))


def _rows_stay(source: TensorSpec, made: TensorSpec, after: Shape) -> bool:
    """Whether shards on both sides hold whole rows, and the program works on them where they lie."""
    given, held = source.memory_config.shard_spec, made.memory_config.shard_spec
    if given is None or held is None or not is_native(source, made.memory_config):
        return False
    return given.shape[1] == source.padded_shape[-1] and held.shape[1] == after[-1]


def _images_stay(source: TensorSpec, made: TensorSpec, after: Shape) -> bool:
    """Whether shards on both sides hold whole images."""
    given, held = source.memory_config.shard_spec, made.memory_config.shard_spec
    if given is None or held is None or not _rows_stay(source, made, after):
        return False
    return given.shape[0] % source.padded_shape[-2] == 0 and held.shape[0] % after[-2] == 0


def _turns_shards(source: TensorSpec, made: TensorSpec, after: Shape) -> bool:
    """Whether tiles are turned in their shards: whole images, or the rows of one that become columns."""
    given, held = source.memory_config.shard_spec, made.memory_config.shard_spec
    if given is None or held is None or not is_native(source, made.memory_config):
        return False
    alone = source.padded_shape[:2] == (1, 1) and given.shape[1] == source.padded_shape[-1]
    return _images_stay(source, made, after) or (alone and held.shape[0] == after[-2])


def _tiles(source: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    cores, size = page_cores(volume_tiles(source), spec.grid), BUFFERING * source.data_format.tile_bytes
    return tuple(buffer(name, size, source.data_format, cores) for name in ("tiles", "turned"))


def _tile_shards(source: PlanTensor, made: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Views of as many tiles as a shard of the source has, on all cores."""
    data_format = source.spec.data_format
    cores = first_cores(spec.grid.cores, spec.grid.cols, spec.grid.rows)
    size = prod(source.spec.shards.shape) // TILE**2 * data_format.tile_bytes
    return tuple(buffer(one.name, size, data_format, cores, one.name) for one in (source, made))


def _row_images(source: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Images of rows as tiles: rows of tiles in and out, twice, and an image."""
    high, wide = (div_up(side, TILE) for side in source.shape[-2:])
    cores, page = page_cores(prod(source.shape[:2]), spec.grid), source.data_format.tile_bytes
    tiles = {"rows": BUFFERING * wide, "turned": BUFFERING * high, "image": high * wide}
    return tuple(buffer(name, count * page, source.data_format, cores) for name, count in tiles.items())


def _row_image_shards(source: PlanTensor, made: PlanTensor) -> tuple[CircularBuffer, ...]:
    """Views of both shards, a row of tiles twice and an image; of high images a column, and another twice."""
    given = source.spec
    high, wide = (div_up(side, TILE) for side in given.shape[-2:])
    tiles = {"rows": BUFFERING * wide, "image": high * wide}
    if high > SPLIT_TILES:
        tiles |= {"column": high, "turned": BUFFERING * high}
    views, page = _row_shards(source, made), given.data_format.tile_bytes
    return (*views, *(buffer(name, n * page, given.data_format, views[0].cores) for name, n in tiles.items()))


def _row_shards(source: PlanTensor, made: PlanTensor) -> tuple[CircularBuffer, ...]:
    """Views of as many sticks as a shard of the source has."""
    given, shards = source.spec, source.spec.shards
    size = shards.shape[0] * row_bytes(given, given.shape[-1])
    return tuple(buffer(one.name, size, given.data_format, shards.grid, one.name) for one in (source, made))


def _gathered_rows(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """All rows of a core, at multiples of the larger page of both sides."""
    rows = prod(source.shape[:-1])
    pages = [
        aligned_page_bytes(one.buffer(spec).page_bytes, one.memory_config.buffer_type, spec) for one in (source, made)
    ]
    stick = max(row_bytes(source, source.shape[-1]), *pages)
    return (buffer("rows", div_up(rows, spec.grid.cores) * stick, source.data_format, page_cores(rows, spec.grid)),)


def _ragged_tiles(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Two tiles whose rows go elsewhere; and a face of a number where the last tiles end in padding."""
    last = volume_tiles(made) // (made.padded_shape[-2] // TILE)
    cores = page_cores(max(volume_tiles(source), last), spec.grid)
    tiles = buffer("tiles", BUFFERING * source.data_format.tile_bytes, source.data_format, cores)
    if source.shape[1] % TILE == 0:
        return (tiles,)
    return tiles, buffer("fill", FACE_ELEMENTS * (source.data_format.element_bytes or 0), source.data_format, cores)
