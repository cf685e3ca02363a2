"""Concatenations in time, by hand: a copy every 20 cycles, a link of 32 bytes a cycle, 200 for a round trip."""

import pytest

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout as Scheme,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.time.stages import Stage
from ops.op_model import CyclesContext, Ends
from ops.op_models import load_spec
from ops.programs.concat import Concatenate, concat_cycles, describe_concat, is_turned
from ops.programs.movement.cycles import movement_cycles
from ops.programs.movement.movements import copy_movement

SPEC = load_spec("wormhole_n150").replace(
    noc_interface_cycles=200.0,
    compute_unpack_bytes_per_cycle=64.0,
    compute_unpack_tile_cycles=10.0,
    compute_pack_bytes_per_cycle=64.0,
    compute_costs_block_cycles=100.0,
    movement_costs_start_cycles=500.0,
    transfer_costs_stateful_issue_cycles=20.0,
)
WIRE = SPEC.noc.link_bytes_per_cycle  # 32
CORES = first_cores(4, 8, 8)
READING = CyclesContext(spec=SPEC, contention=True)


def shards(rows, columns, *, scheme=Scheme.HEIGHT_SHARDED, layout=Layout.ROW_MAJOR, fmt=BFLOAT16):
    memory = MemoryConfig(scheme, BufferType.L1, ShardSpec(CORES, (rows, columns)))
    down, across = (4, 1) if scheme is Scheme.HEIGHT_SHARDED else (1, 4)
    return TensorSpec((1, 1, rows * down, columns * across), fmt, layout, memory)


def cycles(ends, *shapes, axis=3, groups=1):
    return concat_cycles(Concatenate(axis=axis, shapes=shapes, groups=groups), ends, READING)


def test_two_processors_copy_half_of_the_sticks_each():
    ends = Ends(read=shards(100, 64), written=shards(100, 96))
    made = cycles(ends, (1, 1, 400, 64), (1, 1, 400, 32))
    wide, narrow = 49 * 20 + 200 + 128 / WIRE, 49 * 20 + 200 + 64 / WIRE
    assert made.cycles == pytest.approx(500 + wide + narrow)
    assert {one.stage for one in made.slowest.stages} == {Stage.START, Stage.READER, Stage.SECOND_READER}


def test_the_only_processor_copies_all_sticks():
    spec = SPEC.replace(data_movement_processors=1)
    ends = Ends(read=shards(100, 64), written=shards(100, 96))
    work = Concatenate(axis=3, shapes=((1, 1, 400, 64), (1, 1, 400, 32)))
    made = concat_cycles(work, ends, CyclesContext(spec=spec, contention=True))
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
    work = Concatenate(axis=3, shapes=((1, 1, 256, 32), (1, 1, 256, 32)))
    made = concat_cycles(work, ends, READING)
    assert is_turned(work, ends)
    turned = 2 * (32 + 32)  # two tiles of 2048 bytes, unpacked and packed at 64 bytes a cycle
    copied = 2 * (200 + 2048 / WIRE)
    assert made.cycles == pytest.approx(500 + 2 * (2 * 100 + 2 * turned + copied))
    assert made.bound_by is Stage.READER


def test_block_floats_are_bfloat16_while_they_are_turned():
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
    assert made == movement_cycles(copy_movement(ends.written, ends.written, SPEC), SPEC)


@pytest.mark.parametrize("layout", [Layout.TILE, Layout.ROW_MAJOR])
def test_it_says_what_it_is_composed_of(layout):
    ends = Ends(read=shards(32, 32, layout=layout), written=shards(32, 64, layout=layout))
    shape = (1, 1, 128, 32)
    account = describe_concat(Concatenate(axis=3, shapes=(shape, shape)), ends, SPEC)
    assert (account.measured_as, bool(account.composed_of)) == ("", True)
