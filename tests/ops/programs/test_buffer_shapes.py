"""Buffers, shards and cores that programs share."""

import pytest

from device.cores import first_cores
from device.memory.memory_config import ShardOrientation
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.spec.device_spec import load_spec
from device.time.stages import Stage, StageCycles
from ops.builder import PlanTensor
from ops.programs import buffer_shapes
from tests.build import buffer_rows, tensor_spec
from tests.shards import BLOCK, HEIGHT, WIDTH, in_box

SPEC = load_spec("wormhole_n150").replace(movement_costs_start_cycles=1000.0)
CORES = first_cores(3, 8, 8)


def test_what_buffers_are_made_of():
    """A tile of bfloat8_b: 1,024 mantissas and 64 exponents."""
    buffers = [
        buffer_shapes.paged_buffer("rows", 3, 80, BFLOAT16, CORES, "tensor"),
        buffer_shapes.tile_buffer("tiles", 2, BFLOAT8_B, CORES),
        buffer_shapes.scratchpad("pad", 96, BFLOAT16, CORES),
        *buffer_shapes.sized_buffers({"a": 32, "b": 64}, BFLOAT16, CORES),
    ]
    assert buffer_rows(buffers, "page_bytes", "view_of", "scratchpad") == [
        ("rows", 240, 3, 80, "tensor", False),
        ("tiles", 2 * 1088, 3, 1088, None, False),
        ("pad", 96, 3, 96, None, True),
        ("a", 32, 3, 32, None, False),
        ("b", 64, 3, 64, None, False),
    ]


def test_a_view_is_as_long_as_the_shard_with_its_rows_aligned():
    """Rows of 20 elements take 40 bytes; L1 aligns pages to 16."""
    rows = PlanTensor("x", tensor_spec("10x20 height/5x20/2"))
    assert buffer_rows([buffer_shapes.shard_view("shards", rows, SPEC)], "view_of") == [("shards", 5 * 48, 2, "x")]
    assert buffer_shapes.shard_view("shards", rows, SPEC, CORES).cores == CORES


@pytest.mark.parametrize(
    ("scheme", "orientation", "counts"),
    [
        (HEIGHT, ShardOrientation.ROW_MAJOR, (6, 1)),
        (WIDTH, ShardOrientation.ROW_MAJOR, (1, 6)),
        (BLOCK, ShardOrientation.ROW_MAJOR, (2, 3)),
        (BLOCK, ShardOrientation.COL_MAJOR, (3, 2)),
    ],
)
def test_shards_down_and_across_of_three_columns_and_two_rows_of_cores(scheme, orientation, counts):
    assert buffer_shapes.shard_counts(scheme, in_box(scheme, (32, 32), 3, 2, orientation).shard_spec) == counts


@pytest.mark.parametrize(
    ("items", "cores", "used", "core_items"),
    [(1, 64, 1, 1), (64, 64, 64, 1), (65, 64, 33, 2), (128, 64, 64, 2), (150, 64, 50, 3), (5, 1, 1, 5)],
)
def test_all_but_the_last_core_have_as_many(items, cores, used, core_items):
    assert buffer_shapes.spread_evenly(items, cores) == (used, core_items)


def test_cores_start_and_do_the_same():
    """Pieces pass the slowest part one behind the other: 30 through all parts, then four times 20."""
    assert [buffer_shapes.pipelined_cycles((5, 20, 5), count) for count in (1, 5)] == [30, 30 + 4 * 20]
    busy = {Stage.READER: 40.0, Stage.MATH: 70.0, Stage.WRITER: 0.0}
    cycles = buffer_shapes.uniform_cycles(CORES, 100.0, busy, SPEC, dram_read_bytes=64, contention_cycles=25.0)
    assert (cycles.cycles, cycles.cores, cycles.dram_read_bytes, cycles.contention_cycles) == (1100.0, 3, 64, 25.0)
    bare = buffer_shapes.uniform_cycles(CORES, 100.0, busy, SPEC)
    assert (bare.dram_read_bytes, bare.dram_written_bytes, bare.network_bytes, bare.contention_cycles) == (0, 0, 0, 0)
    stages = ((Stage.START, 1000.0), (Stage.READER, 40.0), (Stage.MATH, 70.0))
    assert cycles.groups[0].stages == tuple(StageCycles(stage, count) for stage, count in stages)
    assert cycles.bound_by is Stage.MATH  # the start binds nothing
