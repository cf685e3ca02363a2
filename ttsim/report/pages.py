"""Pages of reports on calls, on a network, and on layers, each as a list of parts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ttsim.report.accuracy import Accuracy
from ttsim.report.advice import Advice
from ttsim.report.charts import Grid, RoofChart, Tick, grid_of, roof_chart, steps, times
from ttsim.report.cycle_report import INCLUDES, LEAVES_OUT, CycleReport, launch_lines
from ttsim.report.cycles import CallTime, Totals
from ttsim.report.explain import explain_inclusion
from ttsim.report.formatting import by, counted, cycles, percent, time
from ttsim.report.memory import L1Map, LayerResult, OperationUse, Partition, Summary, l1_map
from ttsim.report.network import NetworkReport, Sum
from ttsim.report.runs import OpRun, Runs
from ttsim.runtime.types.layer import Layer

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
    """A call, or a network, on a page."""

    name: str  # Its title
    asked: Sequence[tuple[str, str]]  # The request, in lines of name and text
    verdict: Sequence[str] = ()  # Results as lines, the most important first
    operations: Sequence[OpRun]  # In order
    error: str | None = None  # Why it failed; None if it did not
    detailed: bool = True  # Whether operations have more figures than the sums of their cycles
    total: Totals | None = None  # Sum over the timed operations; None if there are none
    calls: Sequence[CallTime] = ()  # The calls in the report on cycles, for the explanation
    memory: Sequence[OperationUse] = ()  # The device operations with their buffers and headroom; none for a network
    l1: L1Map | None = None  # L1 of a core over the operations
    grid: Grid | None = None  # The worker cores
    kinds: Sequence[Sum] = ()  # Sums over operations of one name; none for one call
    layers: Sequence[Sum] = ()  # Sums over lines of the script; none for one call
    partitions: Sequence[Partition] = ()  # How convolutions were cut up
    accuracy: Accuracy | None = None  # Against float64; None if unknown
    unknown_accuracy: str = ""  # Why the accuracy is unknown; empty if it is known, or the call failed
    advice: Advice | None = None  # None if no advice was requested
    between: Sequence[str] = ()  # Time between operations
    sources: Sequence[Source] = ()  # Calls as Python, if known

    @cached_property
    def timed(self) -> Sequence[OpRun]:
        """The operations with known cycles; empty unless the part is detailed."""
        return [op for op in self.operations if op.time is not None] if self.detailed else ()

    @cached_property
    def stages(self) -> Sequence[str]:
        """Stages with busy or critical cycles, in pipeline order."""
        stages = (stage for op in self.timed if op.time for stage in op.time.stages)
        used = {stage.stage for stage in stages if stage.busy_cycles or stage.critical_cycles}
        return [stage.value for stage in Stage if stage.value in used]

    @cached_property
    def roofs(self) -> Sequence[OpRun]:
        """The longest operations, the longest first."""
        return sorted((op for op in self.timed if op.cycles), key=lambda op: -op.cycles)[:SHOWN_ROOFS]

    @cached_property
    def excesses(self) -> Sequence[OpRun]:
        """The operations that are farthest above their roofs, the farthest first."""
        above = [(op.time.cycles_above_roof, op) for op in self.timed if op.time and op.time.cycles_above_roof > 0]
        return [op for _, op in sorted(above, key=lambda pair: -pair[0])[:SHOWN_EXCESSES]]

    @cached_property
    def chart(self) -> RoofChart | None:
        """The roofline chart; None if no operation has a point in it."""
        return roof_chart(self.timed)

    @property
    def steps(self) -> tuple[Tick, ...]:
        """The marks of the axis of operations."""
        return steps(len(self.operations))

    @property
    def times(self) -> tuple[Tick, ...]:
        """The marks of the time axis."""
        return times(self.operations[0].runs.nanoseconds if self.operations else 0.0)


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
    calls, operations = report.calls, report.operations
    runs = Runs(report.clock_hz)
    for number, call in enumerate(calls):
        for taken in call.run.in_order:
            runs.add(name=taken.name, call=number, function=call.name, where="", taken=taken)
    missing = _without(sum(len(call.untimed) for call in calls))
    part = Part(
        name=calls[0].name if len(calls) == 1 else f"{len(calls)} calls",
        asked=(("calls", f"{len(calls)}"), ("device operations", f"{len(operations)}")),
        verdict=(f"It takes {_took(report)}, in {counted(len(operations), 'device operation')}{missing}.",),
        operations=runs,
        grid=grid_of(report.total.cores),
        between=launch_lines(report.launches),
    )
    return _page(report, _with_cycles(part, report))


def page_of_pass(network: NetworkReport) -> Page:
    """The page of a report on a network alone."""
    part = Part(
        name="network",
        asked=(("calls", f"{network.calls}"), ("device operations", f"{len(network.operations)}")),
        verdict=_network_verdict(network),
        operations=network.operations,
        detailed=False,
        l1=network.l1,
        kinds=network.kinds,
        layers=network.layers,
        unknown_accuracy=NO_REFERENCE if network.operations else "",
        between=launch_lines(network.launches),
    )
    return _page(network, part)


def page_of_network(
    network: NetworkReport, report: CycleReport, spec: DeviceSpec, sources: Iterable[Source] = ()
) -> Page:
    """The page of a network and of the cycles of its calls; `sources` are its convolutions as Python."""
    page = page_of_pass(network)
    grid = grid_of(report.total.cores, spec, network.l1)
    part = replace(_with_cycles(page.parts[0], report), detailed=True, grid=grid, sources=tuple(sources))
    return replace(page, parts=(part,))


def page_of_layers(results: Sequence[LayerResult], spec: DeviceSpec) -> Page:
    """The page of layers that were run."""
    failed = sum(result.error is not None for result in results)
    name = results[0].layer.name if len(results) == 1 else f"{len(results)} layers"
    verdict = f", {failed} failed" if failed and len(results) > 1 else " failed" if failed else ""
    return Page(
        title=f"{name} on {spec.name}{verdict}",
        device=spec.name,
        clock_hz=spec.clock_hz,
        parts=[_part_of_layer(result, spec) for result in results],
    )


def _page(report: CycleReport | NetworkReport, part: Part) -> Page:
    return Page(title=f"{part.name} on {report.device}", device=report.device, clock_hz=report.clock_hz, parts=(part,))


def _with_cycles(part: Part, report: CycleReport) -> Part:
    total = report.total if report.operations else None
    return replace(part, total=total, calls=report.calls, advice=report.advice)


def _part_of_layer(result: LayerResult, spec: DeviceSpec) -> Part:
    summary = result.summary
    uses = result.reached if summary is None else summary.operations
    report = None if summary is None else summary.cycles
    each = [None] * len(uses) if report is None else [taken for call in report.calls for taken in call.run.in_order]
    runs = Runs(spec.clock_hz, spec)
    for use, taken in zip(uses, each, strict=True):
        l1 = (use.circular_bytes, use.buffer_bytes)
        runs.add(name=use.name, call=0, function="", where="", taken=taken, l1=l1)
    memory = l1_map([use.held for use in uses], spec)
    part = Part(
        name=result.layer.name,
        asked=_request(result.layer),
        verdict=() if summary is None else _layer_verdict(summary),
        error=result.error,
        operations=runs,
        memory=uses,
        l1=memory,
        grid=grid_of(() if report is None else report.total.cores, spec, memory),
        partitions=() if summary is None else summary.partitions,
        accuracy=None if summary is None else summary.accuracy,
        unknown_accuracy=NO_VALUES if summary is not None and summary.accuracy is None else "",
        between=() if report is None else launch_lines(report.launches),
        sources=(Source(result.layer.name, result.source),) if result.source else (),
    )
    return part if report is None else _with_cycles(part, report)


def _request(layer: Layer) -> list[tuple[str, str]]:
    image = f"{layer.batch_size}x{layer.input_height}x{layer.input_width}x{layer.in_channels}"
    return [
        ("input", f"{image} {layer.input_dtype} {layer.input_layout} in {layer.input_memory}"),
        ("output channels", f"{layer.out_channels}"),
        ("kernel", by(layer.kernel_size)),
        ("stride", by(layer.stride)),
        ("padding", ", ".join(map(str, layer.padding))),
        ("groups", f"{layer.groups}"),
    ]


def _took(report: CycleReport | NetworkReport) -> str:
    return f"{cycles(report.cycles)} cycles, {time(report.nanoseconds)} of kernel time"


def _without(missing: int) -> str:
    return f", not counting {missing} that no model knows" if missing else ""


def _network_verdict(network: NetworkReport) -> list[str]:
    mark = network.high_water
    if mark.operation is None:
        return ["No device operation ran."]
    ran = f"{counted(len(network.operations), 'device operation')} of {counted(network.calls, 'call')}"
    return [
        f"It ran: {_took(network)}, in {ran}{_without(len(network.untimed))}.",
        f"L1 of a core is at most {percent(mark.share)} full ({mark.total_bytes:,} of {mark.usable_bytes:,} B), in "
        f"#{mark.operation} {network.operations[mark.operation].name}.",
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
