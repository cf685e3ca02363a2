"""Timelines of the networks, worked by hand on the torus of a Wormhole card: 10 columns, 12 rows, 32 bytes a cycle."""

import gzip
import json

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet, first_cores
from device.spec.device_spec import load_spec
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.op_model import Sent
from ops.passes.cycles import TimedOperation
from tests.ttsim.report.ran_operations import runs_of
from ttsim.report.timelines import timeline
from ttsim.report.trace import trace_events, trace_json_gz

LINKS = 2 * 10 * 12  # of a network


def drawn(*sent):
    """The document on transfers of (network, source, destination, start, end, bytes)."""
    names = ("network", "source", "destination", "start_cycle", "end_cycle", "size_bytes")
    return timeline([Sent(**dict(zip(names, one, strict=True))) for one in sent], load_spec("wormhole_n150"), "a")


def load(demand, used, most):
    return {"avg_link_demand": round(demand, 6), "avg_link_util": round(used, 6), "max_link_demand": most}


def test_transfers_meet_on_links():
    """Both pass the link from column 2 to 3; each asks for 10 of 32 bytes a cycle as long as it lasts."""
    document = drawn((0, (0, 0), (2, 0), 0.0, 32.0, 320), (0, (1, 0), (2, 0), 16.0, 48.0, 320))
    head, steps, transfers = (document[name] for name in ("common_info", "timestep_data", "noc_transfers"))
    assert (head["num_cols"], head["num_rows"], head["cycles_per_timestep"], len(steps)) == (10, 12, 3, 16)
    (segment,), (second,) = (transfer["route"] for transfer in transfers)
    assert (segment["src"], segment["dst"], segment["injection_rate"]) == ([0, 1, 1], [[0, 1, 3]], 10.0)
    one, other = [0, 1, 1, "NOC0_EAST"], [0, 1, 2, "NOC0_EAST"]
    assert segment["links"] == [[0, 1, 1, "NOC0_IN"], one, other, [0, 1, 3, "NOC0_OUT"]]
    assert second["links"][1:-1] == [other]
    alone, both, last = steps[0], steps[7], steps[-1]
    assert alone["link_demand"] == [[*one, 31.25], [*other, 31.25]]
    assert both["link_demand"] == [[*one, 31.25], [*other, 62.5]]
    assert [step["active_transfers"] for step in (alone, both, last)] == [[0], [0, 1], [1]]
    assert last["noc"] == {"NOC0": load(31.25 / LINKS, 31.25 / LINKS, 31.25), "NOC1": load(0, 0, 0)}
    assert last["avg_link_demand"] == round(31.25 / LINKS / 2, 6)
    assert head["max_link_demand"] == 62.5
    assert head["link_demand"] == pytest.approx(sum(step["avg_link_demand"] for step in steps) / 16, abs=1e-6)


def test_more_than_a_link_carries_is_asked_but_not_used():
    document = drawn((1, (0, 0), (0, 1), 0.0, 4.0, 640))
    assert document["common_info"]["cycles_per_timestep"] == 1  # four steps of one cycle
    assert len(document["timestep_data"]) == 4
    assert len(document["noc_transfers"][0]["route"][0]["links"]) == 11 + 2  # up, round the ring
    assert document["common_info"]["noc"]["NOC1"] == load(11 * 500.0 / LINKS, 11 * 100.0 / LINKS, 500.0)
    assert document["common_info"]["link_util"] == round(11 * 100.0 / LINKS / 2, 6)


def test_nothing_is_shorter_than_a_cycle():
    (transfer,) = drawn((0, (0, 0), (1, 0), 7.2, 7.3, 320))["noc_transfers"]
    assert (transfer["start_cycle"], transfer["end_cycle"]) == (7, 8)
    assert transfer["route"][0]["injection_rate"] == 320.0


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
    packed = trace_json_gz(runs_of(spec, halo, name=HOSTILE), spec, "net")
    assert packed[4:8] == bytes(4)  # no time in the header
    document = json.loads(gzip.decompress(packed))
    assert (document["otherData"]["clock_hz"], document["otherData"]["report"]) == (1_000_000_000, "net")
    names = [event["name"] for event in document["traceEvents"]]
    assert max(map(len, names)) < 140
    assert not any(character in name for name in names for character in "\x00\n\u202e")
