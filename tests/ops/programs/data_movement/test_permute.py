"""Axes in another order: buffers, pages, places and cycles, by hand."""

import pytest

from device.memory.layouts import TensorSpec
from device.time.stages import Stage
from ops.op_models import load_spec
from ops.planners.shape.permute import plan_transpose
from ops.programs.data_movement.movement import Access, copy_movement, movement_cycles
from ops.programs.data_movement.permute import Permute
from ops.programs.kernel_costs import core_round_trip_cycles
from tests.build import op_cycles, place, tensor_spec
from tests.ops.programs.data_movement.round_figures import ROUND

COSTS = ROUND.replace(transfer_costs_page_issue_cycles=50.0, movement_costs_stick_cycles=60.0)
WIRE = COSTS.noc.link_bytes_per_cycle
THERE_AND_BACK = core_round_trip_cycles(COSTS)
WORMHOLE, BLACKHOLE = load_spec("wormhole_n150"), load_spec("blackhole_p150")


def turned(read, axes, where=None):
    """The result of another order of axes, where the tensor lies or in a place."""
    shape = [read.shape[axis] for axis in axes]
    return TensorSpec(shape, read.data_format, read.layout, read.memory_config if where is None else place(where))


def permute(text, axes, where=None, spec=COSTS):
    read = tensor_spec(text)
    return op_cycles(Permute(shape=read.shape, axes=axes), read, turned(read, axes, where), spec)


def test_rows_are_turned_a_tile_at_a_time():
    result = permute("1x16x128x64 l1", (0, 2, 3, 1))  # 256 parts of tiles on 64 cores, 16 x 32 each
    read = 15 * 50 + THERE_AND_BACK + 64 / WIRE
    computed = 50 + 3 + 32 + 32 + 70
    written = 31 * 60 + THERE_AND_BACK + 32 / WIRE
    assert result.cycles == pytest.approx(500 + read + computed + 4 * written)
    assert result.bound_by is Stage.WRITER


def test_sticks_of_shards_are_fetched_by_two_processors():
    result = permute("1x16x8x64 height/8x64/16", (0, 2, 1, 3))
    assert result.cycles == pytest.approx(500 + 3 * 25 + THERE_AND_BACK + 128 / WIRE)


def test_the_last_two_axes_of_shards_are_turned_in_place():
    result = permute("1x32x16x64 height/32x64/16", (0, 1, 3, 2), "height/128x16/16")
    read = 15 * 20 + 200 + 128 / WIRE
    computed = 50 + 2 * (3 + 32 + 32) + 2 * 70  # two tiles
    assert result.cycles == pytest.approx(500 + read + computed + max(read, computed))  # two images a core
    assert result.bound_by is Stage.READER
    # high images are copied once more
    tall = permute("1x16x288x32 height/288x32/16", (0, 1, 3, 2), "height/32x288/16")
    assert {stage.stage for stage in tall.slowest.stages} >= {Stage.WRITER, Stage.READER}


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        ("1x2x32x64 l1", (0, 2, 1, 3)),  # rows stay whole
        ("1x2x32x64 tile l1", (0, 1, 3, 2)),
        ("2x4x64x96 tile l1", (1, 0, 2, 3)),
        ("16x1x8x64 height/8x64/16", (1, 0, 2, 3)),
    ],
)
def test_everything_else_is_a_copy(text, axes):
    read = tensor_spec(text)
    assert permute(text, axes) == movement_cycles(copy_movement(read, turned(read, axes), COSTS), COSTS)


@pytest.mark.parametrize(
    ("shape", "axes", "to", "measured_us"),
    [("1x7x25281x256", (0, 2, 3, 1), "dram", 16_984.7), ("1x1x25281x9", (0, 3, 1, 2), "l1", 61.9)],
)
def test_what_was_measured(shape, axes, to, measured_us):
    """tt-perf-report, ops_perf_results_2025_09_18: a Blackhole of 20 cores."""
    spec = BLACKHOLE.replace(grid_cols=5, grid_rows=4)
    assert permute(shape, axes, to, spec).cycles / spec.clock_hz * 1e6 == pytest.approx(measured_us, rel=0.12)


@pytest.mark.parametrize(
    ("text", "swapped", "dataflow"),
    [
        ("1x16x64x64 tile height/128x64/8", (2, 3), True),
        ("1x16x64x64 height/128x64/8", (2, 3), False),  # views of rows
        ("1x4x128x256 height/64x256/8", (1, 2), False),
        ("1x1x50x70 height/7x70/8", (2, 3), True),
    ],
)
def test_buffers_that_are_views_of_rows_are_circular_buffers(text, swapped, dataflow):
    (step,) = plan_transpose(tensor_spec(text), *swapped, WORMHOLE).steps
    assert step.dataflow is dataflow


@pytest.mark.parametrize(
    ("text", "axes", "cores", "reads", "writes"),
    [
        # 128 rows of four faces, 32 bytes each, for 64 cores; each waits for its tiles
        ("1x2x64x64 tile l1", (0, 2, 1, 3), 64, (Access.WAIT, 1, 2048), (Access.STICKS, 8, 32)),
        # two blocks of 32 by 40 elements are cut into four of up to 32 by 32, a core each: 2 x 32 rows of two pieces
        # are read, 2 x 40 rows of one written
        ("1x2x32x40 l1", (0, 1, 3, 2), 4, (Access.STICKS, 32, 64), (Access.STICKS, 20, 64)),
        # one block of 32 by 64 elements of three axes, turned so that the first is last: 16 blocks, face by face
        ("32x8x64 tile l1", (1, 2, 0), 16, (Access.STICKS, 64, 32), (Access.STICKS, 64, 32)),
    ],
)
def test_pieces_of_rows(text, axes, cores, reads, writes):
    source = tensor_spec(text)
    movement = Permute(shape=source.shape, axes=axes).movement(source, turned(source, axes), WORMHOLE)
    assert (movement.cores.num_cores(), movement.blocks) == (cores, 1)
    assert [(side.access, side.core_pages, side.page_bytes) for side in movement.sides] == [reads, writes]
