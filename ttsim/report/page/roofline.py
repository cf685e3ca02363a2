"""The roofline chart: work by bytes of DRAM against work by time, both in powers of ten, under what the machine can do.

The roofs are those of the reports: the operation with most products of each fidelity says what matrix units reach with
it, the one with most bytes what DRAM delivers at best.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from ttsim.report.cycles.explain import FIDELITIES, count_of
from ttsim.report.cycles.figures import OperationTime
from ttsim.report.page.figures import DeviceOpRow, RoofChart, RoofLine, RoofPoint, Tick


@dataclass(frozen=True, slots=True)
class _Axis:
    """Powers of ten from one to another."""

    low: int
    high: int

    def share(self, value: float) -> float:
        """Where a value stands."""
        return (log10(value) - self.low) / (self.high - self.low)

    def ticks(self, unit: str) -> tuple[Tick, ...]:
        """A mark for each power."""
        powers = range(self.low, self.high + 1)
        return tuple(Tick(text=f"{count_of(10.0**at)}{unit}", share=self.share(10.0**at)) for at in powers)


def roof_chart(deeds: Sequence[DeviceOpRow]) -> RoofChart | None:
    """The chart of some operations; None if none of them multiplies and moves bytes from or to DRAM."""
    placed = [(one, one.time) for one in deeds if one.time is not None and one.time.roofline.issued_flops_per_dram_byte]
    if not placed:
        return None
    rates = [time.math.issued_flops / time.nanoseconds * 1e9 for _, time in placed]
    intensities = [time.roofline.issued_flops_per_dram_byte for _, time in placed]
    peaks = _peaks(time for _, time in placed)
    slope = _dram_rate(time for _, time in placed)
    across = _axis([*intensities, *(peak / slope for peak in peaks.values() if slope)])
    upward = _axis([*rates, *peaks.values()])
    points = (
        RoofPoint(
            deed=deed,
            flops_per_byte=intensity,
            flops_per_second=rate,
            left_share=across.share(intensity),
            top_share=1 - upward.share(rate),
        )
        for (deed, _), intensity, rate in zip(placed, intensities, rates, strict=True)
    )
    return RoofChart(
        points=tuple(points),
        lines=tuple(_lines(peaks, slope, across, upward)),
        across=across.ticks("FLOP/B"),
        upward=upward.ticks("FLOP/s"),
    )


def _axis(values: Sequence[float]) -> _Axis:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return _Axis(low, max(high, low + 1))


def _peaks(timed: Iterable[OperationTime]) -> dict[int, float]:
    """What all matrix units together reach, in FLOP a second, by fidelity phases."""
    most: dict[int, OperationTime] = {}
    for one in timed:
        before = most.get(one.fidelity_phases)
        if one.roofline.math_cycles > (0 if before is None else before.roofline.math_cycles):
            most[one.fidelity_phases] = one
    return {
        phases: one.math.issued_flops / (one.nanoseconds * one.roofline.math_cycles / one.cycles) * 1e9
        for phases, one in sorted(most.items())
    }


def _dram_rate(timed: Iterable[OperationTime]) -> float:
    """What DRAM delivers or takes at best, in bytes a second; 0 if no operation has it busy for a cycle."""
    one = max(timed, key=lambda time: time.roofline.dram_cycles)
    if not one.roofline.dram_cycles:
        return 0.0
    moved = one.traffic.dram_read_bytes + one.traffic.dram_written_bytes
    return moved / (one.nanoseconds * one.roofline.dram_cycles / one.cycles) * 1e9


def _lines(peaks: dict[int, float], slope: float, across: _Axis, upward: _Axis) -> Iterable[RoofLine]:
    if slope and peaks:
        first = max(10.0**across.low, 10.0**upward.low / slope)
        last = max(peaks.values()) / slope
        yield RoofLine(
            name=f"DRAM {count_of(slope)}B/s",
            start=(across.share(first), 1 - upward.share(first * slope)),
            end=(across.share(last), 1 - upward.share(last * slope)),
        )
    for phases, peak in peaks.items():
        begins = across.share(peak / slope) if slope else 0.0
        height = 1 - upward.share(peak)
        name = f"{FIDELITIES.get(phases, 'matrix units')} {count_of(peak)}FLOP/s"
        yield RoofLine(name=name, start=(begins, height), end=(1.0, height))
