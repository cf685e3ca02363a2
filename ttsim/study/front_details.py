"""What to change next on machines of a front, and where the fastest one gains and loses against the base device."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from math import fsum

from device.errors import TTSimError
from device.spec.device_spec import DeviceSpec
from ops.passes.sensitivity import Sensitivity, machine_figures, sensitivities
from ttsim.recording.profiling import cycles_of, timed_call
from ttsim.report.comparison import Pair, compare, kind_of
from ttsim.report.cycle_report import cycle_report
from ttsim.report.reported import reported_of
from ttsim.runtime.traces import RanCall
from ttsim.runtime.types.layer import Layer
from ttsim.study.ask.values import arguments_of
from ttsim.study.design_result import (
    NOT_LOOKED,
    STRONGEST,
    DesignPoint,
    FieldEffect,
    OperationSides,
    SpaceStep,
)
from ttsim.study.evaluate import Point
from ttsim.study.layers.run import call, make_inputs, place
from ttsim.study.machine_rows import Known, row_on
from ttsim.study.networks.replay import RecordedNetwork, read_changes, replay
from ttsim.study.space import Design, DesignAxis
from ttsim.study.store import Row

MOST_MACHINES = 8  # of the front, the fastest first, whose fields are looked at: each costs some runs of all its calls


def calls_on(layer: Layer | RecordedNetwork, spec: DeviceSpec, row: Row | None = None) -> list[RanCall]:
    """The calls of a layer or a network on a device, with the configs of its row there; empty if it does not fit."""
    with suppress(TTSimError):
        if isinstance(layer, RecordedNetwork):
            return replay(layer, spec, read_changes(row.changes if row else {})).profile.ran
        placed = place(layer, make_inputs(layer, values=False), Point(layer=layer, spec=spec))
        placed.arguments.update(arguments_of(row.arguments if row else ""))
        with placed.device:
            return call(placed).profile.calls
    return []


class MachineCalls:
    """The calls of every layer on machines of a space, at the configs that were found; each is run once.

    Args:
        space: The space.
        points: Its machines.
        specs: The device of each machine; a text where there is none.
        known: The rows of each layer.
    """

    def __init__(
        self,
        space: Design,
        points: Sequence[DesignPoint],
        specs: Sequence[DeviceSpec | str],
        known: Sequence[Known],
    ) -> None:
        self.space, self.points, self.specs, self.known = space, points, specs, known
        self._calls: dict[int, list[list[RanCall]]] = {}

    def on(self, at: int) -> tuple[DeviceSpec, list[list[RanCall]]]:
        """The device of a machine that runs all layers, and the calls of each layer."""
        spec, point = self.specs[at], self.points[at]
        if isinstance(spec, str):
            raise AssertionError("a machine that is none runs no layer")
        if at not in self._calls:
            each = zip(self.space.work, self.known, strict=True)
            self._calls[at] = [calls_on(layer, spec, row_on((spec, point.values), known)) for layer, known in each]
        return spec, self._calls[at]


def strongest_fields(
    machines: MachineCalls, front: Sequence[int], base: Sequence[Sensitivity]
) -> Iterator[FieldEffect]:
    """The effects of the fields of the space, and of the strongest figures of the base, on machines of a front.

    Args:
        machines: The machines of the space.
        front: Numbers of the machines of the front, the fastest first.
        base: Sensitivities of the base device, the strongest first.
    """
    varied = [axis for axis in machines.space.axes if len(axis.values) > 1]
    named = dict.fromkeys((*(axis.name for axis in varied), *(effect.figure for effect in base[:STRONGEST])))
    for at in front[:MOST_MACHINES]:
        figures = {effect.figure: effect for effect in _held(machines, at, named)}
        for name in named:
            axis = next((axis for axis in varied if axis.name == name), None)
            steps = _steps(axis, at, machines.points) if axis else ()
            if name in figures or steps:
                yield _effect(at, name, machines.points[at], figures.get(name), steps)


def _held(machines: MachineCalls, at: int, named: Iterable[str]) -> tuple[Sensitivity, ...]:
    """The effects of named figures on a machine, with the configs that were found and the plans held."""
    spec, calls = machines.on(at)
    known = set(machine_figures(spec))
    ran = [
        (outcome.count, own)
        for outcome, of_layer in zip(machines.points[at].layers, calls, strict=True)
        for own in of_layer
    ]
    paths = [name for name in named if name in known]
    return sensitivities(spec, lambda other: fsum(count * cycles_of(own, other) for count, own in ran), paths)


def _effect(
    at: int, name: str, point: DesignPoint, held: Sensitivity | None, steps: tuple[SpaceStep, ...]
) -> FieldEffect:
    return FieldEffect(
        machine=at,
        name=name,
        value=point.values.get(name) or ("" if held is None else f"{held.value:.7g}"),
        varied=name in point.values,
        time_elasticity=None if held is None else held.time_elasticity,
        doubled_time=None if held is None else held.doubled_time,
        halved_time=None if held is None else held.halved_time,
        steps=steps,
    )


def _steps(axis: DesignAxis, at: int, points: Sequence[DesignPoint]) -> tuple[SpaceStep, ...]:
    """The machines with the value before and the value after in the space, and all else the same."""
    point = points[at]
    place = axis.values.index(point.values[axis.name])
    beside = [axis.values[other] for other in (place - 1, place + 1) if 0 <= other < len(axis.values)]
    machines = (
        (value, next((own for own in points if own.values == {**point.values, axis.name: value}), None))
        for value in beside
    )
    return tuple(
        SpaceStep(value=value, time=own.nanoseconds and own.nanoseconds / (point.nanoseconds or 1.0))
        for value, own in machines
        if own is not None and own.reason != NOT_LOOKED
    )


def operation_sides(machines: MachineCalls, front: Sequence[int]) -> Iterator[OperationSides]:
    """The device operations of each layer on the base device and on the fastest machine, matched in order.

    Arguments as of `strongest_fields`.
    """
    points, name = machines.points, machines.space.base.name
    base = next((at for at, point in enumerate(points) if point.device == name), None)
    if base is None or not front or base == front[0] or points[base].nanoseconds is None:
        return
    (spec, before), (fast, after) = machines.on(base), machines.on(front[0])
    for outcome, *calls in zip(points[front[0]].layers, before, after, strict=True):
        reports = (
            cycle_report([timed_call(own, on) for own in each], on)
            for each, on in zip(calls, (spec, fast), strict=True)
        )
        for number, pair in enumerate(compare(*map(reported_of, reports)).pairs):
            times = [None if side is None else side.nanoseconds for side in (pair.before, pair.after)]
            yield _sides(outcome.layer, outcome.count, number, pair, times)


def _sides(layer: str, count: int, place: int, pair: Pair, times: Sequence[float | None]) -> OperationSides:
    bound = [
        "" if side is None else next((text for (what, _), text in side.figures.items() if what == "bound"), "")
        for side in (pair.before, pair.after)
    ]
    cycles = [None if side is None else side.cycles for side in (pair.before, pair.after)]
    known = None not in times or not pair.in_both
    return OperationSides(
        layer=layer,
        count=count,
        position=place,
        operation=kind_of(pair.name),
        before_nanoseconds=times[0],
        after_nanoseconds=times[1],
        more_nanoseconds=(times[1] or 0.0) - (times[0] or 0.0) if known else None,
        before_cycles=cycles[0],
        after_cycles=cycles[1],
        before_bound=bound[0],
        after_bound=bound[1],
        differences=", ".join(text for what, text in pair.causes if what != "bound"),
    )
