"""Whether an element-wise program works on shards where they lie, and which shards a result gets.

Rules: tt-metal 0.81.1 (eltwise/unary and eltwise/binary_ng), compared with recorded plans.
"""

from dataclasses import replace
from math import prod

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.memory.tiles import TILE
from device.numbers.integers import div_up, round_up
from device.spec.device_spec import DeviceSpec
from ops.programs.actions.pieces import rows_follow


def is_uneven(tensor: TensorSpec) -> bool:
    """Whether a sharded tensor does not fill its shards; False for an interleaved one."""
    shards = tensor.memory_config.shard_spec
    if shards is None:
        return False
    rows, columns = tensor.matrix
    return rows % shards.shape[0] != 0 or columns % shards.shape[1] != 0


def rescaled(shards: ShardSpec, before: TensorSpec, padded_shape: tuple[int, ...]) -> ShardSpec:
    """The shards of a tensor, made as much higher and wider as another shape is; never less than a tile."""
    rows, columns = before.matrix
    high = max(shards.shape[0] * prod(padded_shape[:-1]) // rows, TILE)
    wide = max(shards.shape[1] * padded_shape[-1] // columns, TILE)
    return replace_shape(shards, (high, wide))


def replace_shape(shards: ShardSpec, shape: tuple[int, int]) -> ShardSpec:
    """The same cores with shards of another shape."""
    return ShardSpec(shards.grid, shape, shards.orientation)


def on_all_cores(padded_shape: tuple[int, ...], layout: TensorMemoryLayout, spec: DeviceSpec) -> ShardSpec:
    """Shards on all cores of a device, as the library deals a result that says its sharding but not its shards."""
    rows, columns = prod(padded_shape[:-1]), padded_shape[-1]
    cores = first_cores(spec.grid.cores, spec.grid.cols, spec.grid.rows)
    match layout:
        case TensorMemoryLayout.HEIGHT_SHARDED:
            shape = (round_up(div_up(rows, spec.grid.cores), TILE), columns)
        case TensorMemoryLayout.WIDTH_SHARDED:
            shape = (rows, round_up(div_up(columns, spec.grid.cores), TILE))
        case _:
            shape = (
                round_up(div_up(rows, spec.grid.rows), TILE),
                round_up(div_up(columns, spec.grid.cols), TILE),
            )
    return ShardSpec(cores, shape)


def with_shards(place: MemoryConfig, shards: ShardSpec) -> MemoryConfig:
    """A place with these shards."""
    return replace(place, shard_spec=shards)


def lies_in_place(read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> bool:
    """Whether a function of single elements works on the shards of both its tensors where they lie.

    Both are sharded in L1, in one way over the same cores, and fill their shards; rows must be whole pages of a tile's
    elements, and end where L1 is aligned.
    """
    before, after = read.memory_config, written.memory_config
    if before.memory_layout is not after.memory_layout:
        return False
    if before.shard_spec is None or after.shard_spec is None or is_uneven(read) or is_uneven(written):
        return False
    if BufferType.DRAM in (before.buffer_type, after.buffer_type) or before.shard_spec.grid != after.shard_spec.grid:
        return False
    if read.layout is Layout.TILE:
        return True
    return all(
        prod(one.shape) % TILE**2 == 0 and rows_follow(read, one.shape[1], spec)
        for one in (before.shard_spec, after.shard_spec)
    )
