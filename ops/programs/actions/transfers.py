"""What transfers take, from the figures of the network and the constants of `TransferCosts`."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.spec.device_spec import DeviceSpec
from ops.programs.actions.costs import TransferCosts

Floats: TypeAlias = NDArray[np.float64]


def streamed_cycles(issue_cycles: float, transfers: Floats, moved_bytes: Floats, bytes_per_cycle: float) -> Floats:
    """Transfers one behind the other: all are issued, and all bytes pass the wire."""
    cycles: Floats = np.maximum(issue_cycles * transfers, moved_bytes / bytes_per_cycle)
    return cycles


def burst_cycles(
    issue_cycles: float, count: int, transfer_bytes: float, latency_cycles: float, bytes_per_cycle: float
) -> float:
    """Transfers of one size, until the last is answered: its latency, and its bytes."""
    wire = transfer_bytes / bytes_per_cycle
    return (count - 1) * max(issue_cycles, wire) + latency_cycles + wire


def read_page_cycles(spec: DeviceSpec, page_bytes: float) -> float:
    """Between two pages of an interleaved buffer that a core reads: issued, or on the wire."""
    return max(spec.costs_of(TransferCosts).page_issue_cycles, page_bytes / spec.noc.link_bytes_per_cycle)


def multicast_cycles(spec: DeviceSpec, sent_bytes: float, receivers: int) -> float:
    """A block goes to several cores at once, which have said that they have room for it."""
    receiving = spec.costs_of(TransferCosts).multicast_receiver_cycles * receivers
    return receiving + sent_bytes / spec.noc.multicast_bytes_per_cycle
