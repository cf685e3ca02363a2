"""Checks of the shards of layer_norm and rms_norm."""

from math import prod

from device.cores import CoreCoord
from device.memory.layouts import TensorSpec
from device.memory.memory_config import ShardOrientation, ShardSpec, TensorMemoryLayout
from device.numbers.formats import div_up


def grid_fault(shards: ShardSpec) -> str | None:
    """What the real library says of cores that leave a gap before the last of them in their bounding box."""
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
    """What it says of cores outside a program's grid, or of shards that lie beyond the tensor."""
    shards = source.shards
    box = shards.grid.bounding_box()
    if box.cols > grid[0] or box.rows > grid[1]:
        return f"shard_spec.grid size {box.cols}x{box.rows} does not fit within program_config grid {grid[0]}x{grid[1]}"
    (rows, width), (high, part), across = source.matrix, shards.shape, shards.grid.num_cores()
    if source.memory_config.memory_layout is TensorMemoryLayout.BLOCK_SHARDED:
        sides = div_up(rows, high), div_up(width, part)
        if prod(sides) == across:
            return None
        return f"Shard layout requires {sides[0]}x{sides[1]} = {prod(sides)} shards but shard grid has {across} cores"
    if 0 <= across * part - width < part:
        return None
    return (
        f"Shard-padded width ({across}x{part} = {across * part}) does not align with tensor width {width}: trailing "
        f"pad {across * part - width} must be less than one shard width ({part})"
    )
