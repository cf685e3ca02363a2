"""Figures of operations and calls, worked by hand: the halo and the convolution of conftest."""

import dataclasses

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.spec.device_spec import load_spec
from device.time.network import bandwidth
from device.time.stages import CoreGroupCycles, MovedBytes, OperationCycles, Stage, StageCycles
from ops.launch import Launch, LaunchedProgram
from ops.op_model import Description
from ops.passes.cycles import TimedOperation, expected_error
from tests.ttsim.report.ran_operations import untimed
from ttsim.report.cycle_report import cycle_report, launch_lines, launch_times
from ttsim.report.cycles import (
    DOES,
    CallRun,
    ErrorBar,
    MathUse,
    OperationTime,
    Roofline,
    call_times,
    error_bar,
    stage_times,
    tied_stages,
    total_error,
    totals,
    whole,
    whole_operation,
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


def test_a_call_adds_up(call, halo, conv, spec):
    (found,) = call_times([call])
    assert [op.share for op in found.operations] == [0.2, 0.8]
    assert found.operations[1].dram_bytes_per_cycle == 25  # 80,000 B are read and 20,000 B written
    total = found.total
    assert (total.cycles, total.nanoseconds, total.cycles_without_contention) == (5000, 5000, 4750)
    busy = {stage.stage: stage.busy_cycles for stage in total.stages}
    assert busy == {"start": 100, "reader": 2000, "math": 3000, "network": 900, "dram": 1000}
    assert (total.math.useful_flops, total.math.useful_share) == (32 * 10 * PRODUCT_FLOPS, 0.2)
    assert total.math.utilization == 50 * 32 * 32 / (4 * 1000 + 32 * 4000)
    assert total.math.device_utilization == 50 * 32 * 32 / (64 * 5000)
    twice = totals([CallRun(name="f", spec=spec, ran=(conv, conv))], spec)  # which knows of no definition
    assert twice.math.useful_flops == 2 * 32 * 20 * PRODUCT_FLOPS
    first, second = call_times([call, CallRun(name="f", spec=spec, ran=(conv,))])
    assert (first.share, second.share, second.operations[0].share) == (5000 / 9000, 4000 / 9000, 1)


def test_cores_over_a_call(call, halo, spec):
    cores = {(core.column, core.row): core for core in totals([call], spec).cores}
    assert len(cores) == 32
    assert list(cores)[:9] == [*((column, 0) for column in range(8)), (0, 1)]
    here, beside, below = (cores[at] for at in ((0, 0), (1, 0), (0, 1)))
    assert (here.cycles, here.busy_cycles, here.stall_cycles) == (1000 + 4000, 900 + 3000, 1500)
    assert (here.share, here.busy_share, here.stall_share) == (1, 0.78, 0.3)
    assert (beside.cycles, beside.busy_cycles, below.cycles) == (400 + 4000, 400 + 3000, 4000)
    assert (here.dram_bytes, here.network_bytes) == (100_000 / 32, 12_000 / 4 + 48_000 / 32)
    assert (below.dram_bytes, below.network_bytes) == (100_000 / 32, 48_000 / 32)
    uneven = dataclasses.replace(halo.cycles, moved=lambda: (MovedBytes(first_cores(3, 8, 8), 2, 7),))
    ran = (dataclasses.replace(halo, cycles=uneven),)
    cores = totals([CallRun(name="f", spec=spec, ran=ran)], spec).cores
    assert [(core.dram_bytes, core.network_bytes) for core in cores] == [(1, 3), (1, 2), (0, 2), (0, 0)]


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


def test_roofs_are_the_devices_and_not_the_partitions(halo, conv, spec):
    found = time_of(conv, spec).roofline
    assert found.math_cycles == 50 * 32 * 32 / 64
    assert found.dram_cycles == round(100_000 / bandwidth(spec))
    assert found.network_cycles == round(48_000 / (2 * 32 * spec.noc.link_bytes_per_cycle))
    assert (found.bound, found.cycles, found.share) == ("math", 800, 0.2)
    assert found.issued_flops_per_dram_byte == 32 * 50 * PRODUCT_FLOPS / 100_000
    other = time_of(halo, spec).roofline
    assert (other.bound, other.cycles) == ("network", round(12_000 / (8 * spec.noc.link_bytes_per_cycle)))
    both = totals([CallRun(name="f", spec=spec, ran=(halo, conv))], spec).roofline
    assert (both.bound, both.cycles) == ("math", found.cycles + other.cycles)
    assert Roofline(products(0, spec, phases=0)).bound == "none"
    few, many = (Roofline(products(640, spec, phases=1, cores=cores)) for cores in (1, 64))
    assert few.math_cycles == many.math_cycles == 160


def test_the_nearest_whole_number():
    """Half a cycle, summed up in any order, is the same half."""
    assert [whole(cycles) for cycles in (0.4, 0.5, 1.5, 2.5, 7.6, 1.5 - 2e-16)] == [0, 0, 2, 2, 8, 2]


def test_an_operation_in_whole_cycles(spec):
    stages = (
        StageCycles(Stage.READER, 40.4, critical_cycles=33.4),
        StageCycles(Stage.MATH, 60.5, stall_cycles=1.2, critical_cycles=33.4),
        StageCycles(Stage.WRITER, 70.0, critical_cycles=33.4),
    )
    apart = CoreRangeSet(CoreRange(CoreCoord(x, y), CoreCoord(x, y)) for x in range(1, 4) for y in range(2))
    groups = (
        CoreGroupCycles(cores=apart, cycles=101.0, stages=stages),
        CoreGroupCycles(cores=first_cores(1, 8, 8), cycles=50.0, stages=stages[:1]),
    )
    given = OperationCycles(cycles=100.2, groups=groups, bound_by=Stage.WRITER, contention_cycles=0.7)
    found = whole_operation(given)
    assert (found.cycles, found.contention_cycles) == (100, 1)
    assert [group.cycles for group in found.groups] == [100, 50]  # none ends after the operation
    assert (found.cores, found.bound_by) == (7, Stage.WRITER)
    assert [stage.critical_cycles for stage in found.groups[0].stages] == [33, 34, 33]
    group = time_of(TimedOperation(name="Op", cycles=found), spec).groups[0]
    assert (group.cores, group.ranges) == ("{[1-0 - 3-1]}", ((1, 0, 3, 1),))
    assert group.coordinates == ((1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (3, 1))


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
    conv = expected_error("convolution", "blackhole")
    found = error_bar(Description(measured_as="convolution"), "blackhole")
    assert (found.share, found.configurations) == (conv.share, conv.configurations)
    other = error_bar(Description(measured_as="halo of rows"), "wormhole_b0").text
    assert other.endswith(", all on blackhole: on wormhole_b0 nothing was measured")
    assert error_bar(Description(), "blackhole").text == "no measurement"


COSTS = {"fetch_cycles": 2000, "write_cycles": 100, "write_core_cycles": 1, "binary_bytes_per_cycle": 16,
         "start_cycles": 800, "host_launch_nanoseconds": 5000, "host_bytes_per_second": 1_000_000_000}  # fmt: skip
LAUNCH_SPEC = load_spec("wormhole_n150").replace(**{f"dispatch_costs_{name}": cost for name, cost in COSTS.items()})
PROGRAM = LaunchedProgram(name="One", cores=1, processors=1, binaries=1, binary_bytes=1600, key="one")


def test_three_launches_by_hand():
    """Fetching takes 2000 + 100 cycles of a nanosecond; the second program is fetched and written behind a kernel."""
    times = launch_times([Launch(PROGRAM, 4000.0)] * 2, 8000.0, LAUNCH_SPEC)
    assert times.programs == 2
    assert [reading.reading for reading in times.readings] == ["trace replay", "warm program cache", "first call"]
    trace, warm, first = times.readings
    assert trace.between_nanoseconds == 2100 + 2 * 800
    assert trace.total_nanoseconds == 8000 + 2100 + 2 * 800
    assert warm.between_nanoseconds == 2 * 5000 + 2100 + 800 - 4000  # the host is slower than the kernels
    assert first.between_nanoseconds == warm.between_nanoseconds + 1600
    assert launch_times([], 0.0, LAUNCH_SPEC).readings == ()
    assert launch_lines(launch_times([], 0.0, LAUNCH_SPEC)) == []


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
