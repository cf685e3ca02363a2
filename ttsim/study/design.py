"""ttsim.design: time and costs of every machine of a space, and the Pareto front."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from math import fsum
from operator import mul
from pathlib import Path
from typing import Any, Final, TypeAlias

from device.errors import ArgumentError, DeviceError, shown
from device.numbers.formats import div_up
from device.spec.device_spec import DeviceSpec
from device.time.energy import JOULE, area_square_millimeters
from ops.passes.sensitivity import sensitivities
from ops.sensitivity.fields import numeric_fields
from ttsim.recording.profiling import cycles_of
from ttsim.study.design_result import NOT_LOOKED, AxisEffect, DesignPoint, DesignResult, LayerOutcome
from ttsim.study.executor import workers
from ttsim.study.explore import BATCH, Explorer, hypervolume
from ttsim.study.front_details import MachineCalls, calls_on, operation_sides, strongest_fields
from ttsim.study.larger import slower_layers
from ttsim.study.machine_rows import Known, LayerRows, Machine, add_known, key_of, row_on, rows_of
from ttsim.study.space import JUDGED, Design, read_design
from ttsim.study.store import Row, Store, Verdict, front, model_version

AREA, *ENERGY = JUDGED
NOT_OF_A_ROW: Final = {"count", "verdict", "given_nanoseconds"}  # fields of a layer's outcome
Watch: TypeAlias = Callable[[int], Callable[[], object]]


def design(
    file: str | Path | Design,
    *,
    evaluations: int | None = None,
    seed: int = 0,
    rows: str | Path | None = None,
    processes: int | None = 1,
    watch: Watch | None = None,
) -> DesignResult:
    """The Pareto front of time and costs over a space of machines.

    Args:
        file: A TOML file of a device, fields to vary, costs and layers (docs/how-to/design-a-machine.md), or a
            `Design`.
        evaluations: How many machines are looked at, chosen by an optimizer of several objectives (optuna, which
            ``pip install 'ttsim[optuna]'`` installs); None for all.
        seed: Of the optimizer: the same seed gives the same machines.
        rows: A JSONL file that receives each row as soon as its machines are done; rows in it are not computed again.
        processes: Number of processes, each at one layer; None for one on each core where there is much to do. A
            script that asks for more than one needs ``if __name__ == "__main__":``.
        watch: A function that receives the number of steps and returns a function, which is called after each: a
            layer on all machines, or on those that are looked at together.

    Returns:
        Every machine with its time and its costs, and the front.

    Raises:
        ArgumentError: The file describes no design, or a cost cannot be computed.
        SpecError: A device or a field is unknown, or a value does not suit its field.
        DeviceError: A process died.

    Examples:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> text = '''
        ... tune = false
        ... [device]
        ... base = "wormhole_n150"
        ... [space]
        ... "dram.banks" = [6, 12]
        ... [costs]
        ... banks = "dram.banks"
        ... [[layer]]
        ... in_channels = 32
        ... out_channels = 16
        ... input_height = 8
        ... input_width = 8
        ... stride = 2
        ... '''
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "design.toml")
        ...     _ = path.write_text(text)
        ...     len(ttnn.design(path).points)
        2
    """
    if not isinstance(file, str | Path | Design):
        raise ArgumentError(f"design: give the path of a TOML file, not {shown(file)}")
    space = file if isinstance(file, Design) else read_design(Path(file))
    names = [axis.name for axis in space.axes]
    values = [dict(zip(names, combined, strict=True)) for combined in product(*(axis.values for axis in space.axes))]
    devices = [(space.device(combined), combined) for combined in values]
    machines = [(spec, combined) for spec, combined in devices if not isinstance(spec, str)]
    costs = [_costs(space, spec) for spec, _ in machines]  # in time to refuse a formula
    look = _Look(space, machines, costs, processes, watch)
    with nullcontext() if rows is None else Store(Path(rows), model_version()) as store:
        looked = look.at(store, evaluations, seed)
    points, number = [], -1
    for spec, combined in devices:
        if isinstance(spec, str):
            points.append(DesignPoint(values=combined, reason=spec))
            continue
        number += 1
        own = looked.get(number)
        points.append(own or DesignPoint(values=combined, device=spec.name, costs=costs[number], reason=NOT_LOOKED))
    layers = [LayerRows((), known) for known in look.known]
    timed = [(at, aim) for at, point in enumerate(points) if (aim := _aims(point)) is not None]
    aims = [aim for _, aim in timed]
    best, duplicates = front(aims), Counter(aims)
    ran = [(space.count(layer.name), call) for layer in space.work for call in calls_on(layer, space.base)]
    cycles = sensitivities(space.base, lambda spec: fsum(count * cycles_of(call, spec) for count, call in ran))
    places, specs = tuple(timed[place][0] for place in best), [spec for spec, _ in devices]
    calls = MachineCalls(space, points, specs, look.known)
    return DesignResult(
        base=space.base.name,
        layers=tuple(each.name for each in space.work),
        axes=tuple(_effects(space, points, frozenset[str]().union(*(layer.read for layer in layers)))),
        points=tuple(points),
        front=places,
        tuned=space.tune,
        alike=tuple(duplicates[aims[place]] - 1 for place in best),
        looked=sum(layer.evaluated for layer in layers),
        convergence=look.convergence(looked) if evaluations is not None else (),
        slower=slower_layers(space.axes, points, specs),
        sensitivity=cycles,
        effects=tuple(strongest_fields(calls, places, cycles)),
        sides=tuple(operation_sides(calls, places)),
    )


class _Look:
    """Looks at machines of a space, batch by batch."""

    def __init__(
        self,
        space: Design,
        machines: Sequence[Machine],
        costs: Sequence[Mapping[str, float]],
        processes: int | None,
        watch: Watch | None,
    ) -> None:
        self.space, self.machines, self.costs = space, machines, costs
        self.known: list[Known] = [{} for _ in space.work]  # Of each layer
        quick = None if space.tune else len(machines) * len(space.work)
        self.workers = workers(processes=processes, scheduler=None, quick=quick)
        self.watch = watch

    def at(self, store: Store | None, evaluations: int | None, seed: int) -> dict[int, DesignPoint]:
        """The points by the numbers of their machines: of all, or of as many as an optimizer may look at."""
        most = len(self.machines) if evaluations is None else min(evaluations, len(self.machines))
        if store is not None:
            self._read(store)
        points: dict[int, DesignPoint] = {}
        with self.workers as team, team.start() as executor:
            size = BATCH if store is not None or evaluations is not None else max(1, most)
            done = (lambda: None) if self.watch is None else self.watch(len(self.space.work) * div_up(most, size))
            if evaluations is None or most == len(self.machines):
                for start in range(0, most, size):
                    numbers = range(start, min(start + size, most))
                    points |= self._batch(numbers, executor, team.where, store, done)
                return points
            explorer = self._explorer(seed)
            while len(points) < most:
                new = self._batch(explorer.ask(most - len(points)), executor, team.where, store, done)
                explorer.tell({number: _aims(point) for number, point in new.items()})
                points |= new
        return points

    def _explorer(self, seed: int) -> Explorer:
        """An optimizer over the machines."""
        axes = self.space.axes
        places = [tuple(axis.values.index(values[axis.name]) for axis in axes) for _, values in self.machines]
        sizes = {axis.name: len(axis.values) for axis in axes}
        return Explorer(places, sizes, aims=1 + len(self.space.costs), seed=seed)

    def convergence(self, points: Mapping[int, DesignPoint]) -> tuple[float, ...]:
        """The hypervolume of the front after each batch, as a share of that at the end; points are in their order."""
        aims = [_aims(point) for point in points.values()]
        known = [own for own in aims if own is not None]
        if not known:
            return ()
        worst = tuple(map(max, zip(*known, strict=True)))
        counts = [*range(BATCH, len(aims), BATCH), len(aims)]
        volumes = [hypervolume([own for own in aims[:count] if own is not None], worst) for count in counts]
        return tuple(volume / volumes[-1] if volumes[-1] else 1.0 for volume in volumes)

    def _read(self, store: Store) -> None:
        """Takes the rows of a file."""
        each = zip(self.space.work, self.known, strict=True)
        for (layer, known), (spec, values) in product(each, self.machines if store.rows else ()):
            row = store.rows.get(key_of(layer, spec, self.space.tune))
            if row is not None:
                add_known(known, row, values, self.space.axes)

    def _batch(
        self, numbers: Sequence[int], executor: Executor, where: str, store: Store | None, done: Callable[[], object]
    ) -> dict[int, DesignPoint]:
        """The points of some machines; raises DeviceError if a process died."""
        machines, futures = [self.machines[number] for number in numbers], []
        for layer, known in zip(self.space.work, self.known, strict=True):
            missing = [machine for machine in machines if row_on(machine, known) is None]
            futures.append(executor.submit(rows_of, layer, missing, self.space.axes, self.space.tune))
            futures[-1].add_done_callback(lambda _: done())
        try:
            for known, future in zip(self.known, futures, strict=True):
                for read, by_values in future.result().known.items():
                    known.setdefault(read, {}).update(by_values)
                    if store is not None:
                        store.append(by_values.values())
        except BrokenExecutor as error:
            raise DeviceError(
                f"design: a process that worked {where} died ({error}); look for what ended it, such as too "
                "little memory, or ask for one process"
            ) from error
        finally:
            for future in futures:
                future.cancel()
        points = {}
        for number, machine in zip(numbers, machines, strict=True):
            rows = [row for known in self.known if (row := row_on(machine, known)) is not None]
            points[number] = _point(self.space, machine, rows, self.costs[number])
        return points


def _aims(point: DesignPoint) -> tuple[float, ...] | None:
    """Time and costs of a machine; None if a layer does not run."""
    return None if point.nanoseconds is None else (point.nanoseconds, *map(float, point.costs.values()))


def _point(space: Design, machine: Machine, rows: Sequence[Row], costs: Mapping[str, float]) -> DesignPoint:
    layers = tuple(
        LayerOutcome(
            count=space.count(row.layer),
            verdict=row.verdict.value,
            given_nanoseconds=row.own_nanoseconds,
            **{name: getattr(row, name) for name in LayerOutcome.__dataclass_fields__.keys() - NOT_OF_A_ROW},
        )
        for row in rows
    )
    area = area_square_millimeters(machine[0])
    point = DesignPoint(values=machine[1], device=machine[0].name, costs=costs, layers=layers, area_mm2=area)
    given = [layer.count * layer.given_nanoseconds for layer in layers if layer.given_nanoseconds is not None]
    if len(given) == len(layers):
        point = replace(point, given_nanoseconds=fsum(given))
    for layer in layers:
        if layer.verdict != Verdict.FITS:
            line, *_ = layer.error.splitlines() or [""]
            return replace(point, reason=f"{layer.layer} {layer.verdict}: {line}")
    times = [layer.count * (layer.nanoseconds or 0.0) for layer in layers]
    total = fsum(times)
    shares = [layer.cycles_error_share for layer in layers if layer.cycles_error_share is not None]
    known = total and len(shares) == len(layers)
    energy = _energy(layers, total)
    return replace(
        point,
        **energy,
        costs=_costs(space, machine[0], energy),
        nanoseconds=total,
        cycles_error_share=fsum(map(mul, shares, times)) / total if known else None,
        untimed_operations=sum(layer.count * (layer.untimed_operations or 0) for layer in layers),
    )


def _energy(layers: Sequence[LayerOutcome], taken_nanoseconds: float) -> dict[str, Any]:
    """The figures of `ENERGY` of all layers; none if the energy of a layer is not known."""
    energies = [layer.count * layer.energy_femtojoules for layer in layers if layer.energy_femtojoules is not None]
    if len(energies) < len(layers) or not taken_nanoseconds:
        return {}
    joules, seconds = sum(energies) / JOULE, taken_nanoseconds / 1e9
    return dict(zip(ENERGY, (joules, joules / seconds, joules * seconds), strict=True))


def _costs(space: Design, spec: DeviceSpec, energy: Mapping[str, float] | None = None) -> dict[str, float]:
    """The costs of a machine, without those of `ENERGY` before it is known.

    Raises ArgumentError if a formula has no value.
    """
    fields: dict[str, float] = {}
    if space.costs:
        fields = {field.name: field.value for field in numeric_fields(spec)}
        fields |= {AREA: area_square_millimeters(spec), **(energy or {})}
    costs = {}
    for name, formula in space.costs.items():
        if energy is None and not set(formula.names).isdisjoint(ENERGY):
            continue
        try:
            costs[name] = formula.value(fields)
        except ArgumentError as error:
            raise ArgumentError(f"design: costs.{name}: {error}") from error
    return costs


def _effects(space: Design, points: Sequence[DesignPoint], read: frozenset[str]) -> Iterator[AxisEffect]:
    priced = {name for formula in space.costs.values() for name in formula.names}
    for axis in space.axes:
        groups: dict[tuple[str, ...], list[float | None]] = {}  # Times of points that agree in all other fields
        for point in points:
            if point.device and point.reason != NOT_LOOKED:
                others = tuple(value for name, value in point.values.items() if name != axis.name)
                groups.setdefault(others, []).append(point.nanoseconds)
        times = [[time for time in group if time is not None] for group in groups.values()]
        yield AxisEffect(
            name=axis.name,
            values=len(axis.values),
            read=axis.name in read,
            moves_share=max((max(group) / min(group) - 1 for group in times if len(group) > 1), default=None),
            decides=any(0 < len(ran) < len(group) for ran, group in zip(times, groups.values(), strict=True)),
            priced=not priced.isdisjoint((*axis.fields, *JUDGED)),
        )
