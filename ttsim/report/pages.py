"""Pages of reports on calls, on a network, and on layers: parts, and the figures of their pictures."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, groupby
from math import ceil, floor, log10
from typing import Final, NamedTuple

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ttsim.report.accuracy import Accuracy
from ttsim.report.advice import Advice
from ttsim.report.cycle_report import INCLUDES, LEAVES_OUT, CycleReport, launch_lines
from ttsim.report.cycles import CallTime, Core, CoreTime, OperationTime, Totals, cores_in, share_of
from ttsim.report.explain import FIDELITIES, explain_inclusion
from ttsim.report.formatting import by, count_of, counted, cycles, percent, time
from ttsim.report.memory import CIRCULAR, L1Map, LayerResult, OperationUse, Partition, Summary, l1_map
from ttsim.report.network import NetworkReport, OpRun, Runs, Sum
from ttsim.report.rows import Derived

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
    return int(next(step * 10**power for power in count() for step in (1, 2, 5) if step * 10**power >= least))


MAPS: Final = {  # figures of a core that are drawn
    "at work": "cycles",
    "busiest stage": "busy_cycles",
    "waiting": "stall_cycles",
    "circular buffers": "circular_bytes",
    "from and to DRAM": "dram_bytes",
    "over the networks": "network_bytes",
}


class CoreMap(NamedTuple):
    """A figure of every core, row by row, and the strength of its color."""

    name: str
    unit: str  # "cycles" or "B"
    whole: str  # The whole of the shares
    figures: list[int]
    shares: list[float]


@dataclass(frozen=True, slots=True)
class Grid:
    """The worker cores, row by row, idle cores included."""

    columns: int
    rows: int
    cores: tuple[CoreTime, ...]
    usable_bytes: int = 0  # Usable L1 of a core; 0 without a device

    @property
    def maps(self) -> Iterator[CoreMap]:
        """The figures that are not 0 on all cores; bytes are shares of the core with most bytes."""
        for name, figure in MAPS.items():
            figures = [getattr(core, figure) for core in self.cores]
            if any(figures) and "cycles" in figure:
                shares = [getattr(core, figure.replace("cycles", "share")) for core in self.cores]
                yield CoreMap(name, "cycles", "of all cycles", figures, shares)
            elif any(figures):
                l1 = figure == "circular_bytes"
                most = self.usable_bytes if l1 else max(figures)
                shares = [share_of(figure, most) for figure in figures]
                yield CoreMap(name, "B", "of L1" if l1 else "of the most", figures, shares)


def grid_of(cores: Sequence[CoreTime], spec: DeviceSpec | None = None, l1: L1Map | None = None) -> Grid:
    """Every worker core of a device, from the busy cores and the circular buffers in the map of L1.

    Without a device, the grid ends with the last busy core. A core has the circular buffers of its fullest operation.
    """
    known = {(core.column, core.row): core for core in cores}
    columns, rows = (max((place[axis] for place in known), default=-1) + 1 for axis in (0, 1))
    if spec is not None:
        columns, rows = spec.grid.cols, spec.grid.rows
    circular: defaultdict[Core, Counter[int]] = defaultdict(Counter)  # Bytes by operation
    for block in () if l1 is None else l1.blocks:
        for core in cores_in(block.held.ranges) if block.held.kind == CIRCULAR else ():
            circular[core][block.first] += block.held.size_bytes
    filled = (
        replace(
            known.get((column, row)) or CoreTime(column=column, row=row, of_cycles=0),
            circular_bytes=max(circular[column, row].values(), default=0),
        )
        for row in range(rows)
        for column in range(columns)
    )
    return Grid(columns, rows, tuple(filled), 0 if spec is None else spec.l1.usable_bytes)


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
    timed = [time for _, time in placed]
    peaks, slope = _peaks(timed), _dram_rate(timed)
    work = [(op.roofline.issued_flops_per_dram_byte, op.issued_flops_per_second) for op in timed]
    across = _axis([*(intensity for intensity, _ in work), *(peak / slope for peak in peaks.values() if slope)])
    upward = _axis([*(rate for _, rate in work), *peaks.values()])

    def place(intensity: float, rate: float) -> Point:
        return across.share(intensity), 1 - upward.share(rate)

    lines: list[tuple[str, Point, Point]] = []
    if slope and peaks:
        first, last = max(10.0**across.low, 10.0**upward.low / slope), max(peaks.values()) / slope
        lines.append((f"DRAM {count_of(slope)}B/s", place(first, first * slope), place(last, last * slope)))
    for phases, peak in peaks.items():
        begins, height = place(peak / slope if slope else 10.0**across.low, peak)
        name = f"{FIDELITIES.get(phases, 'matrix units')} {count_of(peak)}FLOP/s"
        lines.append((name, (begins, height), (1.0, height)))
    points = [(op, place(*rates)) for (op, _), rates in zip(placed, work, strict=True)]
    return RoofChart(points, lines, across.ticks("FLOP/B"), upward.ticks("FLOP/s"))


def _peaks(timed: Sequence[OperationTime]) -> dict[int, float]:
    """The peak FLOP/s of all matrix units by fidelity phases, from the first operation with most matrix cycles."""
    ops_of_phases = groupby(sorted(timed, key=lambda op: op.fidelity_phases), lambda op: op.fidelity_phases)
    longest = [(phases, max(ops, key=lambda op: op.roofline.math_cycles)) for phases, ops in ops_of_phases]
    return {
        phases: op.math.issued_flops / _nanoseconds(op, op.roofline.math_cycles) * 1e9
        for phases, op in longest
        if op.roofline.math_cycles
    }


def _dram_rate(timed: Sequence[OperationTime]) -> float:
    """The peak DRAM bytes per second; 0 if no operation keeps DRAM busy for a cycle."""
    most = max(timed, key=lambda time: time.roofline.dram_cycles)
    if not most.roofline.dram_cycles:
        return 0.0
    return most.sums.dram_bytes / _nanoseconds(most, most.roofline.dram_cycles) * 1e9


def _nanoseconds(time: OperationTime, cycles: int) -> float:
    return time.nanoseconds * cycles / time.cycles


NO_REFERENCE: Final = "Not known: what a network should give, only its script knows."
NO_VALUES: Final = 'Not known: the layer ran without values; values="exact" or "fast" has them.'
SHOWN_ROOFS: Final = 16  # operations
SHOWN_EXCESSES: Final = 8


class Source(NamedTuple):
    """A call as Python, and its name."""

    name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """A call, a network, or a layer on a page; what its reports do not know is empty or None."""

    name: str  # Its title
    asked: Mapping[str, str]  # The request: texts by name
    verdict: Sequence[str] = ()  # Results as lines, the most important first
    operations: Sequence[OpRun]  # In order
    report: CycleReport | None = None  # The cycles of its calls
    network: NetworkReport | None = None
    result: LayerResult | None = None  # Of a layer
    spec: DeviceSpec | None = None
    sources: Sequence[Source] = ()  # Calls as Python, if known

    summary = Derived[Summary | None](lambda part: part.result.summary if part.result else None)
    error = Derived[str | None](lambda part: part.result.error if part.result else None)  # Why it failed
    # Whether operations have more figures than the sums of their cycles
    detailed = Derived[bool](lambda part: part.network is None or part.report is not None)
    # Sum over the timed operations; None if there are none
    total = Derived[Totals | None](lambda part: part.report.total if part.report and part.report.operations else None)
    calls = Derived[Sequence[CallTime]](lambda part: part.report.calls if part.report else ())  # To be explained
    advice = Derived[Advice | None](lambda part: part.report.advice if part.report else None)
    between = Derived[Sequence[str]](  # Time between operations
        lambda part: launch_lines((part.report or part.network).launches) if part.report or part.network else ()
    )
    memory = Derived[Sequence[OperationUse]](lambda part: _uses(part.result) if part.result else ())
    l1 = Derived[L1Map | None](  # L1 of a core over the operations
        lambda part: (
            part.network.l1
            if part.network
            else l1_map([use.held for use in part.memory], part.spec)
            if part.spec
            else None
        )
    )
    grid = Derived[Grid | None](  # The worker cores
        lambda part: (
            grid_of(part.report.total.cores if part.report else (), part.spec, part.l1) if part.detailed else None
        )
    )
    # Sums over operations of one name, and over lines of the script
    kinds = Derived[Sequence[Sum]](lambda part: part.network.kinds if part.network else ())
    layers = Derived[Sequence[Sum]](lambda part: part.network.layers if part.network else ())
    # How convolutions were cut up
    partitions = Derived[Sequence[Partition]](lambda part: part.summary.partitions if part.summary else ())
    accuracy = Derived[Accuracy | None](lambda part: part.summary.accuracy if part.summary else None)
    unknown_accuracy = Derived[str](  # Why the accuracy is unknown; empty if it is known, or the call failed
        lambda part: (
            NO_VALUES
            if part.summary and part.accuracy is None
            else NO_REFERENCE
            if part.network and part.operations
            else ""
        )
    )
    timed = Derived[Sequence[OpRun]](lambda part: [op for op in part.operations if part.detailed and op.time])
    stages = Derived[Sequence[str]](lambda part: _stages(part.timed))
    # The longest operations, the longest first
    roofs = Derived[Sequence[OpRun]](lambda part: _most(part.timed, lambda op: op.cycles, SHOWN_ROOFS))
    # The operations that are farthest above their roofs, the farthest first
    excesses = Derived[Sequence[OpRun]](
        lambda part: _most(part.timed, lambda op: op.time.cycles_above_roof if op.time else 0, SHOWN_EXCESSES)
    )
    chart = Derived[RoofChart | None](lambda part: roof_chart(part.timed))  # None without a point
    steps = Derived[tuple[Tick, ...]](lambda part: steps(len(part.operations)))  # Marks of the axis of operations
    times = Derived[tuple[Tick, ...]](  # Marks of the time axis
        lambda part: times(part.operations[0].runs.nanoseconds if part.operations else 0.0)
    )


def _most(timed: Sequence[OpRun], cycles: Callable[[OpRun], int], count: int) -> Sequence[OpRun]:
    """The operations with most of some cycles, without those that have none."""
    return sorted((op for op in timed if cycles(op) > 0), key=cycles, reverse=True)[:count]


def _uses(result: LayerResult) -> Sequence[OperationUse]:
    """The device operations of a layer with their buffers and headroom, as far as it came."""
    return result.reached if result.summary is None else result.summary.operations


def _stages(timed: Sequence[OpRun]) -> list[str]:
    """Stages with busy or critical cycles, in pipeline order."""
    stages = (stage for op in timed if op.time for stage in op.time.stages)
    used = {stage.stage for stage in stages if stage.busy_cycles or stage.critical_cycles}
    return [stage.value for stage in Stage if stage.value in used]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page."""

    title: str
    device: str
    clock_hz: int
    parts: Sequence[Part]  # Calls or networks
    counted: str = explain_inclusion(INCLUDES, LEAVES_OUT)  # What the cycles include and leave out


def page_of_calls(report: CycleReport) -> Page:
    """The page of a report on cycles alone."""
    calls, operations = report.calls, len(report.operations)
    runs = Runs(report.clock_hz)
    for number, call in enumerate(calls):
        for taken in call.run.in_order:
            runs.add(name=taken.name, call=number, function=call.name, where="", taken=taken)
    missing = _without(sum(len(call.untimed) for call in calls))
    name = calls[0].name if len(calls) == 1 else f"{len(calls)} calls"
    verdict = f"It takes {_took(report)}, in {counted(operations, 'device operation')}{missing}."
    asked = _counts(len(calls), operations)
    return _page(report, Part(name=name, asked=asked, verdict=(verdict,), operations=runs, report=report))


def page_of_network(
    network: NetworkReport,
    report: CycleReport | None = None,
    spec: DeviceSpec | None = None,
    sources: Iterable[Source] = (),
) -> Page:
    """The page of a network, and of the cycles of its calls if known; `sources` are its convolutions as Python."""
    part = Part(
        name="network",
        asked=_counts(network.calls, len(network.operations)),
        verdict=_network_verdict(network),
        operations=network.operations,
        report=report,
        network=network,
        spec=spec,
        sources=tuple(sources),
    )
    return _page(network, part)


def page_of_layers(results: Sequence[LayerResult], spec: DeviceSpec) -> Page:
    """The page of layers that were run."""
    failed = sum(result.error is not None for result in results)
    name = results[0].layer.name if len(results) == 1 else f"{len(results)} layers"
    verdict = f", {failed} failed" if failed and len(results) > 1 else " failed" if failed else ""
    parts = [_part_of_layer(result, spec) for result in results]
    return Page(title=f"{name} on {spec.name}{verdict}", device=spec.name, clock_hz=spec.clock_hz, parts=parts)


def _page(report: CycleReport | NetworkReport, part: Part) -> Page:
    return Page(title=f"{part.name} on {report.device}", device=report.device, clock_hz=report.clock_hz, parts=(part,))


def _part_of_layer(result: LayerResult, spec: DeviceSpec) -> Part:
    summary, uses = result.summary, _uses(result)
    report = None if summary is None else summary.cycles
    each = [None] * len(uses) if report is None else [taken for call in report.calls for taken in call.run.in_order]
    runs = Runs(spec.clock_hz, spec)
    for use, taken in zip(uses, each, strict=True):
        l1 = (use.circular_bytes, use.buffer_bytes)
        runs.add(name=use.name, call=0, function="", where="", taken=taken, l1=l1)
    layer = result.layer
    image = by((layer.batch_size, layer.input_height, layer.input_width, layer.in_channels))
    asked = {
        "input": f"{image} {layer.input_dtype} {layer.input_layout} in {layer.input_memory}",
        "output channels": f"{layer.out_channels}",
        "kernel": by(layer.kernel_size),
        "stride": by(layer.stride),
        "padding": ", ".join(map(str, layer.padding)),
        "groups": f"{layer.groups}",
    }
    verdict = () if summary is None else _layer_verdict(summary)
    sources = (Source(layer.name, result.source),) if result.source else ()
    return Part(
        name=layer.name, asked=asked, verdict=verdict, operations=runs, report=report, result=result, spec=spec,
        sources=sources,
    )  # fmt: skip


def _counts(calls: int, operations: int) -> Mapping[str, str]:
    return {"calls": f"{calls}", "device operations": f"{operations}"}


def _took(report: CycleReport | NetworkReport) -> str:
    return f"{cycles(report.cycles)} cycles, {time(report.nanoseconds)} of kernel time"


def _without(missing: int) -> str:
    return f", not counting {missing} that no model knows" if missing else ""


def _network_verdict(network: NetworkReport) -> list[str]:
    mark = network.high_water
    if mark.fullest is None:
        return ["No device operation ran."]
    ran = f"{counted(len(network.operations), 'device operation')} of {counted(network.calls, 'call')}"
    return [
        f"It ran: {_took(network)}, in {ran}{_without(len(network.untimed))}.",
        f"L1 of a core is at most {percent(mark.share)} full ({mark.total_bytes:,} of {mark.usable_bytes:,} B), in "
        f"#{mark.operation} {mark.fullest.name}.",
    ]


def _layer_verdict(summary: Summary) -> list[str]:
    use, output, report = summary.l1, summary.output, summary.cycles
    return [
        f"It fits: L1 of a core is at most {percent(use.peak_share)} full ({use.peak_total_bytes:,} of "
        f"{use.usable_bytes:,} B), {use.headroom_bytes:,} B stay free at the tightest moment.",
        *([f"It takes {_took(report)}."] if report is not None and report.operations else []),
        f"It gives {by(output.shape)} {output.dtype} {output.layout}, images of "
        f"{output.height}x{output.width}; {output.place}.",
    ]
