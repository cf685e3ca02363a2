from dataclasses import replace

import pytest

from device.cores import first_cores
from device.spec.device_spec import catalog_names, load_spec
from device.time.stages import MovedBytes, Stage, StageCycles
from ttsim.report.cycles import CallRun, OperationTime, call_times, stage_times, totals

PRODUCT_FLOPS = 65536


def test_an_operation(conv, spec):
    found = OperationTime(timed=conv, spec=spec, call_cycles=5000)
    assert (found.name, found.bound_by, found.core_count, found.fidelity_phases) == (
        "Conv2dDeviceOperation", "math", 32, 2,
    )  # fmt: skip
    assert (found.cycles, found.nanoseconds, found.share) == (4000, 4000, 0.8)
    assert [stage.stage for stage in found.stages] == ["reader", "math", "dram"]
    math = found.stages[1]
    assert (math.busy_share, math.stall_share, math.critical_share) == (0.75, 0.1, 0.625)
    assert sum(stage.critical_share for stage in found.stages) == 1


def test_groups_of_cores_are_expanded(halo, spec):
    found = OperationTime(timed=halo, spec=spec, call_cycles=1000)
    assert [group.coordinates for group in found.groups] == [((0, 0),), ((1, 0), (2, 0), (3, 0))]
    assert [group.share for group in found.groups] == [1, 0.4]
    assert [group.idle_share for group in found.groups] == [0, 0.6]
    assert found.on_core(2, 0).cycles == 400
    assert found.on_core(0, 0) is found.groups[0]
    with pytest.raises(ValueError, match=r"^HaloDeviceOperation: core 4-0 takes no part; 4 others do$"):
        found.on_core(4, 0)


def test_stages_are_those_of_the_slowest_cores(halo, spec):
    found = OperationTime(timed=halo, spec=spec, call_cycles=1000)
    assert [(stage.stage, stage.busy_cycles) for stage in found.stages] == [("start", 100), ("network", 900)]


def test_contention_can_be_taken_off(halo, conv, spec):
    found = OperationTime(timed=halo, spec=spec, call_cycles=1000)
    assert (found.contention_cycles, found.cycles_without_contention) == (250, 750)
    both = totals([CallRun(name="f", spec=spec, ran=(halo, conv))], spec)
    assert (both.cycles, both.cycles_without_contention) == (5000, 4750)


def test_a_call_adds_up(call, spec):
    (found,) = call_times([call])
    assert found.share == 1
    assert [one.share for one in found.operations] == [0.2, 0.8]
    total = found.total
    assert (total.cycles, total.nanoseconds) == (5000, 5000)
    assert [(stage.stage, stage.busy_cycles) for stage in total.stages] == [
        ("start", 100), ("reader", 2000), ("math", 3000), ("network", 900), ("dram", 1000),
    ]  # fmt: skip
    assert total.traffic.network_bytes == 60_000
    assert total.math.useful_flops == 32 * 10 * PRODUCT_FLOPS
    assert total.math.useful_share == 0.2
    assert total.math.utilization == 50 * 32 * 32 / (4 * 1000 + 32 * 4000)
    assert total.math.device_utilization == 50 * 32 * 32 / (64 * 5000)


def test_cores_over_a_call(call, spec):
    total = totals([call], spec)
    cores = {(core.column, core.row): core for core in total.cores}
    assert len(cores) == 32
    assert list(cores)[:9] == [*((column, 0) for column in range(8)), (0, 1)]
    assert (cores[0, 0].cycles, cores[0, 0].share) == (5000, 1)
    assert cores[1, 0].cycles == 4400
    assert cores[0, 1].cycles == 4000
    assert (cores[0, 0].dram_bytes, cores[0, 0].network_bytes) == (100_000 / 32, 12_000 / 4 + 48_000 / 32)
    assert (cores[0, 1].dram_bytes, cores[0, 1].network_bytes) == (100_000 / 32, 48_000 / 32)


def test_bytes_of_cores_are_whole_and_add_up(halo, spec):
    uneven = replace(halo, cycles=replace(halo.cycles, moved=lambda: (MovedBytes(first_cores(3, 8, 8), 2, 7),)))
    cores = totals([CallRun(name="f", spec=spec, ran=(uneven,))], spec).cores
    assert [(core.dram_bytes, core.network_bytes) for core in cores] == [(1, 3), (1, 2), (0, 2), (0, 0)]


def test_without_a_definition_the_operations_say_what_is_useful(conv, spec):
    total = totals([CallRun(name="ttnn.conv2d", spec=spec, ran=(conv, conv))], spec)
    assert total.math.useful_flops == 2 * conv.cycles.useful_flops


def test_calls_share_the_whole(call, conv, spec):
    first, second = call_times([call, CallRun(name="f", spec=spec, ran=(conv,))])
    assert (first.share, second.share) == (5000 / 9000, 4000 / 9000)
    assert second.operations[0].share == 1


def test_figures_are_worked_out_once(call, spec):
    (first,), (second,) = call_times([call]), call_times([call])
    assert first.total is second.total is call.total
    slower = replace(call, spec=spec.replace(clock_hz=spec.clock_hz // 2))
    assert slower.total.nanoseconds == 2 * call.total.nanoseconds


def test_nothing_divides_by_zero(spec):
    total = totals([], spec)
    assert (total.cycles, total.cores, total.stages) == (0, (), ())
    assert total.math.utilization == total.traffic.dram_share == total.roofline.share == 0
    assert stage_times([StageCycles(Stage.MATH, 0)], of_cycles=0)[0].busy_share == 0


@pytest.mark.parametrize("name", catalog_names())
def test_time_follows_the_clock(name, conv):
    spec = load_spec(name)
    assert OperationTime(timed=conv, spec=spec, call_cycles=1).nanoseconds == pytest.approx(4000 / spec.clock_hz * 1e9)
