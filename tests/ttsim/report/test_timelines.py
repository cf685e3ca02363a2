"""Timelines of the networks, worked by hand on the torus of a Wormhole card: 10 columns, 12 rows, 32 bytes a cycle."""

import pytest

from device.spec.device_spec import load_spec
from device.time.network import Link
from ops.op_model import Sent
from ttsim.report.timelines import NetworkLoad, timeline

SPEC = load_spec("wormhole_n150")
IDLE = NetworkLoad(demand=0.0, used=0.0, most=0.0)
LINKS = 2 * 10 * 12  # of a network


def sent(network, source, destination, start, end, size_bytes=320):
    return Sent(
        network=network, source=source, destination=destination, size_bytes=size_bytes, start_cycle=start, end_cycle=end
    )


def test_transfers_meet_on_links():
    """Both pass the link from column 2 to 3; each asks for 10 of 32 bytes a cycle as long as it lasts."""
    result = timeline([sent(0, (0, 0), (2, 0), 0.0, 32.0), sent(0, (1, 0), (2, 0), 16.0, 48.0)], SPEC)
    assert (result.columns, result.rows, result.step_cycles, len(result.steps)) == (10, 12, 3, 16)
    first, second = result.transfers
    assert (first.source, first.destination, first.bytes_per_cycle) == ((1, 1), (3, 1), 10.0)
    one, other = Link(1, 1, along_row=True), Link(2, 1, along_row=True)
    assert (first.links, second.links) == ((one, other), (other,))
    alone, both, last = result.steps[0], result.steps[7], result.steps[-1]
    assert alone.demand == ((0, one, 31.25), (0, other, 31.25))
    assert both.demand == ((0, one, 31.25), (0, other, 62.5))
    assert (alone.transfers, both.transfers, last.transfers) == ((0,), (0, 1), (1,))
    assert last.load == (
        NetworkLoad(demand=31.25 / LINKS, used=31.25 / LINKS, most=31.25),
        IDLE,
    )
    assert result.whole.most == 62.5
    assert result.whole.demand == pytest.approx(sum(step.whole.demand for step in result.steps) / 16)


def test_more_than_a_link_carries_is_asked_but_not_used():
    result = timeline([sent(1, (0, 0), (0, 1), 0.0, 4.0, size_bytes=640)], SPEC)
    assert result.step_cycles == 1  # four steps of one cycle
    assert len(result.steps) == 4
    (transfer,) = result.transfers
    assert len(transfer.links) == 11  # up, round the ring
    assert result.load[1].most == 500.0
    assert result.load[1].used == 11 * 100.0 / LINKS
    assert result.whole.used == result.load[1].used / 2


def test_nothing_is_shorter_than_a_cycle():
    (one,) = timeline([sent(0, (0, 0), (1, 0), 7.2, 7.3)], SPEC).transfers
    assert (one.start_cycle, one.end_cycle, one.bytes_per_cycle) == (7, 8, 320.0)
