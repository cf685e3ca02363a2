"""The memory outside the cores in time: what its banks deliver together, and one page after another.

DRAM has a clock of its own. Its figures are by the second; here they become cycles of the worker cores.
"""

from device.spec.device_spec import DeviceSpec
from device.time.network import torus_of


def bandwidth(spec: DeviceSpec) -> float:
    """Bytes a cycle of all banks together, with well placed readers."""
    return spec.dram.achieved_share * spec.dram.peak_bytes_per_second / spec.clock_hz


def shared_cycles(spec: DeviceSpec, moved_bytes: float, efficiency: float = 1.0) -> float:
    """Cycles in which the banks together read or write so many bytes.

    Args:
        moved_bytes: By all cores.
        efficiency: Part of the bandwidth that the pattern of pages leaves.
    """
    return moved_bytes / (bandwidth(spec) * efficiency)


def read_latency_cycles(spec: DeviceSpec) -> float:
    """Round trip of a small read: over both axes of the network, and into a bank."""
    return torus_of(spec).round_trip_cycles + spec.dram.access_ns * spec.clock_hz / 1e9


def page_cycles(spec: DeviceSpec, page_bytes: float, share: float = 1.0) -> float:
    """Cycles in which the bytes of one page come from one bank, over one link.

    Args:
        share: Part of the bank's rate that one page gets.
    """
    return page_bytes / min(share * spec.dram.bank_bytes_per_second / spec.clock_hz, spec.noc.link_bytes_per_cycle)


def page_round_trip_cycles(spec: DeviceSpec, page_bytes: float, share: float = 1.0) -> float:
    """Cycles of a page that is waited for before the next is asked for; arguments as of `page_cycles`."""
    return read_latency_cycles(spec) + page_cycles(spec, page_bytes, share)
