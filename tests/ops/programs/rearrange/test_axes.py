"""Axes in another order in time, by hand: pages read every 50 cycles, sticks written every 60."""

from math import prod

import pytest

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout as Scheme
from device.numbers.formats import BFLOAT16
from device.time.stages import Stage
from ops.op_model import CyclesContext, Ends
from ops.op_models import load_spec
from ops.programs.kernel_costs import core_round_trip_cycles
from ops.programs.movement.cycles import movement_cycles
from ops.programs.movement.movements import copy_movement
from ops.programs.rearrange.axes import OP_MODELS, permute_cycles
from ops.programs.rearrange.work import Permute
from tests.ops.programs.rearrange.round_figures import ROUND

SPEC = ROUND.replace(transfer_costs_page_issue_cycles=50.0, movement_costs_stick_cycles=60.0)
CORES = first_cores(16, 8, 8)
WIRE = SPEC.noc.link_bytes_per_cycle
THERE_AND_BACK = core_round_trip_cycles(SPEC)


def interleaved(shape, memory=BufferType.L1, layout=Layout.ROW_MAJOR):
    return TensorSpec(shape, BFLOAT16, layout, MemoryConfig(Scheme.INTERLEAVED, memory))


def sharded(shape):
    memory = MemoryConfig(Scheme.HEIGHT_SHARDED, BufferType.L1, ShardSpec(CORES, (prod(shape[:-1]) // 16, shape[-1])))
    return TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, memory)


def permute(read, axes, written=None, spec=SPEC):
    work = Permute(shape=read.shape, axes=axes)
    if written is None:
        written = TensorSpec([read.shape[axis] for axis in axes], BFLOAT16, read.layout, read.memory_config)
    ends = Ends(read=read, written=written)
    return work, ends, permute_cycles(work, ends, CyclesContext(spec=spec, contention=True))


def test_rows_are_turned_a_tile_at_a_time():
    _, _, made = permute(interleaved((1, 16, 128, 64)), (0, 2, 3, 1))  # 256 parts of tiles on 64 cores, 16 x 32 each
    read = 15 * 50 + THERE_AND_BACK + 64 / WIRE
    computed = 50 + 3 + 32 + 32 + 70
    written = 31 * 60 + THERE_AND_BACK + 32 / WIRE
    assert made.cycles == pytest.approx(500 + read + computed + 4 * written)
    assert made.bound_by is Stage.WRITER


def test_sticks_of_shards_are_fetched_by_two_processors():
    _, _, made = permute(sharded((1, 16, 8, 64)), (0, 2, 1, 3), sharded((1, 8, 16, 64)))
    assert made.cycles == pytest.approx(500 + 3 * 25 + THERE_AND_BACK + 128 / WIRE)


def test_the_last_two_axes_of_shards_are_turned_in_place():
    _, _, made = permute(sharded((1, 32, 16, 64)), (0, 1, 3, 2), sharded((1, 32, 64, 16)))
    read = 15 * 20 + 200 + 128 / WIRE
    computed = 50 + 2 * (3 + 32 + 32) + 2 * 70  # two tiles
    assert made.cycles == pytest.approx(500 + read + computed + max(read, computed))  # two images a core
    assert made.bound_by is Stage.READER


def test_high_images_are_copied_once_more():
    tall, wide = sharded((1, 16, 288, 32)), sharded((1, 16, 32, 288))
    _, _, made = permute(tall, (0, 1, 3, 2), wide)
    assert {one.stage for one in made.slowest.stages} >= {Stage.WRITER, Stage.READER}


@pytest.mark.parametrize(
    ("read", "axes"),
    [
        (interleaved((1, 2, 32, 64)), (0, 2, 1, 3)),  # rows stay whole
        (interleaved((1, 2, 32, 64), layout=Layout.TILE), (0, 1, 3, 2)),
        (sharded((16, 1, 8, 64)), (1, 0, 2, 3)),
    ],
)
def test_everything_else_is_a_copy(read, axes):
    _, ends, made = permute(read, axes)
    assert made == movement_cycles(copy_movement(ends.read, ends.written, SPEC), SPEC)


@pytest.mark.parametrize(
    ("shape", "axes", "to", "measured_us"),
    [
        ((1, 7, 25281, 256), (0, 2, 3, 1), BufferType.DRAM, 16_984.7),
        ((1, 1, 25281, 9), (0, 3, 1, 2), BufferType.L1, 61.9),
    ],
)
def test_what_was_measured(shape, axes, to, measured_us):
    """tt-perf-report, ops_perf_results_2025_09_18: a Blackhole of 20 cores."""
    spec = load_spec("blackhole_p150").replace(grid_cols=5, grid_rows=4)
    made = interleaved([shape[axis] for axis in axes], to)
    _, _, timed = permute(interleaved(shape, BufferType.DRAM), axes, made, spec)
    assert timed.cycles / spec.clock_hz * 1e6 == pytest.approx(measured_us, rel=0.12)


@pytest.mark.parametrize("axes", [(0, 2, 1, 3), (0, 1, 3, 2)])
def test_it_says_what_it_is_composed_of(axes):
    work, ends, _ = permute(sharded((1, 16, 8, 64)), axes, sharded((1, 16, 64, 8)))
    account = OP_MODELS[0].account(work, ends, SPEC)
    assert (account.measured_as, bool(account.composed_of)) == ("", True)
