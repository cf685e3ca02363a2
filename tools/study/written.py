"""The study in words and pictures: the tables of docs/study.md and the charts beside them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tools.study.measure import CARDS, COST, SPACE, Studied, Study
from ttsim.study.design import DesignPoint
from ttsim.study.plots import Bars, Chart, Dot, Scatter, to_svg
from ttsim.study.tune.tuned import Choice

INVENTED: Final = "the invented device"
HEADINGS: Final = (
    "layer", "ttnn's default", "the model's", "tuned", "gain", "by phases: the model's", "tuned", "gain",
    "L1 peak, KiB", "error",
)  # fmt: skip
SHOWN_GAINS: Final = 2  # of a device, the largest
SHOWN_REASONS: Final = 3
CONTENDED: Final = "vanilla_unet.upconv1"  # the layer whose front of time and L1 is drawn


def tables(study: Study) -> str:
    """What stands between the marks of the document."""
    lines = [*_machines(study), *_sums(study)]
    for device in devices(study):
        own = [layer for layer in study.layers if layer.device == device]
        lines += [f"### {named(device)}", "", *_header(HEADINGS), *map(row, own), sums(own), "", *_gains(own)]
    return "\n".join(lines).rstrip("\n") + "\n"


def charts(study: Study) -> Mapping[str, str]:
    """Pictures as SVG, by the names of their files."""
    bars: list[Chart] = [_bars(study, device) for device in devices(study)]
    return {"study-front.svg": to_svg([_machine_front(study), _layer_front(study)]), "study-layers.svg": to_svg(bars)}


def devices(study: Study) -> tuple[str, ...]:
    """The devices of a study, in order."""
    return tuple(dict.fromkeys(layer.device for layer in study.layers))


def named(device: str) -> str:
    """What the study calls a device."""
    return device if device in CARDS else INVENTED


def row(layer: Studied) -> str:
    """A layer's line in the table of its device."""
    cycles = ["does not fit" if choice is None else f"{choice.cycles:,}" for choice in layer.choices]
    _, given, tuned, _, by_phases, _ = layer.choices
    shown = (given, tuned, by_phases)
    peaks = ("none" if choice is None else f"{choice.l1_peak_bytes / 1024:,.0f}" for choice in shown)
    error = "unknown" if layer.error_share is None else f"{layer.error_share:.1%}"
    gains = [_gain(given, tuned), _gain(given, by_phases)]
    return _line([layer.layer, *cycles[:3], gains[0], *cycles[3:5], gains[1], ", ".join(peaks), error])


def sums(layers: Sequence[Studied]) -> str:
    """The last line of a table: all layers together, of a column in which all run."""
    cycles = [_sum(layers, at, "cycles") for at in range(5)]
    shown = ["not all fit" if value is None else f"{value:,}" for value in cycles]
    given, *tuned = (cycles[at] for at in (1, 2, 4))
    gains = ["" if None in (given, to) else f"{given / to:.2f}" for to in tuned]
    return _line(["all", *shown[:3], gains[0], *shown[3:], gains[1], "", ""])


def _gain(before: Choice | None, after: Choice | None) -> str:
    """How many times as fast; empty where either does not fit."""
    return "" if before is None or after is None else f"{before.cycles / after.cycles:.2f}"


def _sum(layers: Sequence[Studied], at: int, name: str) -> Any:
    """The sum of a figure of one choice of all layers; None if not all have it."""
    choices = [layer.choices[at] for layer in layers]
    return None if None in choices else sum(getattr(choice, name) for choice in choices)


def _machines(study: Study) -> Iterator[str]:
    """The front of machines, the invented one among them."""
    machines = study.machines
    names = [axis.name for axis in machines.axes]
    yield from _header([*(f"`{name}`" for name in names), "time, us", "error", COST, ""])
    for at in machines.front:
        point = machines.points[at]
        text = INVENTED if point == study.invented else ""
        yield _line([*(point.values[name] for name in names), *_figures(point), text])
    base = next(point for point in machines.points if point.device == machines.base)
    yield _line([*(base.values[name] for name in names), *_figures(base), machines.base])
    strongest = ", ".join(f"`{point.figure}` {point.time_elasticity:+.3f}" for point in machines.sensitivity[:5])
    yield from ("", f"The strongest figures of {machines.base}, log(time) over log(figure): {strongest}.")
    yield from (f"{len(machines.points)} machines; {INVENTED} is `{study.invented.device}`.", "")


def _figures(point: DesignPoint) -> list[str]:
    time, error = (point.nanoseconds or 0) / 1000, point.cycles_error_share or 0
    return [f"{time:,.1f}", f"{error:.1%}", f"{point.costs[COST]:.2f}"]


def _sums(study: Study) -> Iterator[str]:
    """All layers together on each device, in time, since clocks differ."""
    heads = ("device", "the model's configs, us", "tuned", "by phases, the model's configs", "by phases, tuned")
    yield from _header([*heads, "the faster of both for each layer"])
    for device in devices(study):
        own = [layer for layer in study.layers if layer.device == device]
        times = [_sum(own, at, "nanoseconds") for at in range(1, 6)]
        shown = ("not all fit" if time is None else f"{time / 1000:,.1f}" for time in times)
        yield _line([named(device), *shown])
    yield ""


def _gains(layers: Sequence[Studied]) -> Iterator[str]:
    """The largest gains of a device over the models' configs, with the tuner's reasons."""
    gained = [(layer.frame.gain_over_given or 0.0, layer) for layer in layers]
    for gain, layer in sorted(gained, key=lambda pair: -pair[0])[:SHOWN_GAINS]:
        if layer.frame.best is None:
            continue
        yield f"{layer.layer}, {gain:.2f} times as fast as its model has it:"
        yield ""
        yield from (f"* {reason}" for reason in layer.reasons[:SHOWN_REASONS])
        yield from ("", "```text", layer.frame.best.arguments, "```", "")


def _machine_front(study: Study) -> Scatter:
    """All machines that run all layers, by cost and time."""
    dots = tuple(
        Dot(x=point.costs[COST], y=point.nanoseconds / 1000, name=point.device, series="machines")
        for point in study.machines.points
        if point.nanoseconds is not None
    )
    unit = f"area in cores of {study.machines.base}"
    return Scatter(title=f"Machines of {SPACE.name}: time against area", x_name=unit, y_name="time, us", dots=dots)


def _layer_front(study: Study) -> Scatter:
    """The tuner's results for one layer, by L1 and time."""
    results = [
        (named(layer.device), result)
        for layer in study.layers
        if layer.layer == CONTENDED
        for result in layer.frame.front
    ]
    return Scatter(
        title=f"{CONTENDED}: time against memory, ttnn's lowering",
        x_name="L1 peak of a core, KiB",
        y_name="time, us",
        dots=tuple(
            Dot(x=result.l1_peak_bytes / 1024, y=result.nanoseconds / 1000, name=result.arguments, series=device)
            for device, result in results
        ),
    )


def _bars(study: Study, device: str) -> Bars:
    """The remaining share of each layer's cycles."""
    own = [layer for layer in study.layers if layer.device == device]
    series = {"tuned": 2, "by phases, tuned": 4}
    return Bars(
        title=f"{named(device)}: cycles that are left",
        value_name="of the cycles with the model's config, %",
        groups=tuple(layer.layer.partition(".")[2] for layer in own),
        series=tuple(
            (name, tuple(_left(layer.frame.given, layer.choices[at]) for layer in own)) for name, at in series.items()
        ),
    )


def _left(before: Choice | None, after: Choice | None) -> float | None:
    return None if before is None or after is None else 100 * after.cycles / before.cycles


def _header(names: Sequence[str]) -> tuple[str, str]:
    return _line(names), f"|{'---|' * len(names)}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
