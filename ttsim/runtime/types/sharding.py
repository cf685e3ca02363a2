"""ttnn's functions that compute sharded memory configs and sets of cores."""

from collections.abc import Sequence
from math import prod
from typing import cast

from device.cores import CoreCoord, CoreGrid, CoreRange, CoreRangeSet, PlainEnum, cores_from, first_cores
from device.errors import ArgumentError, ArgumentTypeError, shown
from device.memory.memory_config import TILE, BufferType, MemoryConfig, ShardOrientation, ShardSpec, TensorMemoryLayout
from device.numbers.formats import div_up, round_up
from ttsim.runtime.types.call import required_integer


class ShardStrategy(PlainEnum):
    """How a tensor is split into shards: by rows, by columns, or by both.

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
        shape: Shape of the tensor, [..., height, width], or of a shard.
        core_grid: The cores: a CoreGrid; two CoreGrids, the second of which is one more row; or a CoreRangeSet, which
            requires ``shape`` to be the shape of a shard.
        strategy: HEIGHT, WIDTH or BLOCK.
        orientation: Whether shards are assigned along rows or columns of cores; None for rows.
        use_height_and_width_as_shard_shape: ``shape`` is the shape of a shard; (width, height) for column orientation.

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


def create_sharded_memory_config_(
    shape: Sequence[int],
    core_grid: CoreGrid | CoreRangeSet | Sequence[CoreGrid],
    strategy: ShardStrategy | TensorMemoryLayout,
    orientation: ShardOrientation,
    use_height_and_width_as_shard_shape: bool = False,
    tile_layout: bool = False,
) -> MemoryConfig:
    """A memory config whose shards are distributed over cores, in L1; shards are rounded up if necessary.

    Args:
        shape: Shape of the tensor, [..., height, width], or of a shard.
        core_grid: The cores: a CoreGrid; two CoreGrids, the second of which is one more row; or a CoreRangeSet.
        strategy: How the tensor is split.
        orientation: Whether shards are assigned along rows or columns of cores.
        use_height_and_width_as_shard_shape: ``shape`` is the shape of a shard; (width, height) for column orientation.
        tile_layout: Round the rows up: to whole tiles for each row of blocks, to whole rows for each core.

    Returns:
        The memory config.

    Raises:
        ArgumentError: An argument is of the wrong kind, or a shard of a tensor in TILE layout is not whole tiles.

    Examples:
        >>> grid = ttnn.CoreGrid(y=2, x=2)
        >>> config = ttnn.create_sharded_memory_config_(
        ...     (1, 1, 100, 64), grid, ttnn.ShardStrategy.BLOCK, ttnn.ShardOrientation.ROW_MAJOR, tile_layout=True)
        >>> config.shard_spec.shape
        [64, 32]
    """
    listed = isinstance(shape, Sequence) and len(shape) >= 2
    if not listed or not all(isinstance(side, int) for side in shape):
        raise _invalid("Invalid input shape", f"shape: two integers or more, not {shown(shape)}")
    cores = _cores(core_grid)
    if not isinstance(strategy, ShardStrategy | TensorMemoryLayout):
        raise _invalid("Invalid type of sharding strategy", f"strategy: a ShardStrategy, not {shown(strategy)}")
    if not isinstance(orientation, ShardOrientation):
        raise _invalid("Invalid type of shard orientation", f"orientation: not {shown(orientation)}")
    is_strategy, by_rows = isinstance(strategy, ShardStrategy), orientation is ShardOrientation.ROW_MAJOR
    scheme = TensorMemoryLayout[f"{strategy.name}_SHARDED"] if is_strategy else TensorMemoryLayout(strategy)
    *outer, height, width = shape
    if use_height_and_width_as_shard_shape:
        shard = (height, width) if by_rows else (width, height)
    else:
        shard = _covering_shard((prod(outer) * height, width), cores, scheme, by_rows=by_rows, tiled=tile_layout)
    if tile_layout and shard[0] % TILE and shard[1] % TILE:
        raise _invalid("Incorrect tensor shape", f"shards of {shard[0]} x {shard[1]} elements fill no whole tiles")
    return MemoryConfig(scheme, BufferType.L1, ShardSpec(cores, shard, orientation))


def _covering_shard(
    matrix: tuple[int, int], cores: CoreRangeSet, scheme: TensorMemoryLayout, *, by_rows: bool, tiled: bool
) -> tuple[int, int]:
    """The shape of a shard, rounded up."""
    (height, width), count, box = matrix, cores.num_cores(), cores.bounding_box()
    if scheme is TensorMemoryLayout.WIDTH_SHARDED:
        return height, div_up(width, count)
    if scheme is TensorMemoryLayout.HEIGHT_SHARDED:
        return div_up(height, count), width
    if scheme is not TensorMemoryLayout.BLOCK_SHARDED:
        raise _invalid("Invalid sharding scheme", f"strategy: not {scheme}")
    if box.num_cores() != count:
        raise _invalid("Invalid CoreRangeSet for block sharding strategy", "core_grid: give a rectangle of cores")
    down, across = (box.rows, box.cols) if by_rows else (box.cols, box.rows)
    return div_up(round_up(height, down * TILE) if tiled else height, down), div_up(width, across)


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
    """The shape of a shard if the cores of a grid divide a matrix evenly."""
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
        target_num_cores: Number of cores.
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


def num_cores_to_corerangeset_in_subcoregrids(
    start_core: CoreCoord, target_num_cores: int, sub_core_grids: CoreRangeSet, row_wise: bool = False
) -> CoreRangeSet:
    """The first cores of a set, beginning with a given core.

    Args:
        start_core: The first core.
        target_num_cores: Number of cores.
        sub_core_grids: The set, whose ranges are counted in order.
        row_wise: Count along rows of a range instead of columns.

    Returns:
        The cores as a CoreRangeSet.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        DeviceError: The set has fewer cores, or does not contain the first core.

    Examples:
        >>> cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 1))])
        >>> ttnn.num_cores_to_corerangeset_in_subcoregrids(ttnn.CoreCoord(1, 0), 3, cores, row_wise=True)
        {[1-0 - 3-0]}
    """
    owner = "num_cores_to_corerangeset_in_subcoregrids"
    count = required_integer(owner, "target_num_cores", target_num_cores)
    if not isinstance(start_core, CoreCoord) or not isinstance(sub_core_grids, CoreRangeSet):
        raise ArgumentTypeError(f"{owner}: start_core must be a CoreCoord, and sub_core_grids a CoreRangeSet")
    return cores_from(start_core, count, sub_core_grids, row_wise)


def corerange_to_cores(
    core_range_set: CoreRangeSet, max_cores: int | None = None, row_wise: bool = False
) -> list[CoreCoord]:
    """The cores of a set, range by range.

    Args:
        core_range_set: The set.
        max_cores: Maximum number of cores; None for all.
        row_wise: Count along rows of a range instead of columns.

    Returns:
        The cores.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.

    Examples:
        >>> cores = ttnn.num_cores_to_corerangeset(3, ttnn.CoreCoord(8, 8), row_wise=True)
        >>> ttnn.corerange_to_cores(cores, 2)
        [0-0, 1-0]
    """
    if not isinstance(core_range_set, CoreRangeSet):
        raise ArgumentTypeError(f"corerange_to_cores: not a CoreRangeSet: {shown(core_range_set)}")
    cores = list(core_range_set.cores(row_wise))
    return cores if max_cores is None else cores[: required_integer("corerange_to_cores", "max_cores", max_cores)]
