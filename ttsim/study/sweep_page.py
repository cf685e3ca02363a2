"""The page of a sweep: the fastest point with its arguments, time against L1, a heat map, and all points."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from ops.planners.conv.arguments import Lowering
from ttsim.recording.suggestions import arguments_source
from ttsim.report.formatting import counted, percent, time
from ttsim.report.sections import (
    MOST_POINTS,
    Cell,
    Field,
    Page,
    Section,
    View,
    axis_around,
    bars,
    gain,
    heat,
    lines,
    points,
    short,
    table,
    verdict,
)
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.run import compute_config, conv_config, slice_config
from ttsim.study.space import ANY_LAYER, COMPUTE, CONFIG, LOWERING
from ttsim.study.store import Row, front
from ttsim.study.sweep import LONGEST_REASON, Best, SweepResult, word_of, words_of

ALL: Final = "all layers"
WORTH: Final = 0.05  # of the time: a smaller gain leaves the verdict good
SCATTER: Final = "Time against L1"
SCATTER_NOTE: Final = "Each point is a configuration; a line joins the points of which no other is faster and smaller."
MAP_NOTE: Final = "The least figure of all points with the two settings."
PALER: Final = "Paler bars are as given; their figures are in the table."
BARS: Final = ("as given", "fastest")  # columns of `BESTS`
DEVICE: Final = "device"
SLICE: Final = "slice"


class Shown(NamedTuple):
    """A point of a layer on the page."""

    number: int  # In the table
    labels: Mapping[str, Any]
    row: Row
    given: bool  # Whether it has the layer's own config

    @property
    def name(self) -> str:
        """The settings of the point in words."""
        return words_of(self.labels, given=self.given)


def page_of_sweep(result: SweepResult) -> Page:
    """The page of a sweep: a view of all layers, then a view for each layer."""
    layers = list(dict.fromkeys(row.layer for row in result.rows))
    devices = list(dict.fromkeys(row.device for row in result.rows))
    views = [_view(result, layer, MOST_POINTS // len(layers)) for layer in layers]
    return Page(
        title=f"Sweep of {layers[0] if len(layers) == 1 else counted(len(layers), 'layer')}",
        device=devices[0] if len(devices) == 1 else counted(len(devices), "device"),
        views=[_overview(result, layers), *views] if len(layers) > 1 else views,
        notes=[result.note] if result.note else [],
    )


def arguments_of(row: Row) -> str:
    """The config arguments of a point's call as Python; empty if the library chooses everything."""
    if row.arguments:
        return row.arguments
    given: dict[str, Any] = {SLICE: row.inputs.get(SLICE)}
    for kind in (CONFIG, COMPUTE):
        own = {name: value for name, value in row.inputs.items() if name.startswith(f"{kind}.")}
        given[kind] = {name.removeprefix(f"{kind}."): value for name, value in own.items()}
    layer: Layer = replace(ANY_LAYER, **given)
    lowering = row.inputs.get(LOWERING)
    options = {
        "conv_config": conv_config(layer),
        "compute_config": compute_config(layer, None),
        "dram_slice_config": slice_config(layer),
        LOWERING: None if lowering == Lowering.ZERO_INSERTION.value else lowering,
    }
    return arguments_source({name: value for name, value in options.items() if value is not None})


def _fastest(result: SweepResult, layer: str) -> Best:
    """The fastest point of a layer on any device; a point that no device runs comes last."""
    return min(
        (best for best in result.best() if best.layer == layer), key=lambda best: best.nanoseconds or float("inf")
    )


def _saved(best: Best) -> float | None:
    """The time that the fastest point saves, as a share of the layer's own time; None if either does not run."""
    given = best.given.own_nanoseconds if best.given else None
    return 1 - best.nanoseconds / given if given and best.nanoseconds is not None else None


def _view(result: SweepResult, layer: str, most: int) -> View:
    samples = [(number, *sample) for number, sample in enumerate(result.samples) if sample[1].layer == layer]
    samples.sort(key=lambda sample: float("inf") if sample[2].nanoseconds is None else sample[2].nanoseconds)
    own = [Shown(at, labels, row, number in result.given) for at, (number, labels, row) in enumerate(samples)]
    best, several, shown = _fastest(result, layer), len({point.row.device for point in own}) > 1, own[:most]
    sections = [_verdict(best, own), _gain(best), _scatter(shown)]
    if several:
        devices = [best for best in result.best() if best.layer == layer]
        sections.append(bars("bars", "Fastest point by device", PALER, source="devices", label=DEVICE, figures=BARS))
        sections.append(table("devices", "Devices", BESTS, devices))
    axes = [name for name in (DEVICE, *result.axes) if len({_value(point, name) for point in own}) > 1]
    if len(axes) > 1:
        figures = ["time", "L1 peak"]
        sections.append(heat("map", "Two settings", MAP_NOTE, source="operations", across=axes[-1], down=axes[0],
                             figures=figures, axes=axes))  # fmt: skip
    note = f"The {len(shown)} fastest of {len(own)} points." if len(shown) < len(own) else ""
    fields, ops = list(_fields(result, several)), [[at] for at in range(len(shown))]
    sections.append(table("operations", "Points", fields, shown, ops=ops, note=note))
    return View(name=layer, sections=sections)


def _value(point: Shown, name: str) -> str:
    return point.row.device if name == DEVICE else word_of(point.labels.get(name))


def _verdict(best: Best, own: Sequence[Shown]) -> Section:
    row, saved, runs = best.row, _saved(best), sum(point.row.cycles is not None for point in own)
    facts: list[tuple[str, Cell, str]] = [
        ("fastest", best.nanoseconds, "ns"),
        ("as given", best.given.nanoseconds if best.given else None, "ns"),
        ("L1 peak", row.l1_peak_bytes if row else None, "B"),
        ("least L1 peak", min((point.row.l1_peak_bytes or 0 for point in own if point.row.cycles), default=None), "B"),
        ("error expected", row.cycles_error_share if row else None, "share"),
        ("points", len(own), "number"),
        ("points that run", runs, "number"),
        ("different plans", len({point.row.plan_key for point in own if point.row.plan_key}), "number"),
    ]
    asked = {"layer": best.layer, "fastest on": best.device}
    if row is None or best.nanoseconds is None:
        return verdict("bad", f"None of {counted(len(own), 'point')} runs: {best.reason}", facts, asked)
    text = f"The fastest of {counted(runs, 'point')} that run takes {time(best.nanoseconds)}"
    if saved is None:
        return verdict("known", f"{text}.", facts, asked)
    if saved < WORTH:
        return verdict("good", f"{text}; the given configuration is as fast or almost.", facts, asked)
    return verdict("slow", f"{text}, {1 / (1 - saved):,.1f} times as fast as the given configuration.", facts, asked)


def _gain(best: Best, prefix: str = "") -> Section:
    if best.row is None or best.labels is None:
        return gain(f"{prefix}No point runs.", best.reason)
    words, saved = best.row.arguments or words_of(best.labels, given=best.is_given), _saved(best)
    on = f"On {best.device}, of {counted(best.points, 'point')} there."
    if best.is_given:
        return gain(f"{prefix}No point is faster than the given configuration.", on, arguments_of(best.row))
    how_much = f"Saves {percent(saved)}: " if saved else ""
    return gain(f"{prefix}{how_much}{words}", on, arguments_of(best.row))


def _scatter(shown: Sequence[Shown]) -> Section:
    placed = [(at, point.row.nanoseconds, point.row.l1_peak_bytes) for at, point in enumerate(shown)]
    known = [(at, x, y) for at, x, y in placed if x is not None and y is not None]
    if not known:
        return lines("picture", SCATTER, ["No point runs, so there is nothing to draw."])
    devices = dict.fromkeys(shown[at].row.device for at, _, _ in known)
    fronts = []
    for device in devices:
        costs = [(x, y) for at, x, y in known if shown[at].row.device == device]
        fronts.append((device if len(devices) > 1 else "", [costs[place] for place in front(costs)]))
    return points(
        "picture",
        SCATTER,
        SCATTER_NOTE,
        x=axis_around("kernel time", "ns", [x for _, x, _ in known]),
        y=axis_around("L1 peak of a core", "B", [y for _, _, y in known]),
        source="operations",
        marks=[(x, y, shown[at].row.device, at) for at, x, y in known],
        lines=fronts,
    )


def _setting(name: str) -> Field[Shown]:
    return Field(name, lambda point: _value(point, name))


def _fields(result: SweepResult, several: bool) -> Iterator[Field[Shown]]:
    """The columns of a layer's points, with a device column if there are `several` devices."""
    yield Field("#", lambda point: point.number, "number")
    yield Field("settings", lambda point: point.name)
    if several:
        yield Field(DEVICE, lambda point: point.row.device, "operation")
    yield from FIGURES
    yield from map(_setting, result.axes)
    yield Field("reason", lambda point: short(point.row.error.partition("\n")[0], LONGEST_REASON))


FIGURES: Final[Sequence[Field[Shown]]] = (
    Field("verdict", lambda point: point.row.verdict.value),
    Field("time", lambda point: point.row.nanoseconds, "ns"),
    Field("L1 peak", lambda point: point.row.l1_peak_bytes, "B"),
    Field("headroom", lambda point: point.row.l1_headroom_bytes, "B"),
    Field("as given", lambda point: "yes" if point.given else ""),
    Field("arguments", lambda point: arguments_of(point.row), "code"),
    Field("cycles", lambda point: point.row.cycles, "cycles"),
    Field("error expected", lambda point: point.row.cycles_error_share, "share"),
    Field("not timed", lambda point: point.row.untimed_operations or None, "number"),
    Field("shards", lambda point: point.row.shard_layout or ""),
    Field("DRAM read", lambda point: point.row.dram_read_bytes, "B"),
    Field("DRAM written", lambda point: point.row.dram_written_bytes, "B"),
    Field("network", lambda point: point.row.noc_bytes, "B"),
    Field("energy in J, unvalidated", lambda point: point.row.energy_joules, "figure"),
    Field("PCC", lambda point: point.row.pcc, "figure"),
)
BESTS: Final[Sequence[Field[Best]]] = (
    Field("layer", lambda best: best.layer, "view"),
    Field(DEVICE, lambda best: best.device, "operation"),
    Field("fastest", lambda best: best.nanoseconds, "ns"),
    Field("as given", lambda best: best.given.nanoseconds if best.given else None, "ns"),
    Field("saves", _saved, "share"),
    Field("settings", lambda best: best.reason if best.labels is None else words_of(best.labels, given=best.is_given)),
    Field("L1 peak", lambda best: best.row.l1_peak_bytes if best.row else None, "B"),
    Field("points", lambda best: best.points, "number", total=True),
    Field("points that run", lambda best: best.fitting, "number", total=True),
    Field("arguments", lambda best: arguments_of(best.row) if best.row else "", "code"),
)


def _overview(result: SweepResult, layers: Sequence[str]) -> View:
    """The view of several layers together."""
    bests = [_fastest(result, layer) for layer in layers]
    chosen = max(bests, key=_saved_nanoseconds)
    sections = [
        _verdict_of_all(result, bests),
        _gain(chosen, f"{chosen.layer}: ") | {"view": chosen.layer},
        bars("picture", "Fastest point by layer", PALER, source="fastest", label="layer", figures=BARS),
        table("fastest", "Fastest points", BESTS, bests),
    ]
    if len({row.device for row in result.rows}) > 1:
        axes, figures = ["layer", DEVICE], ["fastest", "L1 peak"]
        sections.append(heat("map", "Layers and devices", "The fastest point of each layer on each device.",
                             source="layers", across=DEVICE, down="layer", figures=figures, axes=axes))  # fmt: skip
        sections.append(table("layers", "Fastest points by device", BESTS, result.best()))
    return View(name=ALL, sections=sections)


def _saved_nanoseconds(best: Best) -> float:
    """The time in ns that the fastest point saves over the given config; negative if either does not run."""
    given = best.given.own_nanoseconds if best.given else None
    return given - best.nanoseconds if given and best.nanoseconds is not None else -1.0


def _verdict_of_all(result: SweepResult, bests: Sequence[Best]) -> Section:
    runs = [best for best in bests if best.nanoseconds is not None]
    together = sum(best.nanoseconds or 0 for best in runs)
    saved = sum(max(0.0, _saved_nanoseconds(best)) for best in runs)
    worth = saved >= WORTH * (together + saved) > 0
    text = f"The fastest points of {len(runs)} of {counted(len(bests), 'layer')} take {time(together)} together"
    if worth:
        text += f", {(together + saved) / together:,.1f} times as fast as the given configurations"
    facts: list[tuple[str, Cell, str]] = [("fastest together", together, "ns"), ("saved together", saved or None, "ns")]
    facts += [(f"points: {what}", count, "number") for what, count in result.verdicts.items()]
    state = "bad" if len(runs) < len(bests) else "slow" if worth else "good"
    return verdict(state, f"{text}.", [*facts, ("different plans", result.plans, "number")], {})
