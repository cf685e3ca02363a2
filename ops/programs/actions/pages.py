"""What reading and writing pages takes a core that waits for them, or that works out an address for each stick.

A page that nobody else is in the way of takes the round trip, and its bytes at the rate at which one bank answers one
core. Where other cores read at the same time it also waits behind a part of their pages; who asks for a group of pages
and then waits for all of them meets the others' groups there.
"""

from device.spec.device_spec import DeviceSpec
from device.time.dram import page_cycles, page_round_trip_cycles, shared_cycles
from device.time.network import answer_cycles, torus_of
from ops.programs.actions.costs import StickCosts


def core_round_trip_cycles(spec: DeviceSpec) -> float:
    """Round trip to the L1 of a core, in the mean over all: some lie in the same row, some in the same column."""
    torus, grid = torus_of(spec), spec.grid
    return answer_cycles(spec.noc, torus.cols * (1 - 1 / grid.cols) + torus.rows * (1 - 1 / grid.rows))


def waited_read_cycles(spec: DeviceSpec, page_bytes: float, *, in_dram: bool, readers: int = 0) -> float:
    """A page that is waited for before the next one is asked for.

    Args:
        in_dram: Whether it comes from DRAM; otherwise from another core.
        readers: Cores that do the same at the same time; 0 to leave them out.
    """
    if not in_dram:
        return core_round_trip_cycles(spec) + page_bytes / spec.noc.link_bytes_per_cycle
    costs = spec.costs_of(StickCosts)
    behind = costs.wait_share * shared_cycles(spec, readers * page_bytes)
    return page_round_trip_cycles(spec, page_bytes, costs.page_rate_share) + behind


def write_latency_cycles(spec: DeviceSpec, *, in_dram: bool) -> float:
    """Round trip of a small write."""
    if not in_dram:
        return core_round_trip_cycles(spec)
    return torus_of(spec).round_trip_cycles + spec.costs_of(StickCosts).write_access_ns * spec.clock_hz / 1e9


def waited_write_cycles(spec: DeviceSpec, page_bytes: float, *, in_dram: bool) -> float:
    """A page that is written and waited for."""
    return write_latency_cycles(spec, in_dram=in_dram) + page_bytes / spec.noc.link_bytes_per_cycle


def read_stick_cycles(spec: DeviceSpec, stick_bytes: float, *, readers: int = 0) -> float:
    """A stick of DRAM, of a group that is asked for and then waited for; arguments as of `waited_read_cycles`."""
    costs = spec.costs_of(StickCosts)
    behind = costs.group_wait_share * shared_cycles(spec, readers * stick_bytes)
    return costs.stick_cycles + page_cycles(spec, stick_bytes, costs.page_rate_share) + behind


def write_stick_cycles(spec: DeviceSpec, stick_bytes: float) -> float:
    """A stick that is written, and not waited for."""
    return max(spec.costs_of(StickCosts).stick_write_cycles, stick_bytes / spec.noc.link_bytes_per_cycle)
