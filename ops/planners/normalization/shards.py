"""Checks of shards that normalizations have in common."""

from math import prod

from device.cores import CoreCoord
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, ShardOrientation, ShardSpec, TensorMemoryLayout
from device.numbers.formats import div_up


def grid_fault(shards: ShardSpec) -> str | None:
    """The real library's error text for cores that leave a gap before the last of them in their bounding box."""
    box, by_rows = shards.grid.bounding_box(), shards.orientation is ShardOrientation.ROW_MAJOR
    order = list(box.cores(by_rows))[: shards.grid.num_cores()]
    missing = next((core for core in order if not shards.grid.contains(CoreCoord(core.x, core.y))), None)
    if missing is None:
        return None
    return (
        f"Sharded layernorm requires a non-rectangular core grid to fill its {box.cols} x {box.rows} bounding box in "
        f"shard order, leaving the unused cores at the end. Got grid {shards.grid}, which is missing core "
        f"({missing.x}, {missing.y})."
    )


def program_fault(source: TensorSpec, grid: tuple[int, int]) -> str | None:
    """The real library's error text for cores outside a program's grid, or for shards beyond the tensor."""
    shards = source.shards
    box = shards.grid.bounding_box()
    if box.cols > grid[0] or box.rows > grid[1]:
        return f"shard_spec.grid size {box.cols}x{box.rows} does not fit within program_config grid {grid[0]}x{grid[1]}"
    return layout_fault(source)


def layout_fault(source: TensorSpec) -> str | None:
    """The real library's error text for shards that do not cover the tensor, or that are beyond it."""
    shards, layout = source.shards, source.memory_config.memory_layout
    (rows, width), (high, part), count = source.matrix, shards.shape, shards.grid.num_cores()
    if high % TILE:
        return f"shard height {high} must be divisible by tile height {TILE}"
    if layout is TensorMemoryLayout.BLOCK_SHARDED:
        sides = div_up(rows, high), div_up(width, part)
        if prod(sides) == count:
            return None
        return f"Shard layout requires {sides[0]}x{sides[1]} = {prod(sides)} shards but shard grid has {count} cores"
    name, side, shard = ("width", width, part)
    if layout is TensorMemoryLayout.HEIGHT_SHARDED:
        name, side, shard = "height", rows, high
    if 0 <= count * shard - side < shard:
        return None
    return (
        f"Shard-padded {name} ({count}x{shard} = {count * shard}) does not align with tensor {name} {side}: trailing "
        f"pad {count * shard - side} must be less than one shard {name} ({shard})"
    )


def rectangle_fault(source: TensorSpec) -> str | None:
    """The real library's error text for cores of a group_norm that are no rectangle."""
    shards = source.shards
    box, count = shards.grid.bounding_box(), shards.grid.num_cores()
    if box.num_cores() == count:
        return None
    return (
        f"Sharded groupnorm does not support non-rectangular core grids. The shard spec grid has {count} cores but its "
        f"bounding box spans {box.num_cores()} cores ({box.cols} x {box.rows})."
    )
