"""The halo and the convolution of conftest as a timeline, at 1 GHz: a cycle is a nanosecond."""

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.passes.cycles import TimedOperation
from tests.ttsim.report.ran_operations import runs_of
from ttsim.report.cycle_report import cycle_report
from ttsim.report.cycles import CallRun
from ttsim.report.network import network_report
from ttsim.report.pages import page_of_network
from ttsim.report.trace import Level, Trace, trace_of


@pytest.fixture
def trace(report, halo, conv, spec) -> Trace:
    network = network_report(runs_of(spec, halo, conv), spec)
    return trace_of(page_of_network(network, report, spec).parts[0], spec)


def test_cores_and_stages_are_those_that_do_something(trace) -> None:
    assert len(trace.cores) == 32
    assert trace.cores[:9] == (*((column, 0) for column in range(8)), (0, 1))
    names = [name for name, _ in trace.stages]
    assert names == ["start", "reader", "math", "network", "dram"]
    assert dict(trace.stages)["math"] == "TRISC1"


def test_operations_and_stages_last_as_long_as_they_work_and_wait(trace) -> None:
    on_device = [one for one in trace.slices if one.core is None]
    assert [(one.start_nanoseconds, one.nanoseconds) for one in on_device] == [(0.0, 1000.0), (1000.0, 4000.0)]
    here = {(one.name, one.stage): one for one in trace.slices if one.core == (0, 0)}
    assert here["HaloDeviceOperation", "network"].nanoseconds == 900.0
    reader = here["Conv2dDeviceOperation", "reader"]
    assert (reader.start_nanoseconds, reader.nanoseconds) == (1000.0, 3500.0)
    assert reader.arguments == (("busy", 2000), ("waiting", 1500), ("critical", 500))
    beside = {(one.name, one.stage): one for one in trace.slices if one.core == (1, 0)}
    assert beside["HaloDeviceOperation", ""].nanoseconds == 400.0


def test_halos_flow_into_the_next_operation_on_every_core(trace) -> None:
    assert [(one.name, one.source, one.target) for one in trace.flows] == [
        ("halo", (column, 0), (column, 0)) for column in range(4)
    ]
    assert {(one.start_nanoseconds, one.end_nanoseconds) for one in trace.flows} == {(0.0, 1000.0)}


def test_levels_end_empty(trace) -> None:
    assert len(trace.levels) == 3
    assert trace.levels[-1] == Level(start_nanoseconds=5000.0, circular_bytes=0, buffer_bytes=0)


def test_a_multicast_arrives_when_its_sender_has_sent(spec) -> None:
    """One core sends for 300 of 1000 cycles, at 2 GHz, to the first core of the group that receives."""
    fast = spec.replace(clock_hz=2_000_000_000)
    sends = CoreGroupCycles(cores=first_cores(1, 8, 8), cycles=1000, stages=(StageCycles(Stage.WEIGHT_MULTICAST, 300),))
    rest = CoreRangeSet(CoreRange(CoreCoord(1, 0), CoreCoord(3, 0)))
    receives = CoreGroupCycles(cores=rest, cycles=1000, stages=(StageCycles(Stage.MATH, 700),))
    cycles = OperationCycles(cycles=1000, groups=(sends, receives), bound_by=Stage.MATH)
    reading = TimedOperation(name="Conv2dDeviceOperation", cycles=cycles)
    report = cycle_report([CallRun(name="f", spec=fast, ran=(reading, reading))], fast)
    network = network_report(runs_of(fast, reading, reading), fast)
    flows = trace_of(page_of_network(network, report, fast).parts[0], fast).flows
    assert [(one.name, one.source, one.source_stage, one.target) for one in flows] == [
        ("weight multicast", (0, 0), "weight multicast", (1, 0))
    ] * 2
    assert [(one.start_nanoseconds, one.end_nanoseconds) for one in flows] == [(0.0, 150.0), (500.0, 650.0)]
