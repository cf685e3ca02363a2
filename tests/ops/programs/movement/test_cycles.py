"""Cycles of data movement, and which pages a program reads and writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import load_spec
from device.time.stages import Stage
from ops.programs.movement.cycles import movement_cycles
from ops.programs.movement.movement import Access
from ops.programs.movement.movements import movement_of

SPEC = load_spec("blackhole_p100")
TILE, ROWS = Layout.TILE, Layout.ROW_MAJOR


def tensor(rows, width, layout, *, cores=0, memory=DRAM_MEMORY_CONFIG):
    """A bfloat16 matrix, interleaved, or height sharded over some cores."""
    if cores:
        shard = ShardSpec(first_cores(cores, 11, 10), (-(-rows // cores // 32) * 32, width), ShardOrientation.ROW_MAJOR)
        memory = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shard)
        padded = (1, 1, shard.shape[0] * cores, width)
        return TensorSpec((1, 1, rows, width), BFLOAT16, layout, memory, padded)
    return TensorSpec((1, 1, rows, width), BFLOAT16, layout, memory)


PROGRAMS = (
    ("InterleavedToSharded", TILE, 0, TILE, 20),
    ("InterleavedToSharded", ROWS, 0, ROWS, 20),
    ("ShardedToInterleaved", TILE, 20, TILE, 0),
    ("ShardedToInterleaved", ROWS, 20, ROWS, 0),
    ("Reshard", TILE, 20, TILE, 10),
    ("Move", ROWS, 20, ROWS, 20),
    ("Move", ROWS, 0, ROWS, 0),
    ("Copy", TILE, 0, TILE, 0),
    ("Typecast", TILE, 0, TILE, 0),
    ("Tilize", ROWS, 0, TILE, 0),
    ("Tilize", ROWS, 20, TILE, 20),
    ("TilizeWithValPadding", ROWS, 0, TILE, 0),
    ("Untilize", TILE, 0, ROWS, 0),
    ("Untilize", TILE, 20, ROWS, 20),
    ("UntilizeWithUnpadding", TILE, 0, ROWS, 0),
    ("PaddedSlice", TILE, 0, ROWS, 20),
    ("PaddedSlice", ROWS, 0, ROWS, 20),
    ("SliceWrite", TILE, 20, TILE, 0),
    ("SliceWrite", ROWS, 20, ROWS, 0),
    ("ReshapeView", TILE, 0, TILE, 0),
    ("ReshapeView", ROWS, 0, ROWS, 0),
)


def program(kind, rows, width):
    name, before, from_cores, after, to_cores = kind
    source, target = tensor(rows, width, before, cores=from_cores), tensor(rows, width, after, cores=to_cores)
    return movement_of(f"{name}DeviceOperation", source, target, SPEC)


@given(st.sampled_from(PROGRAMS), st.integers(1, 3000), st.sampled_from([32, 64, 512]))
def test_less_to_work_with_is_never_faster_and_more_to_move_never_either(kind, rows, width):
    movement = program(kind, rows, width)
    found = movement_cycles(movement, SPEC)
    alone = movement_cycles(movement, SPEC, contention=False)
    assert alone.cycles <= found.cycles
    assert found.contention_cycles == pytest.approx(found.cycles - alone.cycles, abs=1e-6)
    assert movement_cycles(movement, SPEC.replace(dram_banks=1)).cycles >= found.cycles
    assert movement_cycles(movement, SPEC.replace(noc_link_bytes_per_cycle=9.0)).cycles >= found.cycles
    wider = movement_cycles(program(kind, rows, 2 * width), SPEC)
    assert wider.cycles >= found.cycles
    assert {stage.stage for stage in found.slowest.stages} >= {Stage.START, found.bound_by}


@pytest.mark.parametrize(
    ("name", "before", "from_cores", "after", "to_cores", "reads", "writes"),
    [
        ("InterleavedToSharded", TILE, 0, TILE, 20, Access.STREAM, None),
        ("InterleavedToSharded", ROWS, 0, ROWS, 20, Access.STICKS, None),
        ("ShardedToInterleaved", ROWS, 20, ROWS, 0, None, Access.STICKS),
        ("Move", ROWS, 20, ROWS, 20, Access.LOCAL, None),
        ("Tilize", ROWS, 20, TILE, 20, None, None),
        ("Untilize", TILE, 0, ROWS, 0, Access.STREAM, Access.BOX),
        ("PaddedSlice", TILE, 0, ROWS, 20, Access.STREAM, Access.LOCAL_STICKS),
    ],
)
def test_how_programs_get_at_pages(name, before, from_cores, after, to_cores, reads, writes):
    movement = program((name, before, from_cores, after, to_cores), 640, 64)
    assert (movement.reads and movement.reads.access) == reads
    assert (movement.writes and movement.writes.access) == writes


def test_pages_of_an_interleaved_tensor_are_dealt_to_all_cores():
    movement = program(("InterleavedToSharded", TILE, 0, TILE, 20), 1280, 64)
    assert movement.reads.core_pages == 4
    assert movement.reads.all_pages == 80
    assert movement_cycles(movement, SPEC).dram_read_bytes == 80 * BFLOAT16.tile_bytes


def test_sticks_that_are_waited_for_cost_a_round_trip_each():
    source, target = tensor(6400, 64, ROWS), tensor(6400, 64, ROWS, cores=20)
    movement = movement_of("InterleavedToSharded", source, target, SPEC, bounces_always=True)
    assert movement_cycles(movement, SPEC).cycles > 320 * SPEC.dram.read_latency_cycles
    assert movement_cycles(program(("InterleavedToSharded", ROWS, 0, ROWS, 20), 6400, 64), SPEC).cycles < 70_000


@pytest.mark.parametrize(
    ("width", "shard_width", "memory", "access"),
    [
        (64, 64, DRAM_MEMORY_CONFIG, Access.STICKS),
        (56, 56, DRAM_MEMORY_CONFIG, Access.BOUNCE),  # 112 bytes: no multiple of 64
        (60, 60, DRAM_MEMORY_CONFIG, Access.STICKS),  # padded to 128 bytes
        (96, 24, DRAM_MEMORY_CONFIG, Access.BOUNCE),
        (64, 16, DRAM_MEMORY_CONFIG, Access.BOUNCE),
        (64, 16, L1_MEMORY_CONFIG, Access.STICKS),
    ],
)
def test_parts_of_sticks_that_begin_between_two_units_of_dram_bounce(width, shard_width, memory, access):
    shard = ShardSpec(first_cores(8, 4, 2), (64, shard_width), ShardOrientation.ROW_MAJOR)
    scheme = TensorMemoryLayout.HEIGHT_SHARDED if width == shard_width else TensorMemoryLayout.BLOCK_SHARDED
    target = tensor(128, width, ROWS, memory=MemoryConfig(scheme, BufferType.L1, shard))
    movement = movement_of("InterleavedToSharded", tensor(128, width, ROWS, memory=memory), target, SPEC)
    assert movement.reads.access is access
    assert movement.reads.in_flight == (4 if access is Access.BOUNCE else 1)


def test_a_slice_of_a_part_of_each_row_touches_more_tiles():
    source, target = tensor(4096, 64, TILE), tensor(720, 64, ROWS, cores=20)
    image = TensorSpec((1, 64, 64, 64), BFLOAT16, TILE, DRAM_MEMORY_CONFIG)
    assert source.matrix == image.matrix
    whole = movement_of("PaddedSlice", image, target, SPEC)
    part = movement_of("PaddedSlice", image, target, SPEC, window=(30, 66))
    assert part.untilized_rows > whole.untilized_rows


def test_tensors_in_l1_do_not_load_dram():
    source, target = (tensor(640, 64, TILE, memory=L1_MEMORY_CONFIG) for _ in range(2))
    found = movement_cycles(movement_of("Copy", source, target, SPEC), SPEC)
    assert (found.dram_read_bytes, found.dram_written_bytes, found.contention_cycles) == (0, 0, 0)


def test_an_unknown_operation_is_refused_by_name():
    with pytest.raises(ValueError, match="there is no model of Transpose"):
        movement_of("TransposeDeviceOperation", tensor(32, 32, TILE), tensor(32, 32, TILE), SPEC)


def test_movements_by_hand():
    """80 tiles of 2048 bytes from DRAM to 20 cores, four each; figures of the p100."""
    movement = program(("InterleavedToSharded", TILE, 0, TILE, 20), 1280, 64)
    # Start and the latency of DRAM; then a core asks for a tile every 36 cycles; the banks deliver 246 bytes a cycle.
    assert movement_cycles(movement, SPEC, contention=False).cycles == 470 + 486 + 4 * 36
    assert movement_cycles(movement, SPEC).cycles == pytest.approx(470 + 486 + 80 * 2048 / 246, rel=1e-12)
    # Sticks of 128 bytes within L1: 64 rows of a shard in one piece, over a link of 60.9 bytes a cycle.
    move = program(("Move", ROWS, 20, ROWS, 20), 1280, 64)
    assert movement_cycles(move, SPEC).cycles == pytest.approx(470 + 64 * 128 / 60.9, rel=1e-12)


def test_more_banks_help_movements_from_dram_and_not_within_l1():
    fewer = SPEC.replace(dram_banks=3)
    read = program(("InterleavedToSharded", TILE, 0, TILE, 20), 1280, 64)
    assert movement_cycles(read, SPEC).cycles < movement_cycles(read, fewer).cycles
    move = program(("Move", ROWS, 20, ROWS, 20), 1280, 64)
    assert movement_cycles(move, SPEC).cycles == movement_cycles(move, fewer).cycles
