"""The pages and pieces that programs move when they put axes in another order, counted by hand."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from ops.op_models import load_spec
from ops.programs.movement.movement import Access
from ops.programs.movement.movements import copy_movement
from ops.programs.rearrange.turned_pieces import turned_movement

SPEC = load_spec("wormhole_n150")


def ends(shape, axes, layout):
    turned = tuple(shape[axis] for axis in axes)
    return tuple(TensorSpec(one, BFLOAT16, layout, L1_MEMORY_CONFIG) for one in (shape, turned))


def moved(shape, axes, layout):
    return turned_movement(*ends(shape, axes, layout), axes, SPEC)


def pieces(pages):
    return pages.access, pages.core_pages, pages.page_bytes


@pytest.mark.parametrize(("axes", "layout"), [((1, 0, 2, 3), Layout.TILE), ((0, 2, 1, 3), Layout.ROW_MAJOR)])
def test_whole_pages_go_as_copies(axes, layout):
    shape = (2, 4, 64, 96)
    assert moved(shape, axes, layout) == copy_movement(*ends(shape, axes, layout), SPEC)


def test_rows_of_tiles_are_written_face_by_face():
    """128 rows of four faces, 32 bytes each, for 64 cores; each waits for its tiles."""
    movement = moved((1, 2, 64, 64), (0, 2, 1, 3), Layout.TILE)
    assert movement.reads.access is Access.WAIT
    assert movement.cores.num_cores() == 64
    assert pieces(movement.writes) == (Access.STICKS, 8, 32)


def test_blocks_of_rows_are_read_and_written_in_pieces():
    """Two blocks of 32 by 40 elements are cut into four of up to 32 by 32, a core each."""
    movement = moved((1, 2, 32, 40), (0, 1, 3, 2), Layout.ROW_MAJOR)
    assert (movement.cores.num_cores(), movement.blocks) == (4, 1)
    assert pieces(movement.reads) == (Access.STICKS, 32, 64)  # 2 x 32 rows of two pieces
    assert pieces(movement.writes) == (Access.STICKS, 20, 64)  # 2 x 40 rows of one


def test_blocks_of_tiles_move_face_by_face():
    """One of 32 by 64 elements of three axes, turned so that the first is last: 16 blocks."""
    movement = moved((32, 8, 64), (1, 2, 0), Layout.TILE)
    assert (movement.cores.num_cores(), movement.blocks) == (16, 1)
    assert pieces(movement.reads) == (Access.STICKS, 64, 32)  # 32 x 8 rows of 2 x 2 faces
    assert pieces(movement.writes) == (Access.STICKS, 64, 32)  # 8 x 64 rows of 2
