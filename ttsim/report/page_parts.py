"""What a page shows of reports: operations along the time, cores of the grid, rooflines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, log10
from typing import Final

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ttsim.report.accuracy import Accuracy
from ttsim.report.advice import Advice
from ttsim.report.cycles import CallTime, CoreTime, OperationTime, Totals
from ttsim.report.explain import FIDELITIES
from ttsim.report.formatting import count_of
from ttsim.report.l1_map import CIRCULAR, L1Map
from ttsim.report.memory import OperationUse, Partition
from ttsim.report.network import Sum
from ttsim.report.runs import OpRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """How near an operation comes to what the machine could do at best."""

    op: OpRun
    math_share: float  # Least cycles of the matrix units, of its cycles
    dram_share: float
    network_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """How far an operation is above the least that the machine needs for it: where there is most to gain."""

    op: OpRun
    cycles: int  # Above its roof
    share: float  # The same, of all cycles
    stages: tuple[str, ...]  # What binds it, and what does so just as well
    does: str  # What the stage that binds it does


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A mark on an axis."""

    text: str  # What it says
    share: float  # Where it stands


@dataclass(frozen=True, slots=True, kw_only=True)
class RoofPoint:
    """An operation in the chart."""

    op: OpRun
    flops_per_byte: float  # Issued, of each byte from or to DRAM
    flops_per_second: float
    left_share: float  # Where it stands
    top_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoofLine:
    """A roof in the chart."""

    name: str  # What it is, with its figure
    start: tuple[float, float]  # Share from the left and from the top
    end: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoofChart:
    """The chart."""

    points: tuple[RoofPoint, ...]  # Operations that multiply, and move bytes from or to DRAM
    lines: tuple[RoofLine, ...]  # Roofs, that of DRAM first
    across: tuple[Tick, ...]  # Issued FLOP of each byte
    upward: tuple[Tick, ...]  # Issued FLOP of each second; shares are from the bottom


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A call as Python."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A core in a picture of the grid."""

    core: CoreTime  # Where it is and what it does; figures of 0 where it does nothing
    circular_bytes: int  # Circular buffers of the operation that has most of them there
    circular_share: float  # The same, of what a program can use


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreMap:
    """A figure of every core, as a picture shows it."""

    name: str
    unit: str  # Its unit: "cycles" or "B"
    whole: str  # What shares are of
    figures: tuple[int, ...]  # Row by row, as the cells of the grid
    shares: tuple[float, ...]  # How strong the color is, likewise
    least: int  # The smallest figure
    most: int  # The largest one


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The worker cores."""

    columns: int  # How many
    rows: int  # How many
    cells: tuple[Cell, ...]  # Row by row, those that do nothing among them
    maps: tuple[CoreMap, ...] = ()  # Their figures; those that no core has are left out


NO_L1: Final = L1Map(base_bytes=0, end_bytes=0, base_share=0.0, operations=0, blocks=())
NO_GRID: Final = Grid(columns=0, rows=0, cells=())


@dataclass(frozen=True, kw_only=True)
class Part:
    """A call, or a network."""

    name: str  # What the page calls it
    asked: tuple[tuple[str, str], ...]  # What was to run, in lines of name and text
    verdict: tuple[str, ...]  # Lines that say what came out
    operations: tuple[OpRun, ...]  # In order
    error: str | None = None  # Why it failed; None if it did not
    detailed: bool = True  # Whether it tells more of each than the sums of its cycles
    total: Totals | None = None  # Of all that are timed; None if nothing is
    calls: tuple[CallTime, ...] = ()  # The calls in the report on cycles, for what is said in words
    memory: tuple[OperationUse, ...] = ()  # The device operations with their buffers and headroom; none for a network
    l1: L1Map = NO_L1  # L1 of a core over the operations
    grid: Grid = NO_GRID  # The worker cores
    kinds: tuple[Sum, ...] = ()  # Sums over operations of one name; none for one call
    layers: tuple[Sum, ...] = ()  # Sums over lines of the script, likewise
    partitions: tuple[Partition, ...] = ()  # How convolutions were cut up
    accuracy: Accuracy | None = None  # Against float64; None where it is not known
    unknown_accuracy: str = ""  # Why it is not; empty if it is, or nothing came out
    advice: Advice | None = None  # What to change; None where nobody asked
    between: tuple[str, ...] = ()  # What passes between operations
    sources: tuple[Source, ...] = ()  # Calls as Python, where they are known

    @cached_property
    def told(self) -> tuple[OpRun, ...]:
        """The operations of which it tells more than the sums of their cycles."""
        return self.operations if self.detailed else ()

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """Stages in which any operation spends time, in the order of the pipeline."""
        return stages_of(self.told)

    @cached_property
    def roofs(self) -> tuple[Roof, ...]:
        """The longest operations, the longest first."""
        return roofs(self.told)

    @cached_property
    def excesses(self) -> tuple[Excess, ...]:
        """The operations that are farthest above their roofs, the farthest first."""
        return excesses(self.told)

    @cached_property
    def chart(self) -> RoofChart | None:
        """The roofline chart; None if no operation has a place in it."""
        return roof_chart(self.told)

    @property
    def steps(self) -> tuple[Tick, ...]:
        """The axis of operations."""
        return steps(len(self.operations))

    @property
    def times(self) -> tuple[Tick, ...]:
        """The axis of time."""
        return times(self.operations[0].runs.nanoseconds if self.operations else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page."""

    title: str
    device: str
    clock_hz: int
    parts: tuple[Part, ...]  # What ran, each with all its sections
    counted: str  # What the cycles count, and what not


SHOWN_ROOFS: Final = 16  # operations
SHOWN_EXCESSES: Final = 8
MOST_STEPS: Final = 12  # marks on an axis
MOST_TIMES: Final = 6
UNITS: Final = ((1e6, "ms"), (1e3, "us"), (1.0, "ns"))  # nanoseconds of each


def stages_of(found: Sequence[OpRun]) -> tuple[str, ...]:
    """Stages in which any operation spends time."""
    spent = (stage for one in found if one.time for stage in one.time.stages)
    used = {stage.stage for stage in spent if stage.busy_cycles or stage.critical_cycles}
    return tuple(one.value for one in Stage if one.value in used)


def roofs(found: Sequence[OpRun]) -> tuple[Roof, ...]:
    """The longest operations beside what resources need for them at least."""
    timed = [(one, one.time) for one in found if one.time is not None and one.time.cycles]
    longest = sorted(timed, key=lambda one: -one[1].cycles)[:SHOWN_ROOFS]
    return tuple(
        Roof(
            op=one,
            math_share=time.roofline.math_cycles / time.cycles,
            dram_share=time.roofline.dram_cycles / time.cycles,
            network_share=time.roofline.network_cycles / time.cycles,
        )
        for one, time in longest
    )


def excesses(found: Sequence[OpRun]) -> tuple[Excess, ...]:
    """The operations that are farthest above the least that the machine needs for them."""
    timed = [(one, one.time) for one in found if one.time is not None]
    whole = sum(time.cycles for _, time in timed)
    above = [(time.cycles - time.roofline.cycles, one, time) for one, time in timed]
    farthest = sorted((one for one in above if one[0] > 0), key=lambda one: -one[0])[:SHOWN_EXCESSES]
    return tuple(
        Excess(
            op=one,
            cycles=cycles,
            share=cycles / whole,
            stages=(time.bound_by, *time.tied_with),
            does=next((stage.does for stage in time.stages if stage.stage == time.bound_by), ""),
        )
        for cycles, one, time in farthest
    )


def steps(operations: int) -> tuple[Tick, ...]:
    """The axis of so many operations, which are as wide as each other: numbers in steps of 1, 2 or 5, tens ..."""
    step = _step(operations / MOST_STEPS)
    return tuple(Tick(text=f"#{at}", share=at / operations) for at in range(0, operations, step))


def times(nanoseconds: float) -> tuple[Tick, ...]:
    """The axis of so much time: microseconds in steps likewise."""
    if nanoseconds <= 0:
        return ()
    unit, name = next((one for one in UNITS if nanoseconds >= 2 * one[0]), UNITS[-1])
    step = _step(nanoseconds / unit / MOST_TIMES)
    marks = range(0, int(nanoseconds / unit) + 1, step)
    return tuple(Tick(text=f"{at} {name}", share=at * unit / nanoseconds) for at in marks)


def _step(least: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, 50 ... that is not smaller."""
    ten = 1
    while 5 * ten < least:
        ten *= 10
    return next(factor * ten for factor in (1, 2, 5) if factor * ten >= least)


def grid_of(spec: DeviceSpec, cores: Iterable[CoreTime], l1: L1Map) -> Grid:
    """Every worker core: its time, and the circular buffers that it holds.

    Args:
        cores: Those that did something.
        l1: Where circular buffers were.
    """
    return _grid(spec.grid.cols, spec.grid.rows, cores, _circular_bytes(l1), spec.l1.usable_bytes)


def grid_of_cores(cores: Sequence[CoreTime]) -> Grid:
    """The cores that did something, and those between them and the first one."""
    columns = max((one.column for one in cores), default=-1) + 1
    return _grid(columns, max((one.row for one in cores), default=-1) + 1, cores, {}, 0)


def _grid(
    columns: int, rows: int, cores: Iterable[CoreTime], held: Mapping[tuple[int, int], int], usable_bytes: int
) -> Grid:
    known = {(one.column, one.row): one for one in cores}
    places = [(column, row) for row in range(rows) for column in range(columns)]
    cells = tuple(
        Cell(
            core=known.get(place) or _idle(*place),
            circular_bytes=held.get(place, 0),
            circular_share=held.get(place, 0) / usable_bytes if usable_bytes else 0.0,
        )
        for place in places
    )
    return Grid(columns=columns, rows=rows, cells=cells, maps=tuple(_maps(cells)))


def _maps(cells: Sequence[Cell]) -> Iterator[CoreMap]:
    """Their pictures; bytes that are moved have no whole but the core that moves most of them."""
    cores = [one.core for one in cells]
    measured: tuple[tuple[str, str, str, list[int], list[float]], ...] = (
        ("at work", "cycles", "of all cycles", [one.cycles for one in cores], [one.share for one in cores]),
        (
            "busiest stage", "cycles", "of all cycles",
            [one.busy_cycles for one in cores], [one.busy_share for one in cores]),
        ("waiting", "cycles", "of all cycles", [one.stall_cycles for one in cores], [one.stall_share for one in cores]),
        (
            "circular buffers", "B", "of L1",
            [one.circular_bytes for one in cells], [one.circular_share for one in cells]),
        ("from and to DRAM", "B", "of the most", *_of_the_most([one.dram_bytes for one in cores])),
        ("over the networks", "B", "of the most", *_of_the_most([one.network_bytes for one in cores])),
    )  # fmt: skip
    for name, unit, whole, figures, shares in measured:
        if any(figures):
            yield CoreMap(
                name=name,
                unit=unit,
                whole=whole,
                figures=tuple(figures),
                shares=tuple(shares),
                least=min(figures),
                most=max(figures),
            )


def _of_the_most(figures: list[int]) -> tuple[list[int], list[float]]:
    most = max(figures, default=0)
    return figures, [one / most if most else 0.0 for one in figures]


def _idle(column: int, row: int) -> CoreTime:
    """A core that does nothing."""
    return CoreTime(
        column=column, row=row, cycles=0, share=0.0, busy_cycles=0, busy_share=0.0, stall_cycles=0, stall_share=0.0
    )


def _circular_bytes(l1: L1Map) -> dict[tuple[int, int], int]:
    """Of each core, circular buffers of the operation that has most of them there."""
    most: dict[tuple[int, int], int] = {}
    in_operation: dict[int, dict[tuple[int, int], int]] = {}
    for block in l1.blocks:
        if block.held.kind != CIRCULAR:
            continue
        there = in_operation.setdefault(block.first, {})
        for left, top, right, bottom in block.held.ranges:
            for row in range(top, bottom + 1):
                for column in range(left, right + 1):
                    at = (column, row)
                    there[at] = there.get(at, 0) + block.held.size_bytes
    for cores in in_operation.values():
        for at, held in cores.items():
            most[at] = max(most.get(at, 0), held)
    return most


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


def roof_chart(operations: Sequence[OpRun]) -> RoofChart | None:
    """The chart of some operations; None if none of them multiplies and moves bytes from or to DRAM."""
    placed = [
        (one, one.time) for one in operations if one.time is not None and one.time.roofline.issued_flops_per_dram_byte
    ]
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
            op=op,
            flops_per_byte=intensity,
            flops_per_second=rate,
            left_share=across.share(intensity),
            top_share=1 - upward.share(rate),
        )
        for (op, _), intensity, rate in zip(placed, intensities, rates, strict=True)
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
