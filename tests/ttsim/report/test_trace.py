"""The halo and the convolution of conftest as a Chrome trace, at 1 GHz: a cycle is a nanosecond."""

import gzip
import json

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.passes.cycles import TimedOperation
from tests.ttsim.report.ran_operations import runs_of, untimed
from ttsim.report.trace import trace_events, trace_json_gz

HOSTILE = '"\n\x00\u202e</script>' + "n" * 10_000


@pytest.fixture
def events(halo, conv, spec):
    return list(trace_events(runs_of(spec, halo, conv, l1=(64, 32)), spec))


def named(events, kind):
    return {(one["pid"], one.get("tid")): one["args"]["name"] for one in events if one["name"] == f"{kind}_name"}


def test_a_core_is_a_process_and_a_stage_a_thread(events) -> None:
    processes, threads = named(events, "process"), named(events, "thread")
    assert len(processes) == 1 + 32
    assert processes[0, None] == "device wormhole_n150"
    assert [processes[number, None] for number in (1, 2, 9)] == ["core 0-0", "core 1-0", "core 0-1"]
    of_a_core = [name for (process, _), name in threads.items() if process == 9]
    assert of_a_core == [
        "operations", "all start", "BRISC/NCRISC reader", "TRISC1 math", "networks network", "memory dram",
    ]  # fmt: skip
    assert [name for (process, _), name in threads.items() if process == 0] == ["operations"]
    places = [(one["pid"], one["args"]["sort_index"]) for one in events if one["name"] == "process_sort_index"]
    assert places == [(number, number) for number in range(33)]


def test_operations_and_stages_last_as_long_as_they_work_and_wait(events) -> None:
    slices = [one for one in events if one["ph"] == "X"]
    on_device = [one for one in slices if one["pid"] == 0]
    assert [(one["ts"], one["dur"], one["tid"], one["cat"]) for one in on_device] == [
        (0.0, 1.0, 0, "operation"), (1.0, 4.0, 0, "operation"),
    ]  # fmt: skip
    assert on_device[1]["args"] == {"cycles": 4000, "bound by": "math", "operation": 1}
    here, beside = ({(one["name"], one["cat"]): one for one in slices if one["pid"] == core} for core in (1, 2))
    assert here["HaloDeviceOperation", "network"]["dur"] == 0.9
    reader = here["Conv2dDeviceOperation", "reader"]
    assert (reader["ts"], reader["dur"], reader["tid"]) == (1.0, 3.5, 2)
    assert reader["args"] == {"busy": 2000, "waiting": 1500, "critical": 500}
    assert beside["HaloDeviceOperation", "operation"]["dur"] == 0.4
    assert beside["HaloDeviceOperation", "operation"]["args"] == {"cycles": 400, "operation": 0}


def test_halos_flow_into_the_next_operation_on_every_core(events) -> None:
    leaves, arrives = ([one for one in events if one["ph"] == end] for end in "sf")
    assert [(one["id"], one["name"], one["pid"], one["ts"], one["tid"]) for one in leaves] == [
        (number, "halo", number + 1, 0.0, 0) for number in range(4)
    ]
    assert [(one["id"], one["pid"], one["ts"]) for one in arrives] == [(at, at + 1, 1.0) for at in range(4)]


def test_levels_of_l1_end_empty(events, spec) -> None:
    levels = [(one["ts"], *one["args"].values()) for one in events if one["ph"] == "C"]
    assert levels == [(0.0, 64, 32), (1.0, 64, 32), (5.0, 0, 0)]
    unknown = trace_events(runs_of(spec, untimed()), spec)
    assert [one["args"]["buffers"] for one in unknown if one["ph"] == "C"] == [0]


def test_a_multicast_arrives_when_its_sender_has_sent(spec) -> None:
    """One core sends for 300 of 1000 cycles, at 2 GHz, to the first core of the group that receives."""
    fast = spec.replace(clock_hz=2_000_000_000)
    sends = CoreGroupCycles(cores=first_cores(1, 8, 8), cycles=1000, stages=(StageCycles(Stage.WEIGHT_MULTICAST, 300),))
    rest = CoreRangeSet(CoreRange(CoreCoord(1, 0), CoreCoord(3, 0)))
    receives = CoreGroupCycles(cores=rest, cycles=1000, stages=(StageCycles(Stage.MATH, 700),))
    cycles = OperationCycles(cycles=1000, groups=(sends, receives), bound_by=Stage.MATH)
    one = TimedOperation("Conv2dDeviceOperation", cycles)
    flows = [one for one in trace_events(runs_of(fast, one, one), fast) if one["ph"] in "sf"]
    assert [(one["ph"], one["name"], one["pid"], one["tid"], one["ts"]) for one in flows] == [
        ("s", "weight multicast", 1, 1, 0.0), ("f", "weight multicast", 2, 0, 0.15),
        ("s", "weight multicast", 1, 1, 0.5), ("f", "weight multicast", 2, 0, 0.65),
    ]  # fmt: skip


def test_equal_runs_give_equal_bytes_and_hostile_names_stay_names(halo, spec) -> None:
    runs = runs_of(spec, halo, name=HOSTILE)
    packed = trace_json_gz(runs, spec)
    assert packed == trace_json_gz(runs, spec)
    assert packed[4:8] == bytes(4)  # no time in the header
    document = json.loads(gzip.decompress(packed))
    assert document["otherData"]["clock_hz"] == 1_000_000_000
    names = [one["name"] for one in document["traceEvents"]]
    assert max(map(len, names)) < 140
    assert not any(character in name for name in names for character in "\x00\n\u202e")
