"""Which shards a sharded tensor lies in once a reshape has moved its rows.

Rules: tt-metal 0.81.1, ttnn.reshape (recompute_shard_spec_for_output).
"""

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout, MemoryConfig, ShardOrientation, ShardSpec, TensorMemoryLayout
from device.numbers.block_floats import div_up, round_up

WORD_BYTES = 4  # a row of a HEIGHT or WIDTH shard is whole words
BLOCK_ROW_BYTES = 64  # a row of a BLOCK shard is whole multiples of this


def dealt_anew(spec: TensorSpec, before: MemoryConfig) -> MemoryConfig:
    """Where a tensor goes that was sharded and has got another shape.

    HEIGHT and WIDTH shards stay on their cores and share the rows (the columns) evenly, rounded up. BLOCK shards keep
    as many rows and columns of cores, from the first one, as divide the tensor into equal aligned parts. A grid that
    is no rectangle gives the sharding up. Where one HEIGHT shard holds all rows, the library takes it for a WIDTH
    shard: it looks at the height first.

    Args:
        spec: The tensor under its new shape, interleaved.
        before: Where it was, sharded.
    """
    shards = before.shard_spec
    apart = MemoryConfig(buffer_type=before.buffer_type)
    if shards is None or shards.grid.bounding_box().num_cores() != shards.num_cores():
        return apart
    rows, cols = spec.matrix
    align_rows, align_cols = _alignment(spec)
    cores, grid = shards.num_cores(), shards.grid
    match before.memory_layout:
        case TensorMemoryLayout.HEIGHT_SHARDED:
            shape = (round_up(div_up(rows, cores), align_rows), round_up(cols, align_cols))
        case TensorMemoryLayout.WIDTH_SHARDED:
            shape = (round_up(rows, align_rows), round_up(div_up(cols, cores), align_cols))
        case _:
            box, by_rows = grid.bounding_box(), shards.orientation is ShardOrientation.ROW_MAJOR
            high, wide = (box.rows, box.cols) if by_rows else (box.cols, box.rows)
            if spec.layout is Layout.ROW_MAJOR:
                align_cols = div_up(BLOCK_ROW_BYTES, spec.data_format.element_bytes or 1)
            high, wide = _equal_parts(rows, high, align_rows), _equal_parts(cols, wide, align_cols)
            if not high or not wide:
                return apart
            shape = (rows // high, cols // wide)
            grid = _corner(box.start, *((wide, high) if by_rows else (high, wide)))
    layout = before.memory_layout
    if layout is TensorMemoryLayout.HEIGHT_SHARDED and shape[0] == rows:
        layout = TensorMemoryLayout.WIDTH_SHARDED
    return MemoryConfig(layout, before.buffer_type, ShardSpec(grid, shape, shards.orientation))


def _alignment(spec: TensorSpec) -> tuple[int, int]:
    """Rows and columns that a shard is a multiple of."""
    if spec.layout is Layout.TILE:
        return TILE, TILE
    return 1, div_up(WORD_BYTES, spec.data_format.element_bytes or 1)


def _equal_parts(length: int, most: int, alignment: int) -> int:
    """The most equal parts, each a multiple of ``alignment``; 0 if not even one is."""
    return next((parts for parts in range(most, 0, -1) if length % (parts * alignment) == 0), 0)


def _corner(start: CoreCoord, cols: int, rows: int) -> CoreRangeSet:
    """So many columns and rows of cores from a core on."""
    return CoreRangeSet(CoreRange(start, CoreCoord(start.x + cols - 1, start.y + rows - 1)))
