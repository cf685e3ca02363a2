"""What transfers take, from the figures of the network and the constants of `TransferCosts`."""

import math

from device.spec.device_spec import DeviceSpec
from device.time.network import answer_cycles
from ops.programs.actions.costs import TransferCosts


def burst_cycles(
    issue_cycles: float, count: int, transfer_bytes: float, latency_cycles: float, bytes_per_cycle: float
) -> float:
    """Transfers of one size, until the last is answered: its latency, and its bytes."""
    wire = transfer_bytes / bytes_per_cycle
    return (count - 1) * max(issue_cycles, wire) + latency_cycles + wire


def local_sticks_cycles(spec: DeviceSpec, count: int, stick_bytes: float) -> float:
    """Sticks that a core copies within its own L1, over its network, until the last is there."""
    if not count:
        return 0.0
    issue = spec.costs_of(TransferCosts).stateful_issue_cycles
    return burst_cycles(issue, count, stick_bytes, answer_cycles(spec.noc, 0), spec.noc.link_bytes_per_cycle)


def read_page_cycles(spec: DeviceSpec, page_bytes: float) -> float:
    """Between two pages of an interleaved buffer that a core reads: issued, or on the wire."""
    return max(spec.costs_of(TransferCosts).page_issue_cycles, page_bytes / spec.noc.link_bytes_per_cycle)


def write_page_cycles(spec: DeviceSpec, page_bytes: float) -> float:
    """Between two pages that a core writes: issued, or on the wire."""
    return max(spec.costs_of(TransferCosts).write_issue_cycles, page_bytes / spec.noc.link_bytes_per_cycle)


def multicast_cycles(spec: DeviceSpec, sent_bytes: float, receivers: int) -> float:
    """A block goes to several cores at once, on a path that is reserved; every packet of it is taken in by each."""
    packets = math.ceil(sent_bytes / spec.noc.packet_bytes)
    receiving = spec.costs_of(TransferCosts).multicast_receiver_cycles * receivers
    return packets * receiving + sent_bytes / spec.noc.link_bytes_per_cycle


def multicast_burst_cycles(
    spec: DeviceSpec, count: int, transfer_bytes: int, receivers: int, links: int, *, linked: bool
) -> float:
    """Multicasts of one size, until the last is answered.

    A packet first reserves its path, half of the links that it and its answer pass, unless it keeps the path of the
    packet before: that is what linked multicasts do, up to the last of them.

    Args:
        links: Links that a write to the farthest of them and its answer pass.
        linked: Each but the last keeps its path for the next.
    """
    packets = math.ceil(transfer_bytes / spec.noc.packet_bytes)
    reserved = (packets if linked else count * packets) * answer_cycles(spec.noc, links / 2)
    one = multicast_cycles(spec, transfer_bytes, receivers)
    before = (count - 1) * max(one, spec.costs_of(TransferCosts).write_issue_cycles)
    return reserved + before + one + answer_cycles(spec.noc, links)
