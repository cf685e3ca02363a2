"""What a field moves: the plans of a set of calls, where their tensors lie, and the cycles of plans that are held."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import log
from types import MappingProxyType
from typing import Final

from device.errors import TTSimError
from device.events import Event, OperationBegin
from device.machine import Machine
from device.plan import Operation, Plan
from device.spec.device_spec import DeviceSpec
from device.time.network import torus_of
from ops.fields.asked import fields_asked
from ops.fields.field import Field, others, scaled
from ops.fields.held import LAUNCH, Held, held_launches, held_operations, plan_or_refusal, with_model
from ops.fields.samples import L1_SMALL_BYTES, Sample
from ops.readings.memory import run_memory

PLAN: Final = "plan"
MEMORY: Final = "memory"
VALUES: Final = "values"
CYCLES: Final = "cycles"
LAUNCHES: Final = "launches"
REPORT: Final = "report"
NEAR = (2.0, 0.5)
FAR = tuple(2.0 ** (sign * step) for step in range(2, 13) for sign in (-1, 1))  # where a limit may bind at last
SAME = 1e-9  # of cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a field moves."""

    field: Field
    moves: tuple[str, ...]  # Of plan, memory, values, cycles, launches and report
    # Of each program whose cycles move, log(cycles) over log(figure), the mean of its operations: between the value and
    # its double or half, whichever moves more; farther off where neither does. Empty where nobody asked for it.
    elasticity: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Ground:
    """How things are before a field is changed."""

    spec: DeviceSpec
    calls: tuple[Sample, ...]  # What is planned anew
    planned: Mapping[str, tuple[object, object]]  # What is decided of each call, and where its tensors lie
    before: Mapping[Held, float]  # Cycles of what is held
    # Fields of the device that each call depends on, by its name, and each of what is held
    asked: Mapping[str | Held, frozenset[str]]


def effects(
    fields: Sequence[Field],
    calls: Sequence[Sample],
    spec: DeviceSpec,
    *,
    planned: Sequence[Sample] = (),
    far: Sequence[float] = FAR,
    elasticities: bool = True,
    watch: Callable[[], object] | None = None,
) -> tuple[Effect, ...]:
    """What each of some fields moves.

    Args:
        planned: Further calls, of whose time nothing is asked.
        far: How many times as much of a number is tried where its double and its half move nothing.
        elasticities: Whether by how much cycles move is asked for; that they do is told much sooner.
        watch: Called when a field is done.
    """
    if not fields:
        return ()
    held: tuple[Held, ...] = (*with_model(held_operations(calls, spec), spec), held_launches(calls, spec))
    every = (*planned, *calls)
    ground = _Ground(
        spec=spec,
        calls=every,
        planned={call.name: _outcome(call, spec) for call in every},
        before={one: one.cycles(spec) for one in held},
        asked={call.name: fields_asked(partial(_outcome, call), spec) for call in every}
        | {one: fields_asked(one.cycles, spec) for one in held},
    )
    found = []
    for field in fields:
        if not field.numeric:
            found.append(_effect_of_another(field, ground))
        else:
            found.append(_effect(field, far, ground) if elasticities else _moves(field, far, ground))
        if watch is not None:
            watch()
    return tuple(found)


def _effect(field: Field, far: Sequence[float], ground: _Ground) -> Effect:
    """What a number moves: at its double and its half, or as far from it as it takes to move something."""
    near = dict(_changed(ground.spec, field, NEAR))
    elasticity = _elasticity(field, near, ground)
    moves = _timed(elasticity)
    for changed in near.values():
        moves |= _replanned(field, changed, ground)
    for factor, changed in () if moves else _changed(ground.spec, field, far):
        elasticity = _elasticity(field, {factor: changed}, ground)
        moves = _timed(elasticity) | _replanned(field, changed, ground)
        if moves:
            break
    return Effect(field=field, moves=_in_order(moves), elasticity=MappingProxyType(elasticity))


def _moves(field: Field, far: Sequence[float], ground: _Ground) -> Effect:
    """The same without elasticity: looks no farther once the field is known to move something of a kind."""
    moves: set[str] = set()
    for _, changed in _changed(ground.spec, field, NEAR):
        moves |= _retimed(field, changed, ground, moves) | _replanned(field, changed, ground)
    for _, changed in () if moves else _changed(ground.spec, field, far):
        moves = _retimed(field, changed, ground) | _replanned(field, changed, ground)
        if moves:
            break
    return Effect(field=field, moves=_in_order(moves), elasticity=MappingProxyType({}))


def _effect_of_another(field: Field, ground: _Ground) -> Effect:
    """What it moves that a field which is no number is another: of a flag also values, of a text what is shown."""
    moves = {VALUES} if isinstance(field.value, bool) else {REPORT} if isinstance(field.value, str) else set()
    for changed in others(ground.spec, field):
        moves |= _retimed(field, changed, ground, moves) | _replanned(field, changed, ground)
    return Effect(field=field, moves=_in_order(moves), elasticity=MappingProxyType({}))


def _timed(elasticity: Mapping[str, float]) -> set[str]:
    """Whether kernels take another time, and what passes between them."""
    return {LAUNCHES if program == LAUNCH else CYCLES for program in elasticity}


def _retimed(field: Field, changed: DeviceSpec, ground: _Ground, known: Collection[str] = ()) -> set[str]:
    """Whether kernels take another time on a device, and what passes between them; what is known is not looked at."""
    moves: set[str] = set()
    for one, was in ground.before.items() if _has_cores_of(changed, ground.spec) else ():
        kind = LAUNCHES if one.program == LAUNCH else CYCLES
        if kind in known or kind in moves or field.name not in ground.asked[one]:
            continue
        if abs(one.cycles(changed) / was - 1) > SAME:
            moves.add(kind)
    return moves


def _in_order(moves: Collection[str]) -> tuple[str, ...]:
    return tuple(one for one in (PLAN, MEMORY, VALUES, CYCLES, LAUNCHES, REPORT) if one in moves)


def _changed(spec: DeviceSpec, field: Field, factors: Iterable[float]) -> Iterator[tuple[float, DeviceSpec]]:
    """Devices with so many times as much of a field, as far as there are such devices."""
    for factor in factors:
        if (changed := scaled(spec, field, factor)) is not None:
            yield factor, changed


def _elasticity(field: Field, changed: Mapping[float, DeviceSpec], ground: _Ground) -> dict[str, float]:
    """Of each program that moves; the mean of its operations."""
    found: dict[str, list[float]] = {}
    holding = [(factor, device) for factor, device in changed.items() if _has_cores_of(device, ground.spec)]
    for one, cycles in ground.before.items():
        devices = holding if field.name in ground.asked[one] else ()
        slopes = [log(one.cycles(device) / cycles) / log(factor) for factor, device in devices]
        found.setdefault(one.program, []).append(max(slopes, key=abs, default=0.0))
    return {
        program: sum(slopes) / len(slopes)
        for program, slopes in found.items()
        if any(abs(slope) > SAME for slope in slopes)
    }


def _has_cores_of(device: DeviceSpec, spec: DeviceSpec) -> bool:
    """Whether plans of one device can be held on another: its network knows where their cores lie."""
    torus = torus_of(device)
    return len(torus.worker_cols) >= spec.grid.cols and len(torus.worker_rows) >= spec.grid.rows


def _replanned(field: Field, changed: DeviceSpec, ground: _Ground) -> set[str]:
    """Whether plans, and places in memory, are others on a device with another value of a field."""
    moves: set[str] = set()
    for call in ground.calls:
        if field.name not in ground.asked[call.name]:
            continue
        for what, was, now in zip((PLAN, MEMORY), ground.planned[call.name], _outcome(call, changed), strict=True):
            if was != now:
                moves.add(what)
        if len(moves) > 1:
            break
    return moves


def _outcome(call: Sample, spec: DeviceSpec) -> tuple[object, object]:
    """What is decided of a call: its operations with their circular buffers; and where everything lies."""
    plan = plan_or_refusal(call, spec)
    if isinstance(plan, str):
        return plan, None
    decided = [
        (step.name, step.work, step.circular_buffers, step.refused) if isinstance(step, Operation) else type(step)
        for step in plan.steps
    ]
    return decided, _places(call, plan, spec)


def _places(call: Sample, plan: Plan, spec: DeviceSpec) -> object:
    """All that happens in memory, or why it does not fit."""
    events: list[Event] = []
    try:
        with Machine(spec, l1_small_bytes=L1_SMALL_BYTES) as machine:
            machine.recorders.append(events)
            given = {name: machine.allocate(one.buffer(spec), name) for name, one in call.given.items()}
            run_memory(plan, machine, given)
    except TTSimError as error:
        return str(error)
    return [one._replace(spec=None) if isinstance(one, OperationBegin) else one for one in events]
