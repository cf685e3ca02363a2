"""Rows that do not fill their shards, dealt to shards of another width."""

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardOrientation, ShardSpec
from device.numbers.formats import BFLOAT16
from ops.programs.data_movement.copy import Uneven, uneven
from tests.shards import BLOCK, HEIGHT, WIDTH, in_box

TURNED = ShardOrientation.COL_MAJOR


def rows(shape, place, layout=Layout.ROW_MAJOR):
    return TensorSpec(shape, BFLOAT16, layout, place)


@pytest.mark.parametrize(
    ("columns", "place", "what"),
    [
        (280, in_box(BLOCK, (1, 24), 12, 10), Uneven.MOVED),  # the grid has just the columns of cores that are used
        (280, in_box(BLOCK, (1, 24), 13, 10), Uneven.LOST),
        (255, in_box(BLOCK, (1, 24), 13, 10), Uneven.LOST),
        (264, in_box(BLOCK, (1, 24), 13, 10), Uneven.MOVED),  # 11 whole shards
        (280, in_box(BLOCK, (5, 24), 13, 10), Uneven.LOST),
        (280, in_box(BLOCK, (4, 24), 13, 10), Uneven.MISPLACED),
        (280, in_box(BLOCK, (1, 24), 6, 12, TURNED), Uneven.MOVED),
        (280, in_box(BLOCK, (1, 24), 6, 13, TURNED), Uneven.LOST),
        (280, in_box(WIDTH, (6, 24), 13), Uneven.MOVED),  # by a program of its own
    ],
)
def test_padding_is_found_in_the_last_column_of_the_grid_alone(columns, place, what):
    """Recorded of the real library: what is lost is refused, crashes it, or hangs it."""
    shape = (1, 2, 3, columns)
    assert uneven(rows(shape, in_box(WIDTH, (6, 40), 1, 7)), rows(shape, place)) is what


def test_a_grid_that_does_not_begin_at_the_first_core_is_taken_for_another():
    shape, cores = (1, 1, 3, 280), CoreRangeSet(CoreRange(CoreCoord(1, 0), CoreCoord(12, 9)))
    place = MemoryConfig(BLOCK, BufferType.L1, ShardSpec(cores, (3, 24)))
    assert uneven(rows(shape, in_box(WIDTH, (3, 40), 7)), rows(shape, place)) is Uneven.MISPLACED


@pytest.mark.parametrize(
    ("shape", "before", "after", "layout"),
    [
        ((1, 1, 64, 40), in_box(BLOCK, (32, 32), 4, 2), in_box(BLOCK, (32, 64), 4, 2), Layout.TILE),
        ((1, 1, 64, 40), in_box(BLOCK, (32, 16), 4, 2), in_box(HEIGHT, (16, 48), 4), Layout.ROW_MAJOR),
        ((1, 1, 64, 48), in_box(BLOCK, (32, 16), 4, 2), in_box(BLOCK, (32, 24), 4, 2), Layout.ROW_MAJOR),
    ],
)
def test_tiles_and_whole_shards_are_moved(shape, before, after, layout):
    assert uneven(rows(shape, before, layout), rows(shape, after, layout)) is Uneven.MOVED
