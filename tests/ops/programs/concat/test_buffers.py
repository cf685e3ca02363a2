"""Buffers of concatenations, worked by hand."""

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from ops.builder import PlanTensor
from ops.programs.concat import page_buffers, ragged_buffers, shard_views, turned_buffers
from tests.shards import high, wide

SPEC = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def rows(columns, place=DRAM_MEMORY_CONFIG):
    return TensorSpec((1, 1, 50, columns), BFLOAT16, ROWS, place)


def in_shards(name, columns, data_format=BFLOAT16):
    return PlanTensor(name, TensorSpec((1, 1, 64, columns), data_format, TILES, high((32, columns), 2)))


@pytest.mark.parametrize(
    ("first", "made", "size"),
    [(DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, 2 * 160), (L1_MEMORY_CONFIG, L1_MEMORY_CONFIG, 2 * 144)],
)
def test_pages_are_aligned_as_in_dram_if_the_first_lies_there(first, made, size):
    (pages,) = page_buffers([rows(40, first), rows(30, made)], rows(70, made), SPEC)
    assert (pages.size_bytes, pages.cores.num_cores()) == (size, 50)


def test_tiles_that_end_within_a_column_are_untilized_joined_and_tilized():
    """20 and 30 columns: a tile each, and two of the result, on as many cores as there are rows of tiles."""
    one, made = TensorSpec((1, 1, 64, 20), BFLOAT16, TILES), TensorSpec((1, 1, 64, 50), BFLOAT16, TILES)
    buffers = ragged_buffers([one, one], made, SPEC)
    assert {one.name: one.size_bytes // 2048 for one in buffers} == {"tiles": 4, "sticks": 2, "joined": 2, "result": 4}
    assert {one.cores.num_cores() for one in buffers} == {2}


def test_shards_lie_where_they_are():
    tensors = [in_shards("a", 32), in_shards("b", 64), in_shards("c", 96)]
    assert [(one.view_of, one.size_bytes) for one in shard_views(tensors[:-1], tensors[-1], SPEC)] == [
        ("a", 2048),
        ("b", 4096),
        ("c", 6144),
    ]


def test_views_of_rows_are_aligned_as_their_shards_are():
    """Rows of 20 elements take 40 bytes and lie 48 apart; the real library's views of both and of the result."""
    one = PlanTensor("a", TensorSpec((1, 1, 32, 80), BFLOAT16, ROWS, wide((32, 20), 4)))
    made = PlanTensor("b", TensorSpec((1, 1, 64, 80), BFLOAT16, ROWS, wide((64, 20), 4)))
    assert [view.size_bytes for view in shard_views([one, one], made, SPEC)] == [1536, 1536, 3072]


def test_block_floats_are_bfloat16_while_they_are_turned():
    inputs = [in_shards("a", 32, BFLOAT8_B), in_shards("b", 64, BFLOAT8_B)]
    made = turned_buffers(inputs, in_shards("c", 96, BFLOAT8_B), SPEC)
    assert [one.size_bytes for one in made] == [1088, 2176, 3264, 2048, 4096, 6144, 3264]
