"""ttsim.design: time and costs of every machine of a space, and the Pareto front."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import ExitStack
from dataclasses import replace
from itertools import count, product
from math import fsum
from operator import mul
from pathlib import Path
from typing import Any, Final, TypeAlias

from device.errors import ArgumentError, DeviceError, shown
from device.numbers.formats import div_up
from device.spec.device_spec import DeviceSpec
from device.time.energy import JOULE, area_square_millimeters
from ops.passes.sensitivity import Sensitivity
from ops.sensitivity.fields import numeric_fields
from ttsim.study.design_result import NOT_LOOKED, AxisEffect, DesignPoint, DesignResult, LayerOutcome, SlowerLayer
from ttsim.study.executor import workers
from ttsim.study.explore import BATCH, Explorer, hypervolume
from ttsim.study.front_details import (
    MOST_MACHINES,
    Judged,
    fields_looked_at,
    held_effects,
    operation_sides,
    strongest_fields,
)
from ttsim.study.larger import Cause, Pair, Side, cause_of, slower_pairs
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
        evaluations: Number of machines to evaluate, chosen by a multi-objective optimizer (optuna, installed by
            ``pip install 'ttsim[optuna]'``); None for all.
        seed: Seed of the optimizer: the same seed gives the same machines.
        rows: A JSONL file that receives each row as soon as its machines are done; rows in it are not computed again.
        processes: Number of processes, each of which evaluates one layer; None for one per core if there is enough
            work. A script with more than one process needs ``if __name__ == "__main__":``.
        watch: A function that receives the number of steps and returns a function that is called after each step: a
            layer on all machines, or on one batch of machines.

    Returns:
        Every machine with its time and its costs, and the front.

    Raises:
        ArgumentError: The file is not a valid design, or a cost cannot be computed.
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
    quick = None if space.tune else len(machines) * len(space.work)
    with ExitStack() as stack:
        team = stack.enter_context(workers(processes=processes, scheduler=None, quick=quick))
        store = None if rows is None else stack.enter_context(Store(Path(rows), model_version()))
        executor = stack.enter_context(team.start())
        try:
            base = executor.submit(held_effects, space.runs, Judged(space.base, (None,) * len(space.work)))
            look = _Look(space, machines, costs, executor, team.slots, watch)
            looked = look.at(store, evaluations, seed)
            points = list(_points(devices, costs, looked))
            convergence = look.convergence(looked) if evaluations is not None else ()
            return _result(look, points, [spec for spec, _ in devices], base.result(), convergence)
        except BrokenExecutor as error:
            raise DeviceError(
                f"design: a process that worked {team.where} died ({error}); look for what ended it, such as too "
                "little memory, or ask for one process"
            ) from error


def _points(
    devices: Sequence[tuple[DeviceSpec | str, Mapping[str, str]]],
    costs: Sequence[Mapping[str, float]],
    looked: Mapping[int, DesignPoint],
) -> Iterator[DesignPoint]:
    """The point of each device of a space, or the reason why it has none."""
    number = count()
    for spec, values in devices:
        if isinstance(spec, str):
            yield DesignPoint(values=values, reason=spec)
            continue
        at = next(number)
        own = looked.get(at)
        yield own or DesignPoint(values=values, device=spec.name, costs=costs[at], reason=NOT_LOOKED)


def _result(
    look: "_Look",
    points: Sequence[DesignPoint],
    specs: Sequence[DeviceSpec | str],
    base: tuple[Sensitivity, ...],
    convergence: tuple[float, ...],
) -> DesignResult:
    """The result of a design, with details of the machines of its front; `base` has the base's sensitivities."""
    space, layers = look.space, [LayerRows((), known) for known in look.known]
    timed = [(at, aim) for at, point in enumerate(points) if (aim := _aims(point)) is not None]
    aims = [aim for _, aim in timed]
    best, duplicates = front(aims), Counter(aims)
    places = tuple(timed[place][0] for place in best)
    judged = {
        at: look.judged((spec, point.values))
        for at, (point, spec) in enumerate(zip(points, specs, strict=True))
        if not isinstance(spec, str) and (at in places or spec.name == space.base.name)
    }
    slower = {pair: look.cause(pair, points, specs) for pair in slower_pairs(space.axes, points, specs)}
    names = fields_looked_at(space, base)
    held = {at: look.executor.submit(held_effects, space.runs, judged[at], names) for at in places[:MOST_MACHINES]}
    beside = [
        judged[at] for at in judged if points[at].device == space.base.name and points[at].nanoseconds is not None
    ]
    compared = places and beside and judged[places[0]] is not beside[0]
    return DesignResult(
        base=space.base.name,
        layers=tuple(each.name for each in space.work),
        axes=tuple(_effects(space, points, frozenset[str]().union(*(layer.read for layer in layers)))),
        points=tuple(points),
        front=places,
        tuned=space.tune,
        alike=tuple(duplicates[aims[place]] - 1 for place in best),
        looked=sum(layer.evaluated for layer in layers),
        convergence=convergence,
        slower=tuple(_slower(space, points, pair, cause.result()) for pair, cause in slower.items()),
        sensitivity=base,
        sides=tuple(operation_sides(space.runs, beside[0], judged[places[0]])) if compared else (),
        effects=tuple(strongest_fields(space, points, names, {at: own.result() for at, own in held.items()})),
    )


def _slower(space: Design, points: Sequence[DesignPoint], pair: Pair, cause: Cause) -> SlowerLayer:
    less, more = points[pair.small].values, points[pair.large].values
    return SlowerLayer(
        layer=space.work[pair.layer].name,
        axis=pair.axis,
        smaller=less[pair.axis],
        larger=more[pair.axis],
        others={name: value for name, value in less.items() if name != pair.axis},
        share=pair.share,
        planner_share=cause.parts.planner,
        networks_share=cause.parts.networks,
        reason=cause.reason,
    )


class _Look:
    """Evaluates machines of a space in batches."""

    def __init__(
        self,
        space: Design,
        machines: Sequence[Machine],
        costs: Sequence[Mapping[str, float]],
        executor: Executor,
        slots: int,
        watch: Watch | None,
    ) -> None:
        self.space, self.machines, self.costs = space, machines, costs
        self.known: list[Known] = [{} for _ in space.work]  # Of each layer
        self.executor, self.slots = executor, slots
        self.watch = watch

    def at(self, store: Store | None, evaluations: int | None, seed: int) -> dict[int, DesignPoint]:
        """The points by machine number: of all machines, or of those that an optimizer chooses."""
        most = len(self.machines) if evaluations is None else min(evaluations, len(self.machines))
        if store is not None:
            self._read(store)
        points: dict[int, DesignPoint] = {}
        size = BATCH if store is not None or evaluations is not None else max(1, most)
        done = (lambda: None) if self.watch is None else self.watch(len(self.space.work) * div_up(most, size))
        if evaluations is None or most == len(self.machines):
            for start in range(0, most, size):
                points |= self._batch(range(start, min(start + size, most)), store, done)
            return points
        explorer = self._explorer(seed)
        while len(points) < most:
            new = self._batch(explorer.ask(most - len(points)), store, done)
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
        """The hypervolume of the front after each batch, as a share of the final one; points are in order."""
        aims = [_aims(point) for point in points.values()]
        known = [own for own in aims if own is not None]
        if not known:
            return ()
        worst = tuple(map(max, zip(*known, strict=True)))
        counts = [*range(BATCH, len(aims), BATCH), len(aims)]
        volumes = [hypervolume([own for own in aims[:count] if own is not None], worst) for count in counts]
        return tuple(volume / volumes[-1] if volumes[-1] else 1.0 for volume in volumes)

    def _read(self, store: Store) -> None:
        """Reads the rows of a file."""
        each = zip(self.space.work, self.known, strict=True)
        for (layer, known), (spec, values) in product(each, self.machines if store.rows else ()):
            row = store.rows.get(key_of(layer, spec, self.space.tune))
            if row is not None:
                add_known(known, row, values, self.space.axes)

    def _batch(self, numbers: Sequence[int], store: Store | None, done: Callable[[], object]) -> dict[int, DesignPoint]:
        """The points of some machines; raises BrokenExecutor if a process died."""
        machines = [self.machines[number] for number in numbers]
        flying: dict[Future[LayerRows], int] = {}  # What is evaluated, with the number of its layer
        left = {at: deque(machines) for at in range(len(self.known))}  # Machines of layers that are not done
        try:
            while left:
                for at in [at for at in left if not self._missing(at, left[at]) and at not in flying.values()]:
                    del left[at]
                    done()
                while len(flying) < self.slots and (waiting := [at for at in left if self._missing(at, left[at])]):
                    at = next((at for at in waiting if at not in flying.values()), waiting[0])
                    task = (self.space.work[at], [left[at].popleft()], self.space.axes, self.space.tune)
                    flying[self.executor.submit(rows_of, *task)] = at
                for future in wait(flying, return_when=FIRST_COMPLETED).done if flying else ():
                    self._take(flying.pop(future), future.result(), store)
        finally:
            for future in flying:
                future.cancel()
        judged = {number: self.judged(self.machines[number]) for number in numbers}
        return {
            number: _point(self.space, self.machines[number], list(filter(None, machine.rows)), self.costs[number])
            for number, machine in judged.items()
        }

    def _missing(self, layer: int, machines: deque[Machine]) -> bool:
        """Whether a layer lacks rows; if so, the first of its machines has no row."""
        while machines and row_on(machines[0], self.known[layer]) is not None:
            machines.popleft()
        return bool(machines)

    def _take(self, layer: int, found: LayerRows, store: Store | None) -> None:
        """Keeps the rows of a layer."""
        for read, by_values in found.known.items():
            self.known[layer].setdefault(read, {}).update(by_values)
            if store is not None:
                store.append(by_values.values())

    def cause(self, pair: Pair, points: Sequence[DesignPoint], specs: Sequence[DeviceSpec | str]) -> Future[Cause]:
        """A future of the cause of a slowdown."""
        sides = []
        for number in (pair.small, pair.large):
            spec = specs[number]
            row = None if isinstance(spec, str) else row_on((spec, points[number].values), self.known[pair.layer])
            if isinstance(spec, str) or row is None:
                raise AssertionError(f"machine {number} of a slowdown has no row")
            sides.append(Side(spec, row))
        return self.executor.submit(cause_of, self.space.work[pair.layer], pair.share, *sides)

    def judged(self, machine: Machine) -> Judged:
        """A machine with its known rows."""
        return Judged(machine[0], tuple(row_on(machine, known) for known in self.known))


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
    """The figures of `ENERGY` over all layers; empty if the energy of a layer is unknown."""
    energies = [layer.count * layer.energy_femtojoules for layer in layers if layer.energy_femtojoules is not None]
    if len(energies) < len(layers) or not taken_nanoseconds:
        return {}
    joules, seconds = sum(energies) / JOULE, taken_nanoseconds / 1e9
    return dict(zip(ENERGY, (joules, joules / seconds, joules * seconds), strict=True))


def _costs(space: Design, spec: DeviceSpec, energy: Mapping[str, float] | None = None) -> dict[str, float]:
    """The costs of a machine, without energy costs while the energy is unknown.

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
