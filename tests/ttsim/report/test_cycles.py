"""Figures of operations and calls, worked by hand: the halo and the convolution of conftest."""

import dataclasses

import pytest

from device.cores import first_cores
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.op_model import Description
from ops.passes.cycles import TimedOperation, expected_error
from tests.ttsim.report.ran_operations import untimed
from ttsim.report.cycle_report import cycle_report
from ttsim.report.cycles import (
    DOES,
    CallRun,
    ErrorBar,
    MathUse,
    OperationTime,
    error_bar,
    stage_times,
    tied_stages,
    total_error,
    totals,
    whole,
)
from ttsim.report.writers.table import cycles_line

PRODUCT_FLOPS = 65536


def time_of(timed, spec, call_cycles=5000):
    return OperationTime(timed=timed, spec=spec, call_cycles=call_cycles)


def test_groups_of_cores_are_expanded_and_the_slowest_is_shown(halo, spec):
    found = time_of(halo, spec, 1000)
    assert [group.coordinates for group in found.groups] == [((0, 0),), ((1, 0), (2, 0), (3, 0))]
    assert [(group.share, group.idle_share) for group in found.groups] == [(1, 0), (0.4, 0.6)]
    assert found.ends == {(0, 0): 1000, (1, 0): 400, (2, 0): 400, (3, 0): 400}
    assert (found.first_end, found.mean_end, found.cycles_without_contention) == (400, 550, 750)
    assert found.on_core(2, 0).cycles == 400
    with pytest.raises(ValueError, match=r"^HaloDeviceOperation: core 4-0 takes no part; 4 others do$"):
        found.on_core(4, 0)


def test_nothing_divides_by_zero(spec):
    report = cycle_report([], spec)
    assert str(report) == report.explain() == "No call that takes cycles was made on wormhole_n150."
    total = totals([], spec)
    assert (total.cycles, total.cores, total.stages) == (0, (), ())
    assert total.math.utilization == total.traffic.dram_share == total.roofline.share == 0
    assert stage_times([StageCycles(Stage.MATH, 0)], of_cycles=0)[0].busy_share == 0


def products(count, spec, *, phases, cores=1):
    group = CoreGroupCycles(cores=first_cores(cores, 8, 8), cycles=1000.0, stages=(StageCycles(Stage.MATH, 1000.0),))
    taken = OperationCycles(cycles=1000.0, groups=(group,), bound_by=Stage.MATH, issued_flops=count * PRODUCT_FLOPS)
    return time_of(TimedOperation(name="Op", cycles=taken, fidelity_phases=phases), spec).sums


def test_a_tile_product_costs_16_cycles_a_phase(spec):
    for phases, cycles in ((0, 16), (1, 16), (4, 64)):
        use = MathUse(products(1, spec, phases=phases), spec, useful_flops=0)
        shares = (use.product_cycles, use.utilization, use.device_utilization)
        assert shares == (cycles, cycles / 1000, cycles / 1000 / 64)


def test_the_nearest_whole_number():
    """Half a cycle, summed up in any order, is the same half."""
    assert [whole(cycles) for cycles in (0.4, 0.5, 1.5, 2.5, 7.6, 1.5 - 2e-16)] == [0, 0, 2, 2, 8, 2]


def bar(share):
    return ErrorBar(share=share, configurations=3, text="")


def test_errors_of_one_kind_add_up_and_kinds_add_in_squares():
    """Two convolutions of 400 cycles at 5 % are 40 off together, a halo of 200 at 15 % is 30 off: 50 of 1,000."""
    found = total_error([("conv", 400, bar(0.05)), ("halo", 200, bar(0.15)), ("conv", 400, bar(0.05))])
    assert (found.share, found.unmeasured_share) == (pytest.approx(0.05), 0)
    found = total_error([("conv", 750, bar(0.04)), ("", 250, bar(None))])
    assert (found.share, found.unmeasured_share) == (0.04, 0.25)
    assert total_error([("", 10, bar(None))]).share is None
    assert total_error([]).unmeasured_share == 0


def test_where_an_error_comes_from():
    """From rows of the same class, architecture and place; never from another architecture."""
    halo = Description(measured_as="Halo of rows")
    operation = TimedOperation("HaloDeviceOperation", None, description=halo, place="shards")
    found, expected = error_bar(operation, "blackhole"), expected_error("Halo of rows", "blackhole", "shards")
    assert (found.share, found.configurations) == (expected.share, expected.configurations)
    count = f"{expected.configurations} configurations"
    assert found.text == f"Halo of rows (shards): {count} that the fit had not seen"
    older = error_bar(operation, "wormhole_b0").text
    assert older.endswith(" configurations of the kernels of release 2025-02, not of today's")
    assert error_bar(operation, "my own").text == "no measurement"
    composed = Description(composed_of="other steps")
    text = error_bar(TimedOperation("SortDeviceOperation", None, description=composed, place="DRAM"), "blackhole").text
    assert text == "no measurement; composed of other steps"


def test_a_report_is_frozen_and_fits_the_terminal(report, monkeypatch):
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.device = "another"
    assert str(report) == report.table()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    assert str(report) == report.table(80) != report.table()


def test_what_is_not_counted_is_said_first(conv, spec):
    """Each name once; a report of which nothing is missing does not mention it."""
    sort, fold = untimed("Sort", "no model"), untimed("Fold", "no model")
    calls = [CallRun(name="f", spec=spec, ran=(conv, sort)), CallRun(name="g", spec=spec, ran=(sort, fold, sort)),
             CallRun(name="h", spec=spec, ran=(conv,))]  # fmt: skip
    report = cycle_report(calls, spec)
    assert str(report).splitlines()[0] == "wormhole_n150: 8,000 cycles, 8.00 us at 1 GHz, not counting Sort and Fold"
    first, second, third = (line for line in report.explain().splitlines() if line[:2] in ("f ", "g ", "h "))
    took = "takes 4,000 cycles (4.00 us) on wormhole_n150, in one device operation"
    assert first.startswith(f"f {took}, not counting Sort.")
    assert second == "g takes no cycles on wormhole_n150, not counting Sort and Fold."
    assert third.startswith(f"h {took}. Its")
    assert cycles_line(report, report.calls[1]) == "no operation that takes cycles, not counting Sort and Fold"


FEW = ((Stage.MATH, 900, 900), (Stage.PACK, 440, 440))
SEVERAL = ((Stage.MATH, 24_576, 24_576), (Stage.WEIGHT_READER, 40_000, 24_570), (Stage.TILIZE, 31_031, 11_031),
           (Stage.WEIGHT_MULTICAST, 30_000, 19_823), (Stage.READER, 20_000, 20_000))  # fmt: skip


@pytest.mark.parametrize(
    ("stages", "cycles", "tied"),
    [
        (SEVERAL, 100_000, ("weight reader", "reader", "weight multicast")),  # 24,576 - 5,000 and more; as in upconv4
        (FEW, 9900, ()),  # within 5 % of all, and less than half of the leader
        (((Stage.READER, 95_000, 0), (Stage.WRITER, 89_000, 0)), 100_000, ()),
        (((Stage.READER, 95_000, 0), (Stage.WRITER, 90_000, 0)), 100_000, ("writer",)),
        (((Stage.WRITER, 600, 0), (Stage.START, 2_500, 0)), 5_000, ()),  # the start binds nothing
    ],
)
def test_near_ties_are_named(stages, cycles, tied, spec):
    """The first stage is said to bind the operation."""
    own = tuple(StageCycles(stage, busy, critical_cycles=critical) for stage, busy, critical in stages)
    group = CoreGroupCycles(cores=first_cores(4, 8, 8), cycles=cycles, stages=own)
    timed = TimedOperation("Op", OperationCycles(cycles=cycles, groups=(group,), bound_by=own[0].stage))
    report = cycle_report([CallRun(name="f", spec=spec, ran=(timed,))], spec)
    assert report.operations[0].tied_with == tied
    assert ("nearly tied" in report.explain()) == bool(tied)


def test_nothing_is_tied_with_nothing_and_every_stage_has_a_meaning():
    assert tied_stages((), "math", 0) == ()
    assert tied_stages(stage_times([StageCycles(Stage.MATH, 5)], of_cycles=5), "math", 5) == ()
    assert set(Stage) == set(DOES)
