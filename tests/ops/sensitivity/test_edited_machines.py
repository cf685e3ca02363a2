"""Machines that somebody edits, worked by hand: each change moves what physics says, and nothing else."""

import pytest

from device.time.network import page_round_trip_cycles, read_latency_cycles, shared_cycles, torus_of
from device.time.stages import Stage
from ops.op_models import load_spec
from ops.passes.cycles import TimedOperation
from ops.programs.kernel_costs import TransferCosts, multicast_cycles, read_page_cycles
from ops.sensitivity.effects import FixedOperation, fixed_operations, with_model
from ops.sensitivity.samples import planners_samples, samples
from ttsim.report.cycles import OperationTime

SPEC = load_spec("wormhole_n150")
TILE_BYTES = 2048


def operations(program, spec=SPEC) -> list[FixedOperation]:
    return [one for one in with_model(fixed_operations(samples(), spec), spec) if one.program == program]


def test_half_the_link_takes_twice_as_long_for_what_the_wire_bounds():
    half = SPEC.replace(noc_flit_bytes=16)
    assert read_page_cycles(SPEC, TILE_BYTES) == pytest.approx(2048 / 30)  # 32 bytes, 30 of them contents
    assert read_page_cycles(half, TILE_BYTES) == pytest.approx(2048 / 15)
    for spec in (SPEC, half):  # 64 bytes are on the wire before the next page is asked for
        assert read_page_cycles(spec, 64) == SPEC.costs_of(TransferCosts).page_issue_cycles
    sent = [multicast_cycles(spec, TILE_BYTES, 8) for spec in (SPEC, half)]
    assert sent[1] - sent[0] > 2048 / 30 - 1e-6  # all of it, and what multicasts lose
    assert shared_cycles(half, 1e6) == shared_cycles(SPEC, 1e6)


def test_twice_the_channels_deliver_twice_as_much_and_answer_no_sooner():
    twice = SPEC.replace(dram_banks=24)
    assert shared_cycles(SPEC, 1e6) == pytest.approx(1e6 / (12 * 24 * 0.922))  # 24 GB/s each at 1 GHz
    assert shared_cycles(twice, 1e6) == pytest.approx(1e6 / (24 * 24 * 0.922))
    assert read_latency_cycles(twice) == read_latency_cycles(SPEC)
    assert page_round_trip_cycles(twice, TILE_BYTES) == page_round_trip_cycles(SPEC, TILE_BYTES)


def test_a_faster_clock_waits_more_cycles_for_dram_and_as_many_for_links():
    fast = SPEC.replace(clock_hz=2_000_000_000)
    assert read_latency_cycles(SPEC) == pytest.approx(95 + 9 * 22 + 88)
    assert read_latency_cycles(fast) == pytest.approx(95 + 9 * 22 + 2 * 88)
    assert shared_cycles(fast, 1e6) == pytest.approx(2 * shared_cycles(SPEC, 1e6))
    assert read_page_cycles(fast, TILE_BYTES) == read_page_cycles(SPEC, TILE_BYTES)


def test_a_wider_matrix_unit_halves_the_products_and_leaves_the_rest():
    wide = SPEC.replace(compute_phase_cycles=8)
    for one in operations("conv2d"):
        before, after = (
            {stage.stage: stage.busy_cycles for stage in one.operation(spec).slowest.stages} for spec in (SPEC, wide)
        )
        assert after[Stage.MATH] == pytest.approx(before[Stage.MATH] / 2)
        assert {key: value for key, value in after.items() if key not in (Stage.MATH, Stage.DRAM)} == pytest.approx(
            {key: value for key, value in before.items() if key not in (Stage.MATH, Stage.DRAM)}
        )


@pytest.mark.parametrize(
    ("cols", "rows", "nodes"),
    [
        (8, 8, (10, 12)),  # the card's
        (1, 1, (10, 12)),  # some of the card's
        (9, 7, (11, 12)),  # one column more than the card has, besides its two of other nodes
        (20, 16, (22, 18)),
    ],
)
def test_a_larger_grid_has_longer_rings(cols, rows, nodes):
    spec = SPEC.replace(grid_cols=cols, grid_rows=rows)
    torus = torus_of(spec)
    assert (torus.cols, torus.rows) == nodes
    assert torus.round_trip_cycles == pytest.approx(95 + 9 * sum(nodes))
    assert len(torus.worker_cols) >= cols
    assert len(torus.worker_rows) >= rows


SLOWER_WITH_ONE = {
    "concat",
    "conv2d",
    "halo",
    "matmul",
    "movement",
    "patch_matmul",
    "phase_conv2d",
    "rearrange",
    "upsample",
}


@pytest.mark.parametrize(
    ("processors", "slower"),
    [
        (1, SLOWER_WITH_ONE),
        (2, set()),
        (3, set()),
    ],
)
def test_hands_that_are_missing_cost_time(processors, slower):
    spec = SPEC.replace(data_movement_processors=processors)
    found = set()
    for one in with_model(fixed_operations(samples(), SPEC), SPEC):
        before, after = (one.cycles(device) for device in (SPEC, spec))
        assert before / 2 - 1e-6 < after < 2 * before + 1e-6
        if after > before + 1e-6:
            found.add(one.program)
    assert found == slower


def test_a_third_hand_reads_the_second_half_and_writes():
    three = SPEC.replace(data_movement_processors=3)
    faster = {
        one.program
        for one in with_model(fixed_operations(samples(), SPEC), SPEC)
        if one.cycles(three) < one.cycles(SPEC) - 1e-6
    }
    assert faster >= {"conv2d"}
    assert faster <= {"conv2d", "matmul", "patch_matmul"}


@pytest.mark.parametrize(("cols", "rows"), [(1, 1), (9, 7), (20, 16)])
@pytest.mark.parametrize("name", ["wormhole_n150", "blackhole_p150"])
def test_every_grid_runs_every_program(name, cols, rows):
    spec = load_spec(name).replace(grid_cols=cols, grid_rows=rows)
    held = with_model(fixed_operations((*samples(), *planners_samples()), spec), spec)
    assert {one.program for one in held} >= {"conv2d", "matmul", "movement", "patch_matmul"}
    for one in held:
        reading = TimedOperation(name=one.name, cycles=one.operation(spec))
        time = OperationTime(timed=reading, spec=spec, call_cycles=0)
        assert time.cycles > 0
        assert time.math.utilization <= 1 + 1e-9
        assert time.roofline.share <= 1 + 1e-9, (one.name, time.roofline)
