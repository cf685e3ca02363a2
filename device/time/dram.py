"""The memory outside the cores in time: what its banks deliver together, and one page after another."""

from device.spec.parts import DramSpec


def bandwidth(dram: DramSpec) -> float:
    """Bytes a cycle of all banks together: what was measured, as far as there are banks for it."""
    return min(dram.achieved_bytes_per_cycle, dram.banks * dram.bank_bytes_per_cycle)


def shared_cycles(dram: DramSpec, moved_bytes: float, efficiency: float = 1.0) -> float:
    """Cycles in which the banks together read or write so many bytes.

    Args:
        dram: The memory.
        moved_bytes: By all cores.
        efficiency: Part of the bandwidth that the pattern of pages leaves.
    """
    return moved_bytes / (bandwidth(dram) * efficiency)


def page_round_trip_cycles(dram: DramSpec, page_bytes: float) -> float:
    """Cycles of a page that is waited for before the next is asked for."""
    return dram.read_latency_cycles + page_bytes / dram.bank_bytes_per_cycle
