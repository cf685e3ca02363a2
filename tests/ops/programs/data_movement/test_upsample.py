"""Programs that repeat pixels."""

import numpy as np
import pytest

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, UINT16
from device.spec.device_spec import load_spec
from ops.builder import PlanTensor
from ops.programs.data_movement.upsample import (
    Upsample,
    UpsampleProgram,
    interleaved_buffers,
    interval_words,
    page_buffers,
    shard_buffers,
    upsampled_shape,
)
from tests.shards import high

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


@pytest.mark.parametrize(
    ("rows", "width", "repeats", "shard_rows", "intervals"),
    [
        (64, 64, 2, 64, 1),  # a core has one row: each processor one repetition of it
        (7, 7, 1, 49, 1),  # nothing is repeated: either half is one run
        (7, 7, 3, 49, 8),  # 21 rows behind one another; a row's first repetition follows the row before it
        (16, 8, 3, 2, 2),  # 6 sticks of a core: three each, that lie in two shards
        (4, 4, 1, 1, 1),  # one stick: a single processor gathers it
    ],
)
def test_a_list_has_as_many_intervals_as_the_longest_needs(rows, width, repeats, shard_rows, intervals):
    assert interval_words(rows, width, repeats, shard_rows) == 2 * 4 * intervals


def tensor(side, layout=Layout.ROW_MAJOR, shard_rows=0):
    place = high((shard_rows, 32), 4) if shard_rows else MemoryConfig()
    return TensorSpec((1, side, side, 32), BFLOAT16, layout, place)


@pytest.mark.parametrize(
    ("program", "source", "made", "read", "written"),
    [
        (UpsampleProgram.STICKS, tensor(32), tensor(64), 1024 // 64, 4096 // 64),
        (UpsampleProgram.TILES, tensor(32, Layout.TILE), tensor(64), 1, 4096 // 32),  # a row of tiles on 32 cores
        (UpsampleProgram.SHARDS, tensor(32, shard_rows=256), tensor(64, shard_rows=1024), 1024 // 2, 0),
        (UpsampleProgram.PAGES, tensor(32), tensor(48), 2304 // 64, 2304 // 64),
    ],
)
def test_pages_of_one_core(program, source, made, read, written):
    scale = (made.shape[1] / source.shape[1],) * 2
    op = Upsample(program=program, shape=source.shape, scale=scale, source_format=BFLOAT16, data_format=BFLOAT16)
    movement = op.movement(source, made, SPEC)
    assert movement.reads is not None
    assert movement.reads.core_pages == read
    assert (0 if movement.writes is None else movement.writes.core_pages) == written


STICKS, TILES_WORK, PAGES = UpsampleProgram.STICKS, UpsampleProgram.TILES, UpsampleProgram.PAGES


def op(scale, program=STICKS, shape=(1, 2, 3, 1), source=BFLOAT16, made=BFLOAT16):
    return Upsample(program=program, shape=shape, scale=scale, source_format=source, data_format=made)


def test_sides_are_rounded_down():
    assert upsampled_shape((2, 7, 5, 24), (1.5, 0.5)) == (2, 10, 2, 24)


def test_pixels_come_several_times():
    image = np.arange(6, dtype=np.float32).reshape(1, 2, 3, 1)
    assert op((2.0, 1.0)).moved(image).reshape(4, 3).tolist() == [[0, 1, 2], [0, 1, 2], [3, 4, 5], [3, 4, 5]]
    assert op((1.0, 1.5), PAGES).moved(image).reshape(2, 4).tolist() == [[0, 0, 1, 2], [3, 3, 4, 5]]
    assert op((0.5, 0.5), PAGES).moved(image).reshape(-1).tolist() == [0]


@pytest.mark.parametrize(
    ("program", "source", "made", "expected"),
    [
        (STICKS, FLOAT32, FLOAT32, 1.00390625),
        (TILES_WORK, FLOAT32, FLOAT32, 1.0),  # a 16-bit Dst has 7 bits of fraction
        (TILES_WORK, BFLOAT8_B, BFLOAT16, 1.015625),
    ],
)
def test_tiles_pass_the_matrix_unit(program, source, made, expected):
    given = np.full((1, 2, 32, 32), 1.015625 if source is BFLOAT8_B else 1.00390625, np.float32)
    result = op((1.0, 1.0), program, given.shape, source, made).moved(given)
    assert float(result[0, 0, 0, 0]) == expected
