"""Effects of fields on machines of a front, and the fastest machine compared with the base device by operation."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import fsum
from typing import NamedTuple

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
from ttsim.study.networks.replay import RecordedNetwork, read_changes, replay
from ttsim.study.space import Design, DesignAxis, Run
from ttsim.study.store import Row

MOST_MACHINES = 8  # of the front, the fastest first, whose fields are looked at: each costs some runs of all its calls


def calls_on(layer: Layer | RecordedNetwork, spec: DeviceSpec, row: Row | None = None) -> list[RanCall]:
    """The calls of a layer or a network on a device, with the configs of its row; empty if it does not fit."""
    with suppress(TTSimError):
        if isinstance(layer, RecordedNetwork):
            return replay(layer, spec, read_changes(row.changes if row else {})).profile.ran
        placed = place(layer, make_inputs(layer, values=False), Point(layer=layer, spec=spec))
        placed.arguments.update(arguments_of(row.arguments if row else ""))
        with placed.device:
            return call(placed).profile.calls
    return []


class Judged(NamedTuple):
    """A machine with the rows of all layers, which give the configs; without rows, the layers' own configs are used."""

    spec: DeviceSpec
    rows: tuple[Row | None, ...]

    def calls(self, runs: Sequence[Run]) -> list[list[RanCall]]:
        """The calls of each layer."""
        return [calls_on(layer, self.spec, row) for (layer, _), row in zip(runs, self.rows, strict=True)]


def held_effects(runs: Sequence[Run], machine: Judged, names: Sequence[str] | None = None) -> tuple[Sensitivity, ...]:
    """The effects of named or all figures on the time of all layers on a machine, with fixed configs and plans."""
    known = machine_figures(machine.spec)
    each = zip(runs, machine.calls(runs), strict=True)
    ran = [(count, own) for (_, count), calls in each for own in calls]
    paths = None if names is None else [name for name in names if name in known]
    return sensitivities(machine.spec, lambda spec: fsum(count * cycles_of(own, spec) for count, own in ran), paths)


def fields_looked_at(space: Design, base: Sequence[Sensitivity]) -> list[str]:
    """The fields that a space varies, and the strongest figures of its base, ordered by sensitivity."""
    varied = (axis.name for axis in space.axes if len(axis.values) > 1)
    return list(dict.fromkeys((*varied, *(effect.figure for effect in base[:STRONGEST]))))


def strongest_fields(
    space: Design, points: Sequence[DesignPoint], names: Sequence[str], held: Mapping[int, Sequence[Sensitivity]]
) -> Iterator[FieldEffect]:
    """The effects of named fields on machines of a front.

    Args:
        space: The space.
        points: Its machines.
        names: Fields of devices.
        held: What `held_effects` returned for machines, by their numbers.
    """
    varied = {axis.name: axis for axis in space.axes if len(axis.values) > 1}
    for at, effects in held.items():
        figures = {effect.figure: effect for effect in effects}
        for name in names:
            steps = _steps(varied[name], at, points) if name in varied else ()
            if name in figures or steps:
                yield _effect(at, name, points[at], figures.get(name), steps)


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
    """The machines with the next smaller and next larger value of a field, and all other fields the same."""
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


def operation_sides(runs: Sequence[Run], base: Judged, fastest: Judged) -> Iterator[OperationSides]:
    """The device operations of each layer on the base device and on the fastest machine, matched in order."""
    for (layer, count), *calls in zip(runs, base.calls(runs), fastest.calls(runs), strict=True):
        reports = (
            cycle_report([timed_call(own, machine.spec) for own in each], machine.spec)
            for each, machine in zip(calls, (base, fastest), strict=True)
        )
        for number, pair in enumerate(compare(*map(reported_of, reports)).pairs):
            times = [None if side is None else side.nanoseconds for side in (pair.before, pair.after)]
            yield _sides(layer.name, count, number, pair, times)


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
