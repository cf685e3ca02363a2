"""No operation is faster than its matrix units, the banks of DRAM, or the busiest link."""

import pytest

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import load_spec
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.op_model import Ends
from ops.passes.floors import floored, least_cycles

SPEC = load_spec("wormhole_n150")


def operation(cycles=1000.0, **figures):
    """Of 64 cores that read for most of their time."""
    stages = (StageCycles(Stage.START, 200.0, 0.0, 200.0), StageCycles(Stage.READER, 800.0, 0.0, 800.0))
    group = CoreGroupCycles(cores=first_cores(64, 8, 8), cycles=cycles, stages=stages)
    return OperationCycles(cycles=cycles, groups=(group,), bound_by=Stage.READER, **figures)


def ends(memory, *, whole=True):
    tensor = TensorSpec((1, 1, 4096, 256), BFLOAT16, Layout.TILE, memory)
    return Ends(read=tensor, written=tensor, whole=whole)


def test_least_cycles_of_each_resource():
    """64 products of 4 phases on 64 cores; 2 MiB of 265.5 GB/s; 2 MiB of which 3.5 in 64 x 64 parts pass a link."""
    found = least_cycles(
        operation(issued_flops=64 * 2 * 32**3, dram_read_bytes=1 << 21), ends(L1_MEMORY_CONFIG), 4, SPEC
    )
    assert found[Stage.MATH] == 64
    assert found[Stage.DRAM] == pytest.approx((1 << 21) / (0.922 * 288))
    assert found[Stage.NETWORK] == pytest.approx((1 << 21) * 3.5 / 64 / 30)
    assert least_cycles(operation(), ends(DRAM_MEMORY_CONFIG), 1, SPEC)[Stage.NETWORK] == pytest.approx(
        (1 << 21) / 8 / 30
    )
    assert least_cycles(operation(), ends(L1_MEMORY_CONFIG, whole=False), 1, SPEC)[Stage.NETWORK] == 0


def test_an_operation_that_is_too_fast_waits_for_its_resource():
    """1 << 21 bytes of DRAM take 7,898 cycles: those beyond the critical 1,000 are DRAM's."""
    timed = operation(dram_read_bytes=1 << 21)
    slower = floored(timed, ends(L1_MEMORY_CONFIG, whole=False), 0, SPEC)
    least = (1 << 21) / (0.922 * 288)
    assert (slower.cycles, slower.bound_by) == (pytest.approx(least), Stage.DRAM)
    (group,) = slower.groups
    assert group.cycles == slower.cycles
    assert sum(stage.critical_cycles for stage in group.stages) == pytest.approx(least)
    assert group.stages[-1][:2] == (Stage.DRAM, pytest.approx(least))
    assert floored(operation(cycles=9000.0), ends(DRAM_MEMORY_CONFIG), 0, SPEC).bound_by is Stage.READER
