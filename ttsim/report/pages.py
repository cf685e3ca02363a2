"""Pages of reports on calls, on a network, and on layers: the sections of each view."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from device.spec.device_spec import DeviceSpec
from ttsim.report import page_tables as tables
from ttsim.report.accuracy import Accuracy
from ttsim.report.advice import BOTTLENECK, SENSITIVITY_TITLE, SHOWN_FIGURES, Advice, Change, advice_lines, best_change
from ttsim.report.comparison import Comparison, Reported, compare
from ttsim.report.comparison_page import FIELDS as COMPARED, Compared
from ttsim.report.cycle_report import INCLUDES, LEAVES_OUT, CycleReport, launch_lines
from ttsim.report.cycles import Core, CoreTime, Totals, cores_in
from ttsim.report.explain import explain_inclusion, operation_lines
from ttsim.report.formatting import by, counted, cycles, percent, time
from ttsim.report.links import link_uses
from ttsim.report.memory import CIRCULAR, L1Map, LayerResult, OperationUse, l1_map
from ttsim.report.network import NetworkReport, OpRun, Runs
from ttsim.report.page_charts import l1_chart, link_chart, roofline, stage_rows, timeline
from ttsim.report.reported import reported_of
from ttsim.report.rows import Derived
from ttsim.report.sections import Cell, Field, Page, Section, View, bars, code, gain, heat, lines, table, verdict
from ttsim.runtime.call_source import WHAT_FITS

NO_REFERENCE: Final = "Not known: what a network should give, only its script knows."
NO_VALUES: Final = 'Not known: the layer ran without values; values="exact" or "fast" has them.'
NOT_TRIED: Final = "No change was tried."
HOW_TO_TRY: Final = (
    "`ttsim run` (without --no-suggestions) and `ttsim exec --report` try changes, and so does "
    "estimate_cycles(..., suggestions=True)."
)
NO_BASELINES: Final[Mapping[str, Reported]] = {}
ALL: Final = "all layers"
WORTH: Final = 0.05  # of the time: smaller gains leave the verdict good
SHOWN_CALLS: Final = 8  # explaining more calls would take more room than the tables
FEW_OPERATIONS: Final = 12  # that the first picture shows one by one; of more, it shows the kinds
CORES_NOTE: Final = (
    "Where a model does not tell cores apart, each moves as many bytes as the others. Circular buffers are those of "
    "the fullest operation."
)
SOURCES_NOTE: Final = (
    "Each call as an estimate on an open device; suggestions=True tries other configs. A halo's output is moved there, "
    "too, if L1 has a better place for it."
)
TIME_AND_BOUND: Final = "Bars are kernel time; the line in a bar is the least time of the machine for the same work."


class Source(NamedTuple):
    """A call as Python, and its name."""

    name: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """A call, a network, or a layer on a page; unknown figures are empty or None."""

    name: str
    asked: Mapping[str, str]  # The request: texts by name
    operations: Sequence[OpRun]  # In order
    report: CycleReport | None = None  # The cycles of its calls
    network: NetworkReport | None = None
    result: LayerResult | None = None  # Of a layer
    spec: DeviceSpec | None = None
    sources: Sequence[Source] = ()  # Calls as Python, if known
    baseline: Reported | None = None  # An earlier report on the same call
    draws_links: bool = False  # Whether the page draws the links of the networks

    error = Derived[str](lambda part: (part.result.error or "") if part.result else "")  # Why it failed
    total = Derived[Totals | None](lambda part: part.report.total if part.report and part.report.operations else None)
    advice = Derived[Advice | None](lambda part: part.report.advice if part.report else None)
    best = Derived[Change | None](lambda part: best_change(part.advice) if part.advice else None)
    accuracy = Derived[Accuracy | None](
        lambda part: part.result.summary.accuracy if part.result and part.result.summary else None
    )
    pcc = Derived[float | None](lambda part: None if part.accuracy is None else part.accuracy.pcc)
    compared = Derived[Comparison | None](
        lambda part: compare(part.baseline, reported_of(part.report)) if part.baseline and part.report else None
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


def page_of_calls(report: CycleReport) -> Page:
    """The page of a report on cycles only."""
    calls, operations = report.calls, len(report.operations)
    runs = Runs(report.clock_hz)
    for number, call in enumerate(calls):
        for taken in call.run.in_order:
            runs.add(name=taken.name, call=number, function=call.name, where="", taken=taken)
    name = calls[0].name if len(calls) == 1 else f"{len(calls)} calls"
    part = Part(name=name, asked=_counts(len(calls), operations), operations=runs, report=report)
    return _page(name, report.device, report.clock_hz, [_view(part)])


def page_of_network(
    network: NetworkReport,
    report: CycleReport | None = None,
    spec: DeviceSpec | None = None,
    sources: Iterable[Source] = (),
) -> Page:
    """The page of a network, and of the cycles of its calls if known; `sources` are its convolutions as Python."""
    asked, sources = _counts(network.calls, len(network.operations)), tuple(sources)
    part = Part(
        name="network", asked=asked, operations=network.operations, report=report, network=network, spec=spec,
        sources=sources,
    )  # fmt: skip
    return _page(part.name, network.device, network.clock_hz, [_view(part)])


def page_of_layers(
    results: Sequence[LayerResult],
    spec: DeviceSpec,
    baselines: Mapping[str, Reported] = NO_BASELINES,
    *,
    links: bool = False,
) -> Page:
    """The page of layers: a view of all layers, then a view of each layer.

    ``baselines`` are earlier reports by the names of layers; with ``links``, views draw the links of the networks.
    """
    failed = sum(result.error is not None for result in results)
    name = results[0].layer.name if len(results) == 1 else f"{len(results)} layers"
    end = f", {failed} failed" if failed and len(results) > 1 else " failed" if failed else ""
    parts = [
        replace(_part_of_layer(result, spec, baselines.get(result.layer.name)), draws_links=links) for result in results
    ]
    views = [_view(part) for part in parts]
    return _page(name, spec.name, spec.clock_hz, [_overview(parts), *views] if len(parts) > 1 else views, end)


def _page(name: str, device: str, clock_hz: int, views: Sequence[View], end: str = "") -> Page:
    counted = explain_inclusion(INCLUDES, LEAVES_OUT)
    return Page(
        title=f"{name} on {device}{end}", device=f"{device}, {clock_hz / 1e9:g} GHz", views=views, notes=[counted]
    )


def _part_of_layer(result: LayerResult, spec: DeviceSpec, baseline: Reported | None) -> Part:
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
    sources = (Source(layer.name, result.source),) if result.source else ()
    return Part(
        name=layer.name, asked=asked, operations=runs, report=report, result=result, spec=spec, sources=sources,
        baseline=baseline,
    )  # fmt: skip


def _counts(calls: int, operations: int) -> Mapping[str, str]:
    return {"calls": f"{calls}", "device operations": f"{operations}"}


def _uses(result: LayerResult) -> Sequence[OperationUse]:
    """The device operations of a layer with their buffers and headroom, until a failure."""
    return result.reached if result.summary is None else result.summary.operations


def _view(part: Part) -> View:
    stages = stage_rows(part.operations)
    roofs = [op for op in part.operations if op.time and op.cycles]
    chart, memory, pairs = roofline(roofs), part.l1, _compared(part)
    sections = [
        _verdict(part),
        _gain(part),
        _picture(part),
        *([code("error", "What the library says", "", [("", part.error)])] if part.error else ()),
        timeline(part.operations, stages, pairs),
        *([l1_chart(memory, part.operations)] if memory else ()),
        table("stages", "Stages of the slowest cores", tables.STAGES, stages, ops=[[row.op.number] for row in stages]),
        *([chart] if chart else ()),
        table("roofs", "What the machine needs at least", tables.ROOFS, roofs, ops=[[op.number] for op in roofs],
              note="Shares of the time that math, DRAM and networks need with all of them busy."),
        *_links(part),
        *_suggestions(part),
        table("compared", "Compared with the baseline", COMPARED, pairs,
              ops=[[] if row.number is None else [row.number] for row in pairs]),
        *_tables(part, memory),
    ]  # fmt: skip
    return View(name=part.name, sections=sections)


def _links(part: Part) -> Iterator[Section]:
    """All links on the grid, and the busiest links of each operation."""
    uses = link_uses(part.report) if part.draws_links and part.report else ()
    chart = link_chart(uses)
    if chart:
        rows = tables.link_rows(uses)
        yield chart
        yield table("linked", "Busiest links", tables.LINKS, rows, ops=[[row.use.number] for row in rows],
                    note="Times are those of the bytes at the full rate of a link.")  # fmt: skip


def _compared(part: Part) -> list[Compared]:
    """The matched operations of the baseline and of the part, numbered by the part."""
    if part.compared is None:
        return []
    numbers = (op.number for op in part.operations if op.time)
    return [Compared.of(part.compared, pair, next(numbers) if pair.after else None) for pair in part.compared.pairs]


def _tables(part: Part, memory: L1Map | None) -> Iterator[Section]:
    network, summary, numbers = (
        part.network,
        part.result.summary if part.result else None,
        [[op.number] for op in part.operations],
    )
    yield table("operations", "Operations in order", tables.OPERATIONS, part.operations, ops=numbers)
    if network:
        for name, title, fields, sums in (
            ("kinds", "By kind", tables.KINDS, network.kinds),
            ("scripts", "By line of the script", tables.LINES, network.layers),
        ):
            longest = sorted(sums, key=lambda row: -row.cycles)
            yield table(name, title, fields, longest, ops=[[op.number for op in row.parts] for row in longest])
    yield table("memory", "L1 of a core, by operation", tables.MEMORY, part.memory, ops=numbers if part.memory else ())
    if memory:
        living = [range(block.first, block.last + 1) for block in memory.blocks]
        yield table("buffers", "Buffers in L1 of a core", tables.BUFFERS, memory.blocks, ops=living)
    if part.total:
        yield heat("map", "Cores", CORES_NOTE, source="cores", across="column", down="row", figures=tables.MAPPED)
        cores = grid_of(part.total.cores, part.spec, memory)
        yield table("cores", "Cores in numbers", tables.CORES, cores, folded=True)
        yield table("work", "Issued and useful work", tables.WORK, [part.total] if part.total.math.issued_flops else [])
    if part.accuracy:
        yield table("accuracy", "The output against float64", tables.ACCURACY, [part.accuracy])
    else:
        yield lines("accuracy", "Accuracy", [NO_VALUES] if summary else [NO_REFERENCE] if network else [])
    yield table("partition", "How convolutions were cut up", tables.PARTITIONS, summary.partitions if summary else ())
    yield from _words(part)


def _words(part: Part) -> Iterator[Section]:
    report = part.report or part.network
    calls = part.report.calls if part.report and len(part.report.calls) <= SHOWN_CALLS else ()
    yield lines("words", "In words", [line.removeprefix("- ") for call in calls for line in operation_lines(call)])
    yield lines("between", "Between operations", launch_lines(report.launches) if report else ())
    if len(part.sources) == 1:
        yield code("source", "The call as Python", "", part.sources)
    else:
        yield code("source", "Calls as Python", SOURCES_NOTE, part.sources)


def _suggestions(part: Part) -> Iterator[Section]:
    advice = part.advice
    if advice is not None:
        together = [] if advice.together is None else [advice.together]
        changes = (*together, *advice.changes, *advice.at_a_price)
        yield table("changes", "Suggestions", tables.CHANGES, changes, note=_tried(advice))
        figures = advice.sensitivity[:SHOWN_FIGURES]
        note = SENSITIVITY_TITLE.removeprefix(f"{BOTTLENECK} ")
        yield table("machine", BOTTLENECK, tables.SENSITIVITY, figures, note=note)


def _tried(advice: Advice) -> str:
    return f"{counted(advice.tried, 'call')} tried on the model, whose errors are larger than small gains."


def _verdict(part: Part) -> Section:
    if part.error:
        return verdict("bad", f"Does not run: {part.error.splitlines()[0]}", [], part.asked)
    report, total, best = part.report or part.network, part.total, part.best
    if not part.operations:
        return verdict("known", "No device operation ran.", [], part.asked)
    fits, missing = "Fits and takes" if part.result else "Takes", sum(bool(op.untimed) for op in part.operations)
    text = f"{fits} {time(report.nanoseconds)}" if report else "Fits; cycles were not estimated"
    if total and total.roofline.cycles:
        ratio, bound = total.cycles / total.roofline.cycles, total.roofline.bound
        text += f", {ratio:,.1f} times what the machine needs at least ({bound})"
    if report and missing:
        text += f", without {counted(missing, 'operation')} that no model knows"
    state = "known"
    if part.advice and part.advice.tried:
        state = "slow" if best and best.saved_share >= WORTH else "good"
    if best and state == "slow":
        text += f". A change makes it {1 / (1 - best.saved_share):,.1f} times faster"
    return verdict(state, f"{text}.", _facts(part), part.asked)


def _facts(part: Part) -> Iterator[tuple[str, Cell, str]]:
    """The figures of the first screen."""
    total, report, network = part.total, part.report or part.network, part.network
    summary = part.result.summary if part.result else None
    if report and report.cycles:
        yield "kernel time", report.nanoseconds, "ns"
        yield "cycles", report.cycles, "cycles"
    if total:
        yield f"least time ({total.roofline.bound})", total.roof_nanoseconds, "ns"
        yield "of the bound", total.roofline.share, "share"
        yield "matrix units busy", total.math.device_utilization, "share"
        yield "error expected", total.error.share, "share"
    if part.compared:
        yield "baseline", sum(op.nanoseconds or 0 for op in part.baseline.operations) if part.baseline else None, "ns"
        yield "change from the baseline", part.compared.change.share, "share"
    if summary:
        yield "most L1 of a core", summary.l1.peak_share, "share"
        yield "headroom in L1", summary.l1.headroom_bytes, "B"
        yield "output", f"{by(summary.output.shape)} {summary.output.dtype}", "text"
        yield "PCC", part.pcc, "figure"
    if network:
        yield "most L1 of a core", network.high_water.share, "share"


def _gain(part: Part) -> Section:
    best, advice = part.best, part.advice
    if part.error:
        fixes = part.error.partition(WHAT_FITS)[2].strip().splitlines()
        if fixes:
            return gain("This change makes it fit", f"{len(fixes)} changes were tried and fit.", fixes[0].strip())
        return gain("No change that was tried makes it run.", "The text of the library below names what is wrong.")
    if best and advice:
        saved = f"{cycles(advice.cycles)} -> {cycles(best.cycles)} cycles"
        return gain(f"Saves {percent(best.saved_share)}: {best.text}", f"{saved}. {_tried(advice)}", best.arguments)
    if advice and advice.tried:
        return gain("No change that was tried is faster.", _tried(advice))
    machine = advice_lines(advice)[-1].strip() if advice and advice.machine else ""
    return gain(NOT_TRIED, f"{machine}. {HOW_TO_TRY}" if machine else HOW_TO_TRY)


def _picture(part: Part) -> Section:
    if part.error:
        chart = l1_chart(part.l1, part.operations) if part.l1 else None
        if chart and chart["parts"]:
            return {**chart, "id": "picture", "title": "L1 of a core when it failed"}
        return lines("picture", "Picture", ["Nothing was placed: the call was refused before."])
    several = part.network is not None and len(part.operations) > FEW_OPERATIONS
    source, bound = ("kinds", "") if several else ("operations", "at least")
    note = "" if several else TIME_AND_BOUND
    return bars("picture", "Where the time goes", note, source=source, label="operation", figures=["time"], bound=bound)


def _total(figure: Callable[[Totals], Cell]) -> Callable[[Part], Cell]:
    return lambda part: None if part.total is None else figure(part.total)


def _best(figure: Callable[[Change], Cell]) -> Callable[[Part], Cell]:
    return lambda part: None if part.best is None else figure(part.best)


LAYERS: Final[Sequence[Field[Part]]] = (
    Field("layer", lambda part: part.name, "view"),
    Field("verdict", lambda part: "does not run" if part.error else "runs"),
    Field("time", _total(lambda total: total.nanoseconds), "ns", total=True),
    Field("at least", _total(lambda total: total.roof_nanoseconds), "ns", total=True),
    Field("of the bound", _total(lambda total: total.roofline.share), "share"),
    Field("a change saves", _best(lambda change: change.saved_share), "share"),
    Field("change", _best(lambda change: change.text)),
    Field("bound by", lambda part: max(part.operations, key=lambda op: op.cycles).bound_by if part.total else ""),
    Field("most L1 of a core", lambda part: max((use.used_share for use in part.memory), default=None), "share"),
    Field("headroom", lambda part: min((use.headroom_bytes for use in part.memory), default=None), "B"),
    Field("cycles", _total(lambda total: total.cycles), "cycles", total=True),
    Field("change from the baseline", lambda part: part.compared.change.share if part.compared else None, "share"),
    Field("PCC", lambda part: part.pcc, "figure"),
)


def _overview(parts: Sequence[Part]) -> View:
    """The view of several layers together."""
    failed = [part for part in parts if part.error]
    totals = [part.total for part in parts if part.total]
    gains = [(best.saved_share * best_of.cycles, part) for part in parts
             if (best := part.best) and (best_of := part.advice) and best.saved_share >= WORTH]  # fmt: skip
    together = sum(total.nanoseconds for total in totals)
    tried = any(part.advice and part.advice.tried for part in parts)
    text = f"{len(parts) - len(failed)} of {len(parts)} layers run, in {time(together)} of kernel time together."
    if gains:
        text += f" Changes make {len(gains)} of them faster."
    state = "bad" if failed else "slow" if gains else "good" if tried else "known"
    chosen = max(gains, key=lambda own: own[0])[1] if gains else failed[0] if failed else None
    if chosen:
        offer = _gain(chosen)
        offer |= {"text": f"{chosen.name}: {offer['text']}", "view": chosen.name}
    else:
        offer = gain(f"No change that was tried saves {percent(WORTH)} of a layer." if tried else NOT_TRIED, HOW_TO_TRY)
    facts = [
        ("kernel time", together, "ns"),
        ("layers", len(parts), "number"),
        ("failed", len(failed) or None, "number"),
    ]
    sections = [
        verdict(state, text, facts, {}),
        offer,
        bars("picture", "Where the time goes", TIME_AND_BOUND, source="layers", label="layer", figures=["time"],
             bound="at least"),
        table("layers", "Layers", LAYERS, parts),
    ]  # fmt: skip
    return View(name=ALL, sections=sections)


def grid_of(cores: Sequence[CoreTime], spec: DeviceSpec | None = None, l1: L1Map | None = None) -> list[CoreTime]:
    """Every worker core of a device, row by row, from the busy cores and the circular buffers in the map of L1.

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
    return [
        replace(
            known.get((column, row)) or CoreTime(column=column, row=row, of_cycles=0),
            circular_bytes=max(circular[column, row].values(), default=0),
        )
        for row in range(rows)
        for column in range(columns)
    ]
