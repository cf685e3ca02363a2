"""Where sharded tensors are to live, worked out of a shape and cores, under ttnn's names."""

from collections.abc import Sequence
from math import prod
from typing import cast

from device.cores import CoreCoord, CoreGrid, CoreRange, CoreRangeSet, PlainEnum, first_cores
from device.errors import ArgumentError, ArgumentTypeError, shown
from device.memory.memory_config import BufferType, MemoryConfig, ShardOrientation, ShardSpec, TensorMemoryLayout
from ttsim.runtime.types.call import required_integer


class ShardStrategy(PlainEnum):
    """How a tensor is cut into shards: by rows, by columns, or both.

    Examples:
        >>> ttnn.ShardStrategy.BLOCK.value
        3
    """

    HEIGHT, WIDTH, BLOCK = range(1, 4)


def create_sharded_memory_config(
    shape: Sequence[int],
    core_grid: CoreGrid | CoreRangeSet | Sequence[CoreGrid],
    strategy: ShardStrategy,
    orientation: ShardOrientation | None = None,
    use_height_and_width_as_shard_shape: bool = False,
) -> MemoryConfig:
    """A memory config whose shards are distributed evenly over cores, in L1.

    Args:
        shape: Shape of the tensor, [..., height, width]; or that of a shard.
        core_grid: The cores: a CoreGrid; two of them, where the second is one row after the first; or a CoreRangeSet,
            for which ``shape`` must be that of a shard.
        strategy: HEIGHT, WIDTH or BLOCK.
        orientation: Whether shards are dealt along rows or columns of cores; None for rows.
        use_height_and_width_as_shard_shape: ``shape`` is the shape of a shard, (width, height) if dealt along columns.

    Returns:
        The memory config.

    Raises:
        ArgumentError: An argument is of the wrong kind, or the cores do not divide the tensor.

    Examples:
        >>> config = ttnn.create_sharded_memory_config((256, 64), ttnn.CoreGrid(y=1, x=8), ttnn.ShardStrategy.HEIGHT)
        >>> config.shard_spec.shape
        [32, 64]
    """
    listed = isinstance(shape, list | tuple) and len(shape) >= 2
    if not listed or not all(isinstance(side, int) for side in shape):
        raise _invalid("Invalid input shape", f"shape: two integers or more, not {shown(shape)}")
    if not isinstance(strategy, ShardStrategy):
        raise _invalid("Invalid sharding strategy", f"strategy: a ShardStrategy, not {shown(strategy)}")
    if not isinstance(orientation, ShardOrientation | None):
        raise _invalid("Invalid shard orientation", f"orientation: not {shown(orientation)}")
    dealt = orientation or ShardOrientation.ROW_MAJOR
    cores = _cores(core_grid)
    *outer, height, width = shape
    by_rows = dealt is ShardOrientation.ROW_MAJOR
    if use_height_and_width_as_shard_shape:
        shard = (height, width) if by_rows else (width, height)
    elif isinstance(core_grid, CoreGrid):
        shard = _even_shard((prod(outer) * height, width), core_grid, strategy, by_rows=by_rows)
    else:
        text = "give the shape of a shard and use_height_and_width_as_shard_shape=True, or a CoreGrid"
        raise _invalid("height and width must be shard shape with CoreRangeSet", text)
    return MemoryConfig(TensorMemoryLayout[f"{strategy.name}_SHARDED"], BufferType.L1, ShardSpec(cores, shard, dealt))


def _invalid(first_line: str, text: str) -> ArgumentError:
    return ArgumentError(f"{first_line}\ncreate_sharded_memory_config: {text}")


def _cores(grid: object) -> CoreRangeSet:
    if isinstance(grid, CoreRangeSet):
        return grid
    if isinstance(grid, CoreGrid):
        return grid.core_range_set()
    grids = grid if isinstance(grid, list | tuple) else ()
    if len(grids) != 2 or not all(isinstance(core_grid, CoreGrid) for core_grid in grids):
        text = f"core_grid: a CoreGrid, two of them or a CoreRangeSet, not {shown(grid)}"
        raise _invalid("Invalid core_grid type", text)
    whole, rest = cast("Sequence[CoreGrid]", grids)
    row = CoreRange(CoreCoord(0, whole.y), CoreCoord(rest.x - 1, whole.y))
    return CoreRangeSet((CoreRange(CoreCoord(0, 0), CoreCoord(whole.x - 1, whole.y - 1)), row))


def _even_shard(matrix: tuple[int, int], grid: CoreGrid, strategy: ShardStrategy, *, by_rows: bool) -> tuple[int, int]:
    """The part of a matrix that each core of a grid has."""
    blocks = (grid.y, grid.x) if by_rows else (grid.x, grid.y)
    (height, width), cores = matrix, grid.num_cores
    down, across = {"HEIGHT": (cores, 1), "WIDTH": (1, cores), "BLOCK": blocks}[strategy.name]
    if height % down or width % across:
        shards = f"{down} x {across} shards; take another grid"
        raise _invalid("Invalid sharding core_grid", f"{height} x {width} elements do not divide into {shards}")
    return height // down, width // across


def num_cores_to_corerangeset(target_num_cores: int, grid_size: CoreCoord, row_wise: bool = False) -> CoreRangeSet:
    """The first cores of a grid.

    Args:
        target_num_cores: How many cores.
        grid_size: Columns and rows of the grid.
        row_wise: Count along rows instead of columns.

    Returns:
        The cores as a CoreRangeSet.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: The grid has fewer cores.

    Examples:
        >>> ttnn.num_cores_to_corerangeset(10, ttnn.CoreCoord(8, 8), row_wise=True).num_cores()
        10
    """
    count = required_integer("num_cores_to_corerangeset", "target_num_cores", target_num_cores)
    if not isinstance(grid_size, CoreCoord):
        raise ArgumentTypeError(f"num_cores_to_corerangeset: grid_size must be a CoreCoord, not {shown(grid_size)}")
    if not 0 < count <= grid_size.x * grid_size.y:
        raise ArgumentError(
            f"num_cores_to_corerangeset: a grid of {grid_size.x} x {grid_size.y} does not have {count} cores"
        )
    return first_cores(count, grid_size.x, grid_size.y, row_wise)
