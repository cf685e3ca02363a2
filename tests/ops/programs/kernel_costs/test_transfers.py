"""Transfers one behind the other."""

import pytest

from device.spec.device_spec import load_spec
from ops.programs.kernel_costs import (
    burst_cycles,
    multicast_burst_cycles,
    multicast_cycles,
    read_page_cycles,
    write_page_cycles,
)

SPEC = load_spec("wormhole_n150").replace(
    noc_link_share=1.0,
    transfer_costs_multicast_receiver_cycles=1.0,
    transfer_costs_page_issue_cycles=50.0,
    transfer_costs_write_issue_cycles=20.0,
)


def test_pages_are_issued_or_on_the_wire():
    """Links of 32 bytes a cycle: 32 cycles for 1024 bytes, 64 for 2048."""
    assert [read_page_cycles(SPEC, size) for size in (1024, 2048)] == [50, 64]
    assert [write_page_cycles(SPEC, size) for size in (512, 2048)] == [20, 64]


@pytest.mark.parametrize(("transfer_bytes", "cycles"), [(100, 3 * 20 + 300 + 10), (400, 3 * 40 + 300 + 40)])
def test_a_burst_is_waited_for_until_its_last_transfer_is_answered(transfer_bytes, cycles):
    assert burst_cycles(20, 4, transfer_bytes, 300, 10.0) == cycles


@pytest.mark.parametrize(("sent", "cycles"), [(0, 0), (64, 63 + 2), (8192, 63 + 256), (8224, 2 * 63 + 257)])
def test_every_packet_of_a_multicast_is_taken_in_by_every_core(sent, cycles):
    """Packets of 8192 bytes, on links of 32 bytes a cycle, to 63 cores."""
    assert multicast_cycles(SPEC, sent, 63) == cycles


def test_linked_multicasts_reserve_their_path_once():
    """Interfaces of 95 cycles and hops of nine, 22 there and back: 293 cycles until an answer, 194 for a path."""
    assert multicast_burst_cycles(SPEC, 4, 64, 63, 22, linked=True) == 293 + 194 + 4 * 65
    assert multicast_burst_cycles(SPEC, 4, 64, 63, 22, linked=False) == 293 + 4 * 194 + 4 * 65
    # The packets of the last one are not linked.
    assert multicast_burst_cycles(SPEC, 4, 16384, 63, 22, linked=True) == 293 + 2 * 194 + 4 * 2 * (63 + 256)
