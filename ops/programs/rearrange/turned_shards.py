"""Where a sharded tensor goes whose axes are swapped, when nobody says where.

Source: tt-metal 0.81.1 (data_movement/transpose, permute and common), compared with recorded plans.
"""

from dataclasses import replace
from math import prod

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.memory.layouts import TensorSpec
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
from device.numbers.block_floats import div_up, round_up
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec

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
