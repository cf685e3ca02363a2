"""Hand-made cycles: a halo whose cores differ, and a convolution on a device of 64 cores at 1 GHz."""

from dataclasses import replace

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.spec.device_spec import load_spec
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.passes.cycles import TimedOperation
from tests.ttsim.report.ran_operations import LAYER, untimed
from ttsim.report.cycle_report import cycle_report
from ttsim.report.cycles import CallRun
from ttsim.study.layers.run import Settings, run_layer

PRODUCT_FLOPS = 65536


@pytest.fixture
def spec():
    return load_spec("wormhole_n150").replace(clock_hz=1_000_000_000)


@pytest.fixture(scope="session")
def layer():
    """A layer that ran, without cycles."""
    settings = Settings(spec=load_spec("wormhole_n150"), values="off", suggestions=False, cycles=False)
    return run_layer(LAYER, settings)


@pytest.fixture
def halo():
    rest, stages = CoreRangeSet(CoreRange(CoreCoord(1, 0), CoreCoord(3, 0))), (StageCycles(Stage.NETWORK, 400),)
    longest = (StageCycles(Stage.NETWORK, 900), StageCycles(Stage.START, 100))
    groups = (
        CoreGroupCycles(cores=rest, cycles=400, stages=stages),
        CoreGroupCycles(cores=first_cores(1, 8, 8), cycles=1000, stages=longest),
    )
    figures = {"bound_by": Stage.NETWORK, "network_bytes": 12_000, "contention_cycles": 250}
    return TimedOperation("HaloDeviceOperation", OperationCycles(cycles=1000, groups=groups, **figures))


@pytest.fixture
def conv():
    stages = (
        StageCycles(Stage.READER, 2000, stall_cycles=1500, critical_cycles=500),
        StageCycles(Stage.MATH, 3000, stall_cycles=400, critical_cycles=2500),
        StageCycles(Stage.DRAM, 1000, critical_cycles=1000),
    )
    group = CoreGroupCycles(cores=first_cores(32, 8, 8), cycles=4000, stages=stages)
    flops = {"issued_flops": 32 * 50 * PRODUCT_FLOPS, "useful_flops": 32 * 20 * PRODUCT_FLOPS}
    moved = {"dram_read_bytes": 80_000, "dram_written_bytes": 20_000, "network_bytes": 48_000}
    cycles = OperationCycles(cycles=4000, groups=(group,), bound_by=Stage.MATH, **moved, **flops)
    return TimedOperation("Conv2dDeviceOperation", cycles, fidelity_phases=2)


@pytest.fixture
def call(halo, conv, spec):
    return CallRun(name="ttnn.conv_transpose2d", ran=(halo, conv), spec=spec, useful_flops=32 * 10 * PRODUCT_FLOPS)


@pytest.fixture
def report(call, spec):
    return cycle_report([call], spec)


@pytest.fixture
def report_with_a_move(call, spec):
    """The same, with a move between the two that no model knows."""
    halo, conv = call.ran
    return cycle_report([replace(call, ran=(halo, untimed(), conv))], spec)
