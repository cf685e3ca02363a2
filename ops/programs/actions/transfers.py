"""What transfers take, from the figures of the network and the constants of `TransferCosts`."""

from device.spec.device_spec import DeviceSpec
from ops.programs.actions.costs import TransferCosts


def read_page_cycles(spec: DeviceSpec, page_bytes: float) -> float:
    """Between two pages of an interleaved buffer that a core reads: issued, or on the wire."""
    return max(spec.costs_of(TransferCosts).page_issue_cycles, page_bytes / spec.noc.link_bytes_per_cycle)


def multicast_cycles(spec: DeviceSpec, sent_bytes: float, receivers: int) -> float:
    """A block goes to several cores at once, which have said that they have room for it."""
    receiving = spec.costs_of(TransferCosts).multicast_receiver_cycles * receivers
    return receiving + sent_bytes / spec.noc.multicast_bytes_per_cycle
