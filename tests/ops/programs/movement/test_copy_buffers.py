"""Buffers of copies and moves, worked by hand."""

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from ops.programs.movement.copy_buffers import copy_buffers, moved_buffers, overlapping_buffers
from tests.shards import wide

SPEC = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def rows(place, columns=70):
    return TensorSpec((1, 1, 50, columns), BFLOAT16, ROWS, place)


def sizes(buffers):
    return [(one.size_bytes, one.cores.num_cores(), one.scratchpad) for one in buffers]


def test_two_tiles_of_each_format_are_on_their_way():
    source = TensorSpec((1, 1, 64, 96), BFLOAT16, TILES)
    made = TensorSpec((1, 1, 64, 96), BFLOAT8_B, TILES, L1_MEMORY_CONFIG)
    assert sizes(copy_buffers(source, made, SPEC)) == [(4096, 6, False), (2176, 6, False)]
    assert sizes(copy_buffers(source, source, SPEC)) == [(4096, 6, False)]


def test_rows_are_put_together_in_a_scratchpad():
    """Rows of 140 bytes; pages of 48 bytes in shards of 24 columns."""
    shards = rows(wide((50, 24), 3))
    assert sizes(copy_buffers(rows(DRAM_MEMORY_CONFIG), shards, SPEC)) == [(96, 50, False), (140, 50, True)]
    assert sizes(copy_buffers(rows(DRAM_MEMORY_CONFIG), rows(L1_MEMORY_CONFIG), SPEC))[0] == (2 * 144, 50, False)


def test_a_move_takes_two_pages_or_all_of_a_core():
    """130 rows on 64 cores: three each, of 144 bytes with what aligns them."""
    source = TensorSpec((1, 1, 130, 70), BFLOAT16, ROWS, L1_MEMORY_CONFIG)
    assert sizes(moved_buffers(source, source, SPEC)) == [(2 * 144, 64, False)]
    (whole,) = overlapping_buffers(source, source, SPEC)
    assert (whole.size_bytes, whole.page_bytes) == (3 * 144, 144)
