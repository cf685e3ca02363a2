"""Which shards hold which matrix: the checks the real library makes when a sharded tensor is described."""

from device.errors import DeviceError
from device.memory.memory_config import Layout, ShardOrientation, ShardSpec, TensorMemoryLayout
from device.memory.tiles import TILE
from device.numbers.integers import div_up


def check_shards(rows: int, cols: int, layout: Layout, memory_layout: TensorMemoryLayout, shards: ShardSpec) -> None:
    """Refuses shards that do not hold a padded matrix of ``rows`` x ``cols`` elements.

    Raises:
        DeviceError: Its first line is that of the real library.
    """
    shard_rows, shard_cols = shards.shape
    high, wide, cores = div_up(rows, shard_rows), div_up(cols, shard_cols), shards.num_cores()
    problem = None
    if layout is Layout.TILE and (shard_rows % TILE or shard_cols % TILE):
        problem = f"Physical shard shape ({shard_rows}, {shard_cols}) must be tile {{{TILE}, {TILE}}} sized!"
    elif memory_layout is TensorMemoryLayout.HEIGHT_SHARDED:
        if shard_cols != cols:
            problem = f"Shard width {shard_cols} must match physical width {cols} for height sharded"
        elif high > cores:
            problem = f"Number of shards along height {high} must not exceed number of cores {cores}"
    elif memory_layout is TensorMemoryLayout.WIDTH_SHARDED:
        if shard_rows != rows:
            problem = f"Shard height {shard_rows} must match physical height {rows} for width sharded"
        elif wide > cores:
            problem = f"Number of shards along width {wide} must not exceed number of cores {cores}"
    elif memory_layout is TensorMemoryLayout.BLOCK_SHARDED:
        problem = _block_problem(high, wide, shards)
    if problem is not None:
        raise DeviceError(
            f"{problem}\nmemory_config: the tensor is a matrix of {rows}x{cols} elements when padded; "
            f"shards of {shard_rows}x{shard_cols} on {cores} cores {shards.grid} do not hold it"
        )


def _block_problem(high: int, wide: int, shards: ShardSpec) -> str | None:
    """What is wrong with ``high`` x ``wide`` block shards on their grid, if anything."""
    if len(shards.grid.ranges) != 1:
        return "Shard grid must be one full rectangular grid for block sharded!"
    grid = shards.grid.bounding_box()
    row_major = shards.orientation is ShardOrientation.ROW_MAJOR
    major = "row" if row_major else "column"
    for count, along, is_rows in ((high, "height", row_major), (wide, "width", not row_major)):
        limit, name = (grid.rows, "rows") if is_rows else (grid.cols, "columns")
        if count > limit:
            return (
                f"Number of shards along {along} {count} must not exceed number of {name} {limit} "
                f"for {major} major orientation!"
            )
    return None
