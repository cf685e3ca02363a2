"""Buffers of programs that repeat pixels, worked by hand."""

import pytest

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, UINT16
from device.spec.device_spec import load_spec
from ops.builder import PlanTensor
from ops.programs.upsample import interleaved_buffers, page_buffers, shard_buffers

SPEC = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def sizes(buffers):
    return [(one.size_bytes, one.cores.num_cores()) for one in buffers]


def in_shards(rows, columns, buffer_type=BufferType.L1, data_format=BFLOAT16):
    held = ShardSpec(first_cores(4, 8, 8), (rows, columns))
    place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, buffer_type, held)
    return TensorSpec((1, 1, 4 * rows, columns), data_format, ROWS, place)


@pytest.mark.parametrize(("pixels", "expected"), [(49, [(64, 49)]), (65, [(128, 64)])])
def test_sticks_of_24_channels_fill_64_bytes_and_are_two_where_a_core_has_several(pixels, expected):
    source = TensorSpec((1, 1, pixels, 24), BFLOAT16, ROWS)
    assert sizes(interleaved_buffers(source, source, SPEC)) == expected


def test_rows_of_tiles_become_rows_of_sticks():
    source = TensorSpec((1, 1, 64, 96), BFLOAT8_B, TILES)
    made = TensorSpec((1, 1, 128, 96), BFLOAT16, ROWS)
    assert sizes(interleaved_buffers(source, made, SPEC)) == [(3 * 1088, 2), (3 * 2048, 2)]


def test_four_pages_of_the_result_are_on_their_way():
    made = TensorSpec((1, 10, 10, 24), BFLOAT16, ROWS)
    assert sizes(page_buffers(made, SPEC)) == [(4 * 64, 64)]


def test_shards_lie_where_they_are():
    source, made = PlanTensor("input", in_shards(7, 24)), PlanTensor("output", in_shards(28, 24))
    lists = PlanTensor("lists", in_shards(1, 8, BufferType.L1_SMALL, UINT16))
    buffers = shard_buffers(source, made, lists, 48, SPEC)
    assert [one.view_of for one in buffers] == ["input", "output", "lists"]
    assert sizes(buffers) == [(336, 4), (1344, 4), (16, 4)]
