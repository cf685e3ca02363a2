"""Figures of a page's pictures: marks of axes, cores of the grid, the roofline chart."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10
from typing import Final, NamedTuple

from device.spec.device_spec import DeviceSpec
from ttsim.report.cycles import Core, CoreTime, OperationTime, cores_in, share_of
from ttsim.report.explain import FIDELITIES
from ttsim.report.formatting import count_of
from ttsim.report.memory import CIRCULAR, L1Map
from ttsim.report.runs import OpRun

MOST_STEPS: Final = 12  # marks on an axis
MOST_TIMES: Final = 6
UNITS: Final = ((1e6, "ms"), (1e3, "us"), (1.0, "ns"))  # nanoseconds of each


class Tick(NamedTuple):
    """A mark on an axis: its text, and the share of the axis where it stands."""

    text: str
    share: float


def steps(operations: int) -> tuple[Tick, ...]:
    """The marks of an axis of operations, all of the same width, in steps of 1, 2, 5, 10, 20 ..."""
    step = _step(operations / MOST_STEPS)
    return tuple(Tick(f"#{at}", at / operations) for at in range(0, operations, step))


def times(nanoseconds: float) -> tuple[Tick, ...]:
    """The marks of a time axis, in steps of 1, 2, 5, 10, 20 ... of a unit."""
    if nanoseconds <= 0:
        return ()
    unit, name = next((unit for unit in UNITS if nanoseconds >= 2 * unit[0]), UNITS[-1])
    marks = range(0, int(nanoseconds / unit) + 1, _step(nanoseconds / unit / MOST_TIMES))
    return tuple(Tick(f"{at} {name}", at * unit / nanoseconds) for at in marks)


def _step(least: float) -> int:
    """The smallest number of 1, 2, 5, 10, 20, 50 ... that is at least `least`."""
    ten = 1
    while 5 * ten < least:
        ten *= 10
    return next(factor * ten for factor in (1, 2, 5) if factor * ten >= least)


class CoreMap(NamedTuple):
    """A figure of every core, row by row, and the strength of its color."""

    name: str
    unit: str  # "cycles" or "B"
    whole: str  # The whole of the shares
    figures: list[int]
    shares: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The worker cores, row by row, idle cores included."""

    columns: int
    rows: int
    cores: tuple[CoreTime, ...]
    usable_bytes: int = 0  # Usable L1 of a core; 0 without a device

    @property
    def maps(self) -> Iterator[CoreMap]:
        """The figures that are not 0 on all cores; bytes are shares of the core with most bytes."""
        cores = self.cores
        for name, figures, shares in (
            ("at work", [core.cycles for core in cores], [core.share for core in cores]),
            ("busiest stage", [core.busy_cycles for core in cores], [core.busy_share for core in cores]),
            ("waiting", [core.stall_cycles for core in cores], [core.stall_share for core in cores]),
        ):
            if any(figures):
                yield CoreMap(name, "cycles", "of all cycles", figures, shares)
        for name, whole, figures, most in (
            ("circular buffers", "of L1", [core.circular_bytes for core in cores], self.usable_bytes),
            ("from and to DRAM", "of the most", [core.dram_bytes for core in cores], None),
            ("over the networks", "of the most", [core.network_bytes for core in cores], None),
        ):
            if any(figures):
                of = max(figures) if most is None else most
                yield CoreMap(name, "B", whole, figures, [share_of(figure, of) for figure in figures])


def grid_of(cores: Sequence[CoreTime], spec: DeviceSpec | None = None, l1: L1Map | None = None) -> Grid:
    """Every worker core of a device, from the busy cores and the circular buffers in the map of L1.

    Without a device, the grid ends with the last busy core.
    """
    known = {(core.column, core.row): core for core in cores}
    if spec is None:
        columns, rows = (max((place[axis] for place in known), default=-1) + 1 for axis in (0, 1))
    else:
        columns, rows = spec.grid.cols, spec.grid.rows
    circular_bytes = {} if l1 is None else _circular_bytes(l1)
    return Grid(
        columns=columns,
        rows=rows,
        cores=tuple(
            replace(
                known.get((column, row)) or CoreTime(column=column, row=row, of_cycles=0),
                circular_bytes=circular_bytes.get((column, row), 0),
            )
            for row in range(rows)
            for column in range(columns)
        ),
        usable_bytes=0 if spec is None else spec.l1.usable_bytes,
    )


def _circular_bytes(l1: L1Map) -> dict[Core, int]:
    """The most bytes that the circular buffers of one operation take, by core."""
    of_operations: defaultdict[tuple[int, Core], int] = defaultdict(int)
    for block in l1.blocks:
        for core in cores_in(block.held.ranges) if block.held.kind == CIRCULAR else ():
            of_operations[block.first, core] += block.held.size_bytes
    most: defaultdict[Core, int] = defaultdict(int)
    for (_, core), size_bytes in of_operations.items():
        most[core] = max(most[core], size_bytes)
    return most


class _Axis(NamedTuple):
    """A logarithmic axis between two powers of ten."""

    low: int
    high: int

    def share(self, value: float) -> float:
        return (log10(value) - self.low) / (self.high - self.low)

    def ticks(self, unit: str) -> tuple[Tick, ...]:
        values = (10.0**power for power in range(self.low, self.high + 1))
        return tuple(Tick(f"{count_of(value)}{unit}", self.share(value)) for value in values)


def _axis(values: Sequence[float]) -> _Axis:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return _Axis(low, max(high, low + 1))


Point = tuple[float, float]  # shares from the left and from the top


class RoofChart(NamedTuple):
    """The roofline chart, logarithmic: FLOP per byte of DRAM to the right, FLOP per second upward."""

    points: list[tuple[OpRun, Point]]  # Operations that multiply, and move bytes from or to DRAM
    lines: list[tuple[str, Point, Point]]  # Roofs with their names, DRAM first, and both of their ends
    across: tuple[Tick, ...]  # FLOP of each byte
    upward: tuple[Tick, ...]  # FLOP of each second; shares are from the bottom


def roof_chart(operations: Sequence[OpRun]) -> RoofChart | None:
    """The chart of some operations; None if no operation both multiplies and moves bytes from or to DRAM."""
    placed = [(op, op.time) for op in operations if op.time and op.time.roofline.issued_flops_per_dram_byte]
    if not placed:
        return None
    peaks, slope = _peaks([time for _, time in placed]), _dram_rate([time for _, time in placed])
    intensities = [time.roofline.issued_flops_per_dram_byte for _, time in placed]
    across = _axis([*intensities, *(peak / slope for peak in peaks.values() if slope)])
    upward = _axis([*(time.issued_flops_per_second for _, time in placed), *peaks.values()])

    def place(intensity: float, rate: float) -> Point:
        return across.share(intensity), 1 - upward.share(rate)

    lines: list[tuple[str, Point, Point]] = []
    if slope and peaks:
        first, last = max(10.0**across.low, 10.0**upward.low / slope), max(peaks.values()) / slope
        endpoints = (place(first, first * slope), place(last, last * slope))
        lines.append((f"DRAM {count_of(slope)}B/s", *endpoints))
    for phases, peak in peaks.items():
        begins, height = place(peak / slope if slope else 10.0**across.low, peak)
        name = f"{FIDELITIES.get(phases, 'matrix units')} {count_of(peak)}FLOP/s"
        lines.append((name, (begins, height), (1.0, height)))
    return RoofChart(
        points=[
            (op, place(time.roofline.issued_flops_per_dram_byte, time.issued_flops_per_second)) for op, time in placed
        ],
        lines=lines,
        across=across.ticks("FLOP/B"),
        upward=upward.ticks("FLOP/s"),
    )


def _peaks(timed: Sequence[OperationTime]) -> dict[int, float]:
    """The peak FLOP/s of all matrix units by fidelity phases, from the operation with most matrix cycles."""
    peaks = {}
    for phases in sorted({time.fidelity_phases for time in timed}):
        most = max(
            (time for time in timed if time.fidelity_phases == phases), key=lambda time: time.roofline.math_cycles
        )
        if most.roofline.math_cycles:
            peaks[phases] = most.math.issued_flops / _nanoseconds(most, most.roofline.math_cycles) * 1e9
    return peaks


def _dram_rate(timed: Sequence[OperationTime]) -> float:
    """The peak DRAM bytes per second; 0 if no operation keeps DRAM busy for a cycle."""
    most = max(timed, key=lambda time: time.roofline.dram_cycles)
    if not most.roofline.dram_cycles:
        return 0.0
    return most.sums.dram_bytes / _nanoseconds(most, most.roofline.dram_cycles) * 1e9


def _nanoseconds(time: OperationTime, cycles: int) -> float:
    return time.nanoseconds * cycles / time.cycles
