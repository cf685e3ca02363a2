"""Concatenation: what it computes, its buffers, what it takes."""

import numpy as np
import pytest

from device.cores import first_cores
from device.matrix_unit.arithmetic import EXACT
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout as Scheme,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.time.stages import Stage
from ops.builder import PlanTensor
from ops.op_model import CyclesContext, Ends, ValuesContext
from ops.op_models import load_spec
from ops.programs.data_movement.concat import (
    Concatenate,
    is_turned,
    page_buffers,
    ragged_buffers,
    shard_views,
    turned_buffers,
)
from ops.programs.data_movement.movement import copy_movement
from ops.programs.data_movement.movement_cycles import movement_cycles
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


ROUND = load_spec("wormhole_n150").replace(
    noc_interface_cycles=200.0,
    compute_unpack_bytes_per_cycle=64.0,
    compute_unpack_tile_cycles=10.0,
    compute_pack_bytes_per_cycle=64.0,
    compute_costs_block_cycles=100.0,
    movement_costs_start_cycles=500.0,
    transfer_costs_stateful_issue_cycles=20.0,
)
WIRE = ROUND.noc.link_bytes_per_cycle  # 32
CORES = first_cores(4, 8, 8)
READING = CyclesContext(spec=ROUND, contention=True)


def shards(rows, columns, *, scheme=Scheme.HEIGHT_SHARDED, layout=Layout.ROW_MAJOR, fmt=BFLOAT16):
    memory = MemoryConfig(scheme, BufferType.L1, ShardSpec(CORES, (rows, columns)))
    down, across = (4, 1) if scheme is Scheme.HEIGHT_SHARDED else (1, 4)
    return TensorSpec((1, 1, rows * down, columns * across), fmt, layout, memory)


def cycles(ends, *shapes, axis=3, groups=1):
    return Concatenate(axis=axis, shapes=shapes, groups=groups).cycles(ends, READING)


def test_two_processors_copy_half_of_the_sticks_each():
    ends = Ends(read=shards(100, 64), written=shards(100, 96))
    made = cycles(ends, (1, 1, 400, 64), (1, 1, 400, 32))
    wide, narrow = 49 * 20 + 200 + 128 / WIRE, 49 * 20 + 200 + 64 / WIRE
    assert made.cycles == pytest.approx(500 + wide + narrow)
    assert {one.stage for one in made.slowest.stages} == {Stage.START, Stage.READER, Stage.SECOND_READER}


def test_the_only_processor_copies_all_sticks():
    spec = ROUND.replace(data_movement_processors=1)
    ends = Ends(read=shards(100, 64), written=shards(100, 96))
    op = Concatenate(axis=3, shapes=((1, 1, 400, 64), (1, 1, 400, 32)))
    made = op.cycles(ends, CyclesContext(spec=spec, contention=True))
    assert made.cycles == pytest.approx(500 + 2 * (99 * 20 + 200) + (128 + 64) / WIRE)
    assert {one.stage for one in made.slowest.stages} == {Stage.START, Stage.READER}


def test_long_sticks_are_bound_by_the_link():
    ends = Ends(read=shards(2, 1024), written=shards(2, 2048))
    made = cycles(ends, (1, 1, 8, 1024), (1, 1, 8, 1024))
    assert made.cycles == pytest.approx(500 + 2 * (200 + 2048 / WIRE))  # one stick a processor and tensor


def test_groups_cut_sticks_into_parts():
    ends = Ends(read=shards(10, 64), written=shards(10, 128))
    made = cycles(ends, (1, 1, 40, 64), (1, 1, 40, 64), groups=4)
    assert made.cycles == pytest.approx(500 + 2 * (19 * 20 + 200 + 32 / WIRE))  # 40 parts, 20 a processor


def test_rows_of_width_shards_are_copied_whole():
    ends = Ends(read=shards(8, 64, scheme=Scheme.WIDTH_SHARDED), written=shards(12, 64, scheme=Scheme.WIDTH_SHARDED))
    made = cycles(ends, (1, 1, 8, 256), (1, 1, 4, 256), axis=2)
    assert made.cycles == pytest.approx(500 + (3 * 20 + 200 + 128 / WIRE) + (20 + 200 + 128 / WIRE))


def test_tiles_side_by_side_are_turned_and_turned_back():
    ends = Ends(read=shards(64, 32, layout=Layout.TILE), written=shards(64, 64, layout=Layout.TILE))
    op = Concatenate(axis=3, shapes=((1, 1, 256, 32), (1, 1, 256, 32)))
    made = op.cycles(ends, READING)
    assert is_turned(op, ends)
    turned = 2 * (32 + 32)  # two tiles of 2048 bytes, unpacked and packed at 64 bytes a cycle
    copied = 2 * (200 + 2048 / WIRE)
    assert made.cycles == pytest.approx(500 + 2 * (2 * 100 + 2 * turned + copied))
    assert made.bound_by is Stage.READER


def test_block_floats_are_bfloat16_while_they_are_turned_cycles():
    shape = (1, 1, 128, 32)
    read, written = (shards(32, width, layout=Layout.TILE, fmt=BFLOAT8_B) for width in (32, 64))
    ends = Ends(read=read, written=written)
    made = cycles(ends, shape, shape)
    there, back = 17 + 32, 32 + 17  # a tile of 1088 bytes becomes one of 2048 bytes
    assert made.cycles == pytest.approx(500 + 200 + 2 * (there + back) + 2 * (200 + 2048 / WIRE))


def test_three_tensors_in_tiles_are_copied_tile_by_tile():
    ends = Ends(read=shards(32, 32, layout=Layout.TILE), written=shards(32, 96, layout=Layout.TILE))
    shape = (1, 1, 128, 32)
    assert cycles(ends, shape, shape, shape).cycles == pytest.approx(500 + 3 * (200 + 2048 / WIRE))


def test_interleaved_tensors_are_copied_page_by_page():
    read = TensorSpec((1, 1, 64, 32), BFLOAT16, Layout.TILE, DRAM_MEMORY_CONFIG)
    ends = Ends(read=read, written=TensorSpec((1, 1, 64, 64), BFLOAT16, Layout.TILE, DRAM_MEMORY_CONFIG))
    made = cycles(ends, read.shape, read.shape)
    assert made == movement_cycles(copy_movement(ends.written, ends.written, ROUND), ROUND)


@pytest.mark.parametrize("layout", [Layout.TILE, Layout.ROW_MAJOR])
def test_it_says_what_it_is_composed_of(layout):
    ends = Ends(read=shards(32, 32, layout=layout), written=shards(32, 64, layout=layout))
    shape = (1, 1, 128, 32)
    description = Concatenate(axis=3, shapes=(shape, shape)).describe(ends, ROUND)
    assert (description.measured_as, bool(description.composed_of)) == ("", True)


WORK = Concatenate(axis=3, shapes=((1, 1, 64, 32), (1, 1, 64, 96)))


@pytest.mark.parametrize(("place", "read_bytes"), [(DRAM_MEMORY_CONFIG, 8 * 2048), (L1_MEMORY_CONFIG, 0)])
def test_all_of_the_result_is_read_where_the_first_tensor_lies(place, read_bytes):
    first = TensorSpec((1, 1, 64, 32), BFLOAT16, Layout.TILE, place)
    written = TensorSpec((1, 1, 64, 128), BFLOAT16, Layout.TILE, DRAM_MEMORY_CONFIG)
    ends = Ends(read=first, written=written)
    cycles = WORK.cycles(ends, CyclesContext(spec=SPEC, contention=True))
    assert (cycles.dram_read_bytes, cycles.dram_written_bytes) == (read_bytes, 8 * 2048)
    facts = {fact.name: fact.value for fact in WORK.describe(ends, SPEC).facts}
    assert (facts["cores"], facts["pages_read"], facts["pages_written"]) == (8, 8, 8)


def joined(op, *arrays):
    context = ValuesContext(spec=load_spec("wormhole_n150"), arithmetic=EXACT)
    return op.values([np.float32(one) for one in arrays], context).tolist()


def test_one_behind_the_other():
    assert joined(Concatenate(axis=1, shapes=((1, 2), (1, 1))), [[1, 2]], [[3]]) == [[1, 2, 3]]
    assert joined(Concatenate(axis=0, shapes=((1, 2), (1, 2))), [[1, 2]], [[3, 4]]) == [[1, 2], [3, 4]]


def test_groups_in_turn():
    op = Concatenate(axis=1, shapes=((1, 4), (1, 2)), groups=2)
    assert joined(op, [[1, 2, 3, 4]], [[5, 6]]) == [[1, 2, 5, 3, 4, 6]]
