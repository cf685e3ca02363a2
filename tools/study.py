"""The worked study of docs/explanation/study.md: eight layers of two U-Nets, on two cards and an invented device.

usage: python -m tools.study [--write] [--processes N]

Prints the tables; with --write they go into the document, and its charts beside it. Takes some minutes.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import hypot
from pathlib import Path
from typing import Any, Final

from device.errors import ArgumentError
from ops.sensitivity.changes import load_spec
from tools.charts import Bars, Chart, Dot, Scatter, to_svg
from tools.command import run_tool, tool_parser
from tools.zeros import updated
from ttsim.api.convolutions import conv_transpose2d
from ttsim.recording.profiling import estimate_cycles
from ttsim.report.cycle_report import CycleReport
from ttsim.report.cycles import binding, bound_cycles
from ttsim.runtime.types.layer import Layer
from ttsim.study.design import design
from ttsim.study.design_result import DesignPoint, DesignResult
from ttsim.study.executor import workers
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import Placed, Settings, make_inputs, place
from ttsim.study.tune.tune import EFFORT, differences, tune
from ttsim.study.tune.tuned import Choice, Tuned

SPACE: Final = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "study-machine.toml"
CARDS: Final = ("wormhole_n150", "blackhole_p150")
COST: Final = "area"
LAYERS: Final = read_layers(DEFAULT_LAYERS)
KEPT: Final = ("output_layout",)  # the output of a layer stays in tiles, or in rows
BETTER: Final = 3  # machines of at most the card's area
PHASE_EFFORT: Final = 100  # bounds know nothing of phases, so that a search passes over nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Studied:
    """A layer on a device."""

    layer: str
    device: str  # The device as text
    frame: Tuned  # What the tuner finds in ttnn's lowering; "given" is the model's config
    phase: Tuned  # The same by output phases
    # How far the cycles of the best in ttnn's lowering are to be expected off; None if unknown
    error_share: float | None
    reasons: tuple[str, ...]  # Why that is faster than the model's config, in words; empty if either does not run
    bound: Counter[str]  # Cycles of the tuned config by the stage that binds them

    @property
    def choices(self) -> tuple[Choice | None, ...]:
        """The default of ttnn, the model's config, tuned; by phases the model's config, tuned; the faster of both."""
        frame, phase = self.frame, self.phase
        tuned = [choice for choice in (frame.best, phase.best) if choice is not None]
        fastest = min(tuned, key=lambda choice: choice.cycles, default=None)
        return frame.default, frame.given, frame.best, phase.given, phase.best, fastest


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """All that is measured."""

    machines: DesignResult  # The space of the invented device
    invented: DesignPoint  # The one that was taken
    layers: tuple[Studied, ...]  # Each layer on each device, device by device


def study(*, processes: int | None) -> Study:
    """Everything, in minutes; so many processes work at it, None for one on each core."""
    machines = design(SPACE, processes=processes)
    invented = invented_of(machines)
    pairs = [(layer, device) for device in (*CARDS, invented.device) for layer in LAYERS]
    with workers(processes=processes, scheduler=None) as team, team.start() as executor:
        layers = tuple(executor.map(studied, *zip(*pairs, strict=True)))
    return Study(machines=machines, invented=invented, layers=layers)


def invented_of(machines: DesignResult) -> DesignPoint:
    """The fastest machine that costs no more than the card it was varied from."""
    return better_of(machines)[0]


def base_of(machines: DesignResult) -> DesignPoint:
    """The card that the machines were varied from; raises ArgumentError if it is none of them, or does not run all."""
    base = next((point for point in machines.points if point.device == machines.base and point.nanoseconds), None)
    if base is None:
        raise ArgumentError(f"study: the space of {SPACE.name} has to hold {machines.base} itself, and it must run all")
    return base


def better_of(machines: DesignResult) -> list[DesignPoint]:
    """The fastest machines that cost no more than the card they were varied from, the fastest first."""
    most = base_of(machines).costs[COST]
    run = [point for point in machines.points if point.nanoseconds is not None and point.costs[COST] <= most]
    return sorted(run, key=lambda point: (point.nanoseconds, point.costs[COST]))[:BETTER]


def studied(layer: Layer, device: str) -> Studied:
    """A layer on a device."""
    frame, phase = (tuned(layer, device, lowering) for lowering in ("zero_insertion", "phase"))
    before, after = (
        None if result is None else report_on(layer, device, result) for result in (frame.given, frame.best)
    )
    return Studied(
        layer=layer.name,
        device=device,
        frame=frame,
        phase=phase,
        error_share=None if after is None else after.total.error.share,
        reasons=() if before is None or after is None else differences(after, before),
        bound=Counter() if after is None else bound_cycles(after.total),
    )


def tuned(layer: Layer, device: str, lowering: str) -> Tuned:
    """What the tuner finds in one lowering, which it leaves as it is."""
    effort = EFFORT if lowering == "zero_insertion" else PHASE_EFFORT
    placed = _placed(layer, device)
    with placed.device:
        return tune(conv_transpose2d, keep=KEPT, effort=effort, name=layer.name, lowering=lowering, **placed.arguments)


def report_on(layer: Layer, device: str, choice: Choice) -> CycleReport:
    """The cycles of a choice."""
    placed = _placed(layer, device)
    with placed.device:
        return estimate_cycles(conv_transpose2d, **(placed.arguments | dict(choice.options())))


def _placed(layer: Layer, device: str) -> Placed:
    settings = Settings(spec=load_spec(device), values="off", suggestions=False)
    return place(layer, make_inputs(layer, values=False), settings)


INVENTED: Final = "the invented device"
HEADINGS: Final = (
    "layer", "ttnn's default", "the model's", "tuned", "gain", "by phases: the model's", "tuned", "gain",
    "L1 peak, KiB", "error",
)  # fmt: skip
SHOWN_GAINS: Final = 1  # of a device, the largest
SHOWN_REASONS: Final = 1
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
    base = base_of(machines)
    yield _line([*(base.values[name] for name in names), *_figures(base), machines.base])
    strongest = ", ".join(f"`{point.figure}` {point.time_elasticity:+.3f}" for point in machines.sensitivity[:5])
    yield from ("", f"The strongest figures of {machines.base}, log(time) over log(figure): {strongest}.")
    yield from (f"{len(machines.points)} machines; {INVENTED} is `{study.invented.device}`.", "")
    yield from _header([*(f"`{name}`" for name in names), "times as fast", "parted by", "errors of both", ""])
    for point in better_of(machines):
        gain, error = _surely(point, base)
        text = "parted" if gain - 1 > error else "within the errors"
        yield _line([*(point.values[name] for name in names), f"{gain:.2f}", f"{gain - 1:.1%}", f"{error:.1%}", text])
    yield ""


def _surely(point: DesignPoint, base: DesignPoint) -> tuple[float, float]:
    """How many times as fast a machine is as the base, and the expected error of this if errors had nothing in common.

    Errors of one model on the same layers mostly go together, so that this is more than is to be expected.
    """
    gain = (base.nanoseconds or 0) / (point.nanoseconds or 1)
    return gain, hypot(point.cycles_error_share or 0, base.cycles_error_share or 0)


def _figures(point: DesignPoint) -> list[str]:
    time, error = (point.nanoseconds or 0) / 1000, point.cycles_error_share or 0
    return [f"{time:,.1f}", f"{error:.1%}", f"{point.costs[COST]:.2f}"]


def _sums(study: Study) -> Iterator[str]:
    """All layers together on each device, in time, since clocks differ."""
    heads = ("device", "the model's configs, us", "tuned", "by phases, the model's configs", "by phases, tuned")
    yield from _header([*heads, "the faster of both for each layer", "what binds, tuned"])
    for device in devices(study):
        own = [layer for layer in study.layers if layer.device == device]
        times = [_sum(own, at, "nanoseconds") for at in range(1, 6)]
        shown = ("not all fit" if time is None else f"{time / 1000:,.1f}" for time in times)
        yield _line([named(device), *shown, _binding(own)])
    yield ""


def _binding(layers: Sequence[Studied]) -> str:
    """The stages that bind most cycles of the tuned layers, with their shares."""
    return binding(sum((layer.bound for layer in layers), Counter[str]()))


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
    unit = "area, mm2, mostly guessed"
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


DOCUMENT: Final = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "study.md"
BEGIN: Final = "<!-- python -m tools.study --write -->\n"


def main() -> None:
    """Print the tables, or write them and the charts."""
    parser = tool_parser("tools.study", __doc__)
    parser.add_argument("--write", action="store_true", help=f"renew {DOCUMENT.name} and its charts")
    parser.add_argument("--processes", type=int, metavar="N", help="how many (default: one on each core)")
    options = parser.parse_args()
    results = study(processes=options.processes)
    if not options.write:
        print(tables(results), end="")
        return
    text = updated(DOCUMENT.read_text(encoding="utf-8"), f"\n{tables(results)}\n", BEGIN)
    DOCUMENT.write_text(text, encoding="utf-8")
    for name, picture in charts(results).items():
        (DOCUMENT.parent / name).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(run_tool("tools.study", main))
