"""The buffers of programs that give a tensor another shape, by hand."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16, FLOAT32
from ops.op_models import load_spec
from ops.programs.movement.reshape_buffers import map_tiles, most_segments, stick_buffers, tile_buffers

SPEC = load_spec("wormhole_n150")


def sticks(before, after, data_format=BFLOAT16, place=DRAM_MEMORY_CONFIG):
    read, made = (TensorSpec(shape, data_format, Layout.ROW_MAJOR, place) for shape in (before, after))
    found = stick_buffers(read, made, SPEC)
    assert all(one.scratchpad and one.cores.num_cores() == 64 for one in found)
    return [one.size_bytes for one in found]


def test_one_processor_puts_odd_rows_together():
    """Rows of 140 bytes are read from multiples of 64 on, twice; rows of 100 have eight places."""
    assert sticks((1, 1, 50, 70), (1, 1, 70, 50)) == [2 * (128 + 128), 8 * (64 + 80)]


@pytest.mark.parametrize("place", [DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG])
def test_two_processors_move_rows_that_divide_each_other(place):
    sizes = [2 * (576 + 128), 61376 + 80]
    assert sticks((1, 3, 96, 160), (1, 1, 3, 15360), FLOAT32, place) == sizes * 2


def test_tiles_have_a_page_of_the_map_each():
    read, made = (TensorSpec(shape, BFLOAT16, Layout.TILE) for shape in ((1, 1, 49, 32), (1, 7, 7, 32)))
    found = tile_buffers(read, made, 16, SPEC)
    assert [(one.size_bytes, one.cores.num_cores(), one.scratchpad) for one in found] == [
        (256, 7, False),
        (2048, 7, False),
        (2048, 7, True),
    ]
    assert map_tiles((7, 7, 33)) == 14


@pytest.mark.parametrize(
    ("before", "after", "most"),
    [
        ((1, 64, 128), (1, 128, 64), 64),  # 16 rows of one tile lie 2 apart: two pieces each of two tiles' 16 rows
        ((3, 96, 160), (1, 3, 15360), 6),  # a row of each of three images, two faces wide
        ((1, 1, 32), (1, 1, 32), 2),  # two faces
        ((1, 2, 32), (1, 4, 16), 4),  # a face each, and four rows in one tile
    ],
)
def test_runs_of_neighbors(before, after, most):
    assert most_segments(before, after) == most
