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


def test_operations_and_stages_last_as_long_as_they_work_and_wait(events) -> None:
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert [processes[number] for number in (0, 1, 2, 9)] == [
        "device wormhole_n150",
        "core 0-0",
        "core 1-0",
        "core 0-1",
    ]
    slices = {(event["pid"], event["name"], event["cat"]): event for event in events if event["ph"] == "X"}
    conv = slices[0, "Conv2dDeviceOperation", "operation"]
    assert (conv["ts"], conv["dur"], conv["args"]) == (1.0, 4.0, {"cycles": 4000, "bound by": "math", "operation": 1})
    assert slices[1, "HaloDeviceOperation", "network"]["dur"] == 0.9
    assert slices[2, "HaloDeviceOperation", "operation"]["args"] == {"cycles": 400, "operation": 0}
    reader = slices[1, "Conv2dDeviceOperation", "reader"]
    assert (reader["ts"], reader["dur"], reader["tid"]) == (1.0, 3.5, 2)
    assert reader["args"] == {"busy": 2000, "waiting": 1500, "critical": 500}
    flows = [(event["ph"], event["id"], event["pid"], event["ts"]) for event in events if event["ph"] in "sf"]
    assert flows == [flow for at in range(4) for flow in (("s", at, at + 1, 0.0), ("f", at, at + 1, 1.0))]  # halos


def test_levels_of_l1_end_empty(events, spec) -> None:
    levels = [(event["ts"], *event["args"].values()) for event in events if event["ph"] == "C"]
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
    flows = [event for event in trace_events(runs_of(fast, one, one), fast) if event["ph"] in "sf"]
    assert [(flow["ph"], flow["name"], flow["pid"], flow["tid"], flow["ts"]) for flow in flows] == [
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
