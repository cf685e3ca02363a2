"""What the study measures: a machine that a design finds, and each layer on each device in all ways to make it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from device.errors import ArgumentError
from ops.sensitivity.changes import load_spec
from ttsim.api.conv import conv_transpose2d
from ttsim.recording.profiling import estimate_cycles
from ttsim.report.cycle_report import CycleReport
from ttsim.runtime.types.layer import Layer
from ttsim.study.design import DesignPoint, DesignResult, design
from ttsim.study.executor import workers
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import Placed, Settings, make_inputs, place
from ttsim.study.tune.tune import EFFORT, differences, tune
from ttsim.study.tune.tuned import Choice, Tuned

SPACE: Final = Path(__file__).resolve().parents[2] / "docs" / "study-machine.toml"
CARDS: Final = ("wormhole_n150", "blackhole_p150")
COST: Final = "area"
LAYERS: Final = read_layers(DEFAULT_LAYERS)
KEPT: Final = ("output_layout",)  # the output of a layer stays in tiles, or in rows
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
    machines = design(SPACE, processes=1)
    invented = invented_of(machines)
    pairs = [(layer, device) for device in (*CARDS, invented.device) for layer in LAYERS]
    with workers(processes=processes, scheduler=None) as team, team.start() as executor:
        layers = tuple(executor.map(studied, *zip(*pairs, strict=True)))
    return Study(machines=machines, invented=invented, layers=layers)


def invented_of(machines: DesignResult) -> DesignPoint:
    """The fastest machine that costs no more than the card it was varied from."""
    base = next((point for point in machines.points if point.device == machines.base and point.nanoseconds), None)
    if base is None:
        raise ArgumentError(f"study: the space of {SPACE.name} has to hold {machines.base} itself, and it must run all")
    front = (machines.points[at] for at in machines.front)
    return next(point for point in front if point.costs[COST] <= base.costs[COST])


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
