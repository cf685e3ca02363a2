"""The buffers of programs that put axes in any order, by hand."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from ops.op_models import load_spec
from ops.programs.rearrange.permuting import permute_buffers

WORMHOLE, BLACKHOLE = load_spec("wormhole_n150"), load_spec("blackhole_p150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def sizes(shape, axes, layout, place=DRAM_MEMORY_CONFIG, spec=WORMHOLE):
    made = TensorSpec([shape[axis] for axis in axes], BFLOAT16, layout, place)
    buffers = permute_buffers(TensorSpec(shape, BFLOAT16, layout, place), made, axes, spec)
    return [(one.size_bytes, one.cores.num_cores()) for one in buffers]


def test_rows_that_stay_whole_pass_two_at_a_time():
    assert sizes((2, 3, 8, 5), (1, 0, 2, 3), ROWS) == [(2 * 32, 48)]
    assert sizes((2, 3, 8, 5), (1, 0, 2, 3), ROWS, L1_MEMORY_CONFIG) == [(2 * 16, 48)]


def test_rows_are_turned_in_blocks_of_32():
    """Five images of 33 by 47: two blocks down, two across."""
    assert sizes((1, 5, 33, 47), (0, 1, 3, 2), ROWS) == [(4096, 20)] * 3


@pytest.mark.parametrize(
    ("shape", "axes", "wanted"),
    [
        ((1, 2, 64, 96), (1, 0, 2, 3), [(4096, 12)]),  # whole tiles
        ((1, 2, 64, 96), (1, 0, 3, 2), [(4096, 12)] * 2),  # that are turned
        ((1, 5, 32, 32), (0, 2, 1, 3), [(4096, 32), (32, 32)]),  # rows: 32 images of one tile, 27 rows of it filled
        ((32, 5, 32, 32), (2, 1, 0, 3), [(4096, 64)]),  # rows that fill their tiles
        ((1, 3, 64, 32), (0, 3, 2, 1), [(4096, 64)] * 3),  # 64 rows, a block of 3 by 32 each
    ],
)
def test_tiles(shape, axes, wanted):
    assert sizes(shape, axes, TILES) == wanted


def test_short_reads_need_room_to_be_aligned():
    """Half a tile's row is 32 bytes; a read from Blackhole's DRAM is 64."""
    assert sizes((1, 3, 64, 32), (0, 3, 2, 1), TILES, spec=BLACKHOLE)[0] == (2 * (2048 + 32), 64)
    assert sizes((1, 3, 64, 32), (0, 3, 2, 1), TILES, L1_MEMORY_CONFIG, BLACKHOLE)[0] == (2 * 2048, 64)
