"""Figures of reports that follow from sums over operations."""

import pytest

from device.cores import first_cores
from device.time.network import bandwidth
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.passes.cycles import TimedOperation
from ttsim.report.cycles import OperationTime, added, math_use, roofline, traffic

PRODUCT_FLOPS = 65536


def products(count, *, fidelity_phases, cores=1, cycles=1000.0):
    group = CoreGroupCycles(cores=first_cores(cores, 8, 8), cycles=cycles, stages=(StageCycles(Stage.MATH, cycles),))
    timed = OperationCycles(
        cycles=cycles, groups=(group,), bound_by=Stage.MATH, issued_flops=count * PRODUCT_FLOPS, useful_flops=0
    )
    return TimedOperation(name="Op", cycles=timed, fidelity_phases=fidelity_phases)


def sums_of(timed, spec):
    return OperationTime(timed=timed, spec=spec, call_cycles=0).sums


@pytest.mark.parametrize(("fidelity_phases", "cycles"), [(1, 16), (2, 32), (3, 48), (4, 64)])
def test_a_tile_product_costs_16_cycles_a_phase(fidelity_phases, cycles, spec):
    found = math_use(
        sums_of(products(1, fidelity_phases=fidelity_phases), spec),
        spec,
        useful_flops=0,
    )
    assert found.product_cycles == cycles
    assert found.utilization == cycles / 1000
    assert found.device_utilization == cycles / 1000 / 64


def test_math_counts_what_is_issued_and_what_is_useful(conv, spec):
    found = math_use(sums_of(conv, spec), spec, useful_flops=conv.cycles.useful_flops)
    assert found.useful_share == 0.4
    assert found.utilization == 50 * 32 / 4000
    assert found.device_utilization == found.utilization / 2
    assert found.flops_per_second == pytest.approx(32 * 20 * PRODUCT_FLOPS / 4e-6)


def test_traffic_in_time(conv, spec):
    found = traffic(sums_of(conv, spec), spec)
    assert (found.dram_read_bytes, found.dram_written_bytes, found.network_bytes) == (80_000, 20_000, 48_000)
    assert found.dram_bytes_per_second == pytest.approx(100_000 / 4e-6)
    assert found.dram_share == pytest.approx(25e9 / spec.dram.peak_bytes_per_second)
    assert found.network_bytes_per_second == pytest.approx(12e9)


def test_roofs(halo, conv, spec):
    found = roofline(sums_of(conv, spec))
    assert found.math_cycles == 50 * 32 * 32 / 64
    assert found.dram_cycles == round(100_000 / bandwidth(spec))
    assert found.network_cycles == round(48_000 / (2 * 32 * spec.noc.link_bytes_per_cycle))
    assert (found.bound, found.cycles, found.share) == ("math", 800, 0.2)
    assert found.issued_flops_per_dram_byte == 32 * 50 * PRODUCT_FLOPS / 100_000
    other = roofline(sums_of(halo, spec))
    assert (other.bound, other.cycles) == ("network", round(12_000 / (8 * spec.noc.link_bytes_per_cycle)))
    both = roofline(added([sums_of(one, spec) for one in (halo, conv)]))
    assert both.bound == "math"
    assert both.cycles == found.cycles + other.cycles
    assert roofline(sums_of(products(0, fidelity_phases=0), spec)).bound == "none"


def test_a_roof_is_the_devices_not_the_partitions(spec):
    few, many = (roofline(sums_of(products(640, fidelity_phases=1, cores=cores), spec)) for cores in (1, 64))
    assert few.math_cycles == many.math_cycles == 160
