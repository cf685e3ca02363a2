"""Chrome traces, as far as the approved one does not hold them."""

import gzip
import json

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.passes.cycles import TimedOperation
from tests.ttsim.report.ran_operations import runs_of
from ttsim.report.trace import trace_events, trace_json_gz

HOSTILE = '"\n\x00\u202e</script>' + "n" * 10_000


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
    packed = trace_json_gz(runs_of(spec, halo, name=HOSTILE), spec)
    assert packed[4:8] == bytes(4)  # no time in the header
    document = json.loads(gzip.decompress(packed))
    assert document["otherData"]["clock_hz"] == 1_000_000_000
    names = [event["name"] for event in document["traceEvents"]]
    assert max(map(len, names)) < 140
    assert not any(character in name for name in names for character in "\x00\n\u202e")
