"""ttsim.design: every machine of a space, its time and its costs, and which of them no other is better than."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from functools import partial
from itertools import product
from math import fsum
from pathlib import Path
from typing import TypeAlias

from device.errors import ArgumentError, DeviceError, TTSimError, shown
from device.spec.device_spec import DeviceSpec
from ops.passes.sensitivity import Sensitivity, sensitivities
from ops.sensitivity.fields import fields_of
from ttsim.recording.timing import cycles_of
from ttsim.runtime.traces import RanCall
from ttsim.study.design.collapse import LayerRows, Machine, rows_of
from ttsim.study.design.read import read_design
from ttsim.study.design.result import AxisEffect, DesignPoint, DesignResult, LayerOutcome
from ttsim.study.design.space import Design
from ttsim.study.executor.crew import crew_of
from ttsim.study.front import front
from ttsim.study.layers.run import Settings, call, make_inputs, place
from ttsim.study.points.row import Row, Verdict
from ttsim.types.layer import Layer

Watch: TypeAlias = Callable[[int], Callable[[], object]]


def design(file: str | Path | Design, *, processes: int | None = 1, watch: Watch | None = None) -> DesignResult:
    """The Pareto front of time and costs over a space of machines.

    Args:
        file: A TOML file of a device, fields to vary, costs and layers, as docs/design-a-machine.md describes it; or
            a `Design`.
        processes: How many work, each at a layer; None for one on each core, where there is much to do. A script that
            asks for more than one has `if __name__ == "__main__":`.
        watch: Gets the number of layers, and gives what is called when one is done on all machines.

    Raises:
        ArgumentError: The file says something that is no design, or a cost cannot be worked out.
        SpecError: A device or a field is unknown, or a value is none of the field.
        DeviceError: A process died.
        OSError: A file cannot be read.
    """
    if not isinstance(file, str | Path | Design):
        raise ArgumentError(f"design: give the path of a TOML file, not {shown(file)}")
    space = file if isinstance(file, Design) else read_design(Path(file))
    values = [dict(zip((axis.name for axis in space.axes), one, strict=True)) for one in _combinations(space)]
    devices = [space.device(one) for one in values]
    machines = [Machine(spec, one) for spec, one in zip(devices, values, strict=True) if not isinstance(spec, str)]
    costs = [_costs(space, one.spec) for one in machines]
    found = _rows(space, machines, processes, watch)
    rows = zip(*(one.rows for one in found), strict=True)
    made = map(partial(_point, counts=[space.count(layer.name) for layer in space.layers]), machines, rows, costs)
    points = tuple(
        _no_machine(one, spec) if isinstance(spec, str) else next(made)
        for one, spec in zip(values, devices, strict=True)
    )
    best, alike = _front(points)
    return DesignResult(
        base=space.base.name,
        layers=tuple(layer.name for layer in space.layers),
        axes=_effects(space, points, frozenset[str]().union(*(one.asked for one in found))),
        points=points,
        front=best,
        alike=alike,
        looked=sum(one.looked for one in found),
        sensitivity=_sensitivity(space),
    )


def _combinations(space: Design) -> Iterator[tuple[str, ...]]:
    """Values of every machine, the last field changing fastest."""
    return product(*(axis.values for axis in space.axes))


def _rows(space: Design, machines: Sequence[Machine], processes: int | None, watch: Watch | None) -> list[LayerRows]:
    """What becomes of each layer on each machine.

    Raises:
        DeviceError: A process died.
    """
    quick = len(machines) * len(space.layers)
    with crew_of(processes=processes, scheduler=None, quick=quick) as crew, crew.executor() as executor:
        done = None if watch is None else watch(len(space.layers))
        futures = []
        for layer in space.layers:
            futures.append(executor.submit(rows_of, layer, machines, space.axes))
            if done is not None:
                futures[-1].add_done_callback(lambda _: done())
        try:
            return [future.result() for future in futures]
        except BrokenExecutor as error:
            raise DeviceError(
                f"design: a process that worked {crew.where} died ({error}); look for what ended it, such as too "
                "little memory, or ask for one process"
            ) from error
        finally:
            for future in futures:
                future.cancel()


def _no_machine(values: Mapping[str, str], reason: str) -> DesignPoint:
    """Values that contradict each other."""
    return DesignPoint(
        values=values, device="", reason=reason, costs={}, nanoseconds=None, cycles_error_share=None,
        untimed_operations=None, layers=(),
    )  # fmt: skip


def _point(machine: Machine, rows: Sequence[Row], costs: Mapping[str, float], counts: Sequence[int]) -> DesignPoint:
    """A machine with what becomes of its layers."""
    layers = tuple(map(_outcome, rows, counts))
    stopped = next((one for one in layers if one.verdict != Verdict.FITS), None)
    if stopped is not None:
        total, share = None, None
        first = next(iter(stopped.error.splitlines()), "")
        reason = f"{stopped.layer} {stopped.verdict}: {first}"
    else:
        times = [one.count * (one.nanoseconds or 0.0) for one in layers]
        total, share, reason = fsum(times), _error_share(layers, times), ""
    return DesignPoint(
        values=machine.values,
        device=machine.spec.name,
        reason=reason,
        costs=costs,
        nanoseconds=total,
        cycles_error_share=share,
        untimed_operations=None if stopped else sum(one.count * (one.untimed_operations or 0) for one in layers),
        layers=layers,
    )


def _error_share(layers: Sequence[LayerOutcome], times: Sequence[float]) -> float | None:
    """The mean of the layers' expected errors by time; None if one is not known."""
    shares = [one.cycles_error_share for one in layers]
    known = [share for share in shares if share is not None]
    if len(known) < len(shares) or not fsum(times):
        return None
    return fsum(share * time for share, time in zip(known, times, strict=True)) / fsum(times)


def _outcome(row: Row, count: int) -> LayerOutcome:
    return LayerOutcome(
        layer=row.layer,
        count=count,
        verdict=row.verdict.value,
        error=row.error,
        cycles=row.cycles,
        nanoseconds=row.nanoseconds,
        cycles_error_share=row.cycles_error_share,
        untimed_operations=row.untimed_operations,
        l1_headroom_bytes=row.l1_headroom_bytes,
    )


def _costs(space: Design, spec: DeviceSpec) -> dict[str, float]:
    """What a machine costs.

    Raises:
        ArgumentError: A formula has no value there.
    """
    fields = {field.name: field.value for field in fields_of(spec) if field.numeric} if space.costs else {}
    found = {}
    for name, one in space.costs.items():
        try:
            found[name] = one.value(fields)
        except ArgumentError as error:
            raise ArgumentError(f"design: costs.{name}: {error}") from error
    return found


def _front(points: Sequence[DesignPoint]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Numbers of the points that no other is better than, and how many others are alike with each."""
    timed = [(at, point) for at, point in enumerate(points) if point.nanoseconds is not None]
    aims = [(point.nanoseconds or 0.0, *point.costs.values()) for _, point in timed]
    found, counts = front(aims), Counter(aims)
    return tuple(timed[one][0] for one in found), tuple(counts[aims[one]] - 1 for one in found)


def _effects(space: Design, points: Sequence[DesignPoint], asked: frozenset[str]) -> tuple[AxisEffect, ...]:
    """What each field means in the space."""
    found = []
    named = {name for one in space.costs.values() for name in one.names}
    for axis in space.axes:
        groups: dict[tuple[str, ...], list[float | None]] = {}
        for point in points:
            if point.device:
                others = tuple(value for name, value in point.values.items() if name != axis.name)
                groups.setdefault(others, []).append(point.nanoseconds)
        times = [[one for one in group if one is not None] for group in groups.values()]
        shares = [max(group) / min(group) - 1 for group in times if len(group) > 1]
        decides = any(0 < len(ran) < len(group) for ran, group in zip(times, groups.values(), strict=True))
        found.append(
            AxisEffect(
                name=axis.name,
                values=len(axis.values),
                read=axis.name in asked,
                moves_share=max(shares, default=None),
                decides=decides,
                priced=not named.isdisjoint(axis.fields),
            )
        )
    return tuple(found)


def _sensitivity(space: Design) -> tuple[Sensitivity, ...]:
    """What each figure of the base device means for the layers that run there."""
    ran = [(space.count(layer.name), one) for layer in space.layers for one in _ran(layer, space.base)]
    return sensitivities(space.base, lambda spec: fsum(count * cycles_of(one, spec) for count, one in ran))


def _ran(layer: Layer, spec: DeviceSpec) -> list[RanCall]:
    """What a layer runs on a device; nothing if it does not fit."""
    try:
        placed = place(layer, make_inputs(layer, values=False), Settings(spec=spec, values="off", suggestions=False))
        with placed.device:
            return call(placed).profile.calls
    except TTSimError:
        return []
