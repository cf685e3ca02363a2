import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import L1_MEMORY_CONFIG, BufferType, Layout, MemoryConfig, ShardOrientation, ShardSpec
from device.numbers.formats import BFLOAT16
from ops.programs.movement.resharding import dealt_anew
from tests.shards import BLOCK, HEIGHT, WIDTH, in_box

ROW, COL = ShardOrientation.ROW_MAJOR, ShardOrientation.COL_MAJOR


def grid(cols, rows):
    return CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(cols - 1, rows - 1))])


@pytest.mark.parametrize(
    ("rows", "cols", "before", "after"),
    [
        (1400, 192, in_box(HEIGHT, (64, 192), 8, 4), in_box(HEIGHT, (64, 192), 8, 4)),
        (1408, 64, in_box(WIDTH, (1920, 32), 8, 7), in_box(WIDTH, (1408, 32), 8, 7)),
        (360, 32, in_box(BLOCK, (640, 32), 7, 3), in_box(BLOCK, (128, 32), 1, 3)),
        (42, 32, in_box(BLOCK, (64, 32), 2, 3, COL), in_box(BLOCK, (32, 32), 2, 1, COL)),
        (13944, 32, in_box(BLOCK, (12416, 32), 1, 3), in_box(BLOCK, (6976, 32), 1, 2)),
        (25, 32, in_box(HEIGHT, (32, 32), 6, 4), in_box(WIDTH, (32, 32), 6, 4)),  # one shard holds all rows
    ],
)
def test_shards_after_a_reshape(rows, cols, before, after):
    spec = TensorSpec((1, 1, rows, cols), BFLOAT16, Layout.TILE, L1_MEMORY_CONFIG)
    assert dealt_anew(spec, before) == after


def test_a_grid_that_is_no_rectangle_gives_the_sharding_up():
    cores = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(7, 0)), CoreRange(CoreCoord(0, 1), CoreCoord(2, 1))])
    before = MemoryConfig(HEIGHT, BufferType.L1, ShardSpec(cores, (32, 32)))
    spec = TensorSpec((1, 1, 300, 32), BFLOAT16, Layout.TILE, L1_MEMORY_CONFIG)
    assert dealt_anew(spec, before) == L1_MEMORY_CONFIG


def test_rows_are_whole_words():
    spec = TensorSpec((1, 1, 6, 10), BFLOAT16, Layout.ROW_MAJOR, L1_MEMORY_CONFIG)
    assert dealt_anew(spec, in_box(HEIGHT, (2, 30), 2, 2)) == in_box(HEIGHT, (2, 10), 2, 2)
    assert dealt_anew(spec, in_box(WIDTH, (2, 10), 3)) == in_box(WIDTH, (6, 4), 3)
