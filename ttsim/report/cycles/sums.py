"""What operations do together, in sums, and the figures of a report that follow from these alone."""

from collections.abc import Sequence
from typing import NamedTuple

from device.spec.device_spec import DeviceSpec
from device.time.stages import nanoseconds
from ttsim.report.cycles.figures import MathUse, Roofline, Traffic


class Sums(NamedTuple):
    """What operations that ran one after the other do, added up; the roofs of each are its own."""

    cycles: int = 0  # Whole ones
    core_cycles: int = 0  # The same, of all cores that take part
    dram_read_bytes: int = 0
    dram_written_bytes: int = 0
    network_bytes: int = 0
    issued_flops: int = 0  # Of the matrix units
    product_cycles: int = 0  # Of all tile products; one takes `phase_cycles` for each fidelity phase
    math_roof: int = 0  # Least cycles of matrix units
    dram_roof: int = 0
    network_roof: int = 0
    roof: int = 0  # The largest of each operation's


def added(parts: Sequence[Sums]) -> Sums:
    """What all of them do."""
    return Sums(*map(sum, zip(*parts, strict=True)))


def traffic(sums: Sums, spec: DeviceSpec) -> Traffic:
    """Bytes moved."""
    seconds = nanoseconds(sums.cycles, spec.clock_hz) / 1e9
    rate = share_of(sums.dram_read_bytes + sums.dram_written_bytes, seconds)
    return Traffic(
        dram_read_bytes=sums.dram_read_bytes,
        dram_written_bytes=sums.dram_written_bytes,
        dram_bytes_per_second=rate,
        dram_share=rate / spec.dram.peak_bytes_per_second,
        network_bytes=sums.network_bytes,
        network_bytes_per_second=share_of(sums.network_bytes, seconds),
    )


def math_use(sums: Sums, spec: DeviceSpec, *, useful_flops: int) -> MathUse:
    """What the matrix units do."""
    return MathUse(
        issued_flops=sums.issued_flops,
        useful_flops=useful_flops,
        useful_share=share_of(useful_flops, sums.issued_flops),
        product_cycles=sums.product_cycles,
        utilization=share_of(sums.product_cycles, sums.core_cycles),
        device_utilization=share_of(sums.product_cycles, spec.grid.cores * sums.cycles),
        flops_per_second=share_of(useful_flops, nanoseconds(sums.cycles, spec.clock_hz) / 1e9),
    )


def roofline(sums: Sums) -> Roofline:
    """What is needed at least."""
    limits = {"math": sums.math_roof, "DRAM": sums.dram_roof, "network": sums.network_roof}
    return Roofline(
        math_cycles=sums.math_roof,
        dram_cycles=sums.dram_roof,
        network_cycles=sums.network_roof,
        cycles=sums.roof,
        bound=max(limits, key=lambda name: limits[name]) if sums.roof else "none",
        share=share_of(sums.roof, sums.cycles),
        issued_flops_per_dram_byte=share_of(sums.issued_flops, sums.dram_read_bytes + sums.dram_written_bytes),
    )


def share_of(part: float, whole: float) -> float:
    """A part of a whole; 0 of nothing."""
    return part / whole if whole else 0.0
