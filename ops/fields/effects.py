"""What a field moves: the plans of a set of calls, where their tensors lie, and the cycles of plans that are held."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from types import MappingProxyType
from typing import Any, Final

from device.errors import TTSimError
from device.events import Event
from device.machine import Machine
from device.plan import Operation, Plan, Relocate
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.fields.field import Field, others, scaled
from ops.fields.samples import L1_SMALL_BYTES, Sample
from ops.readings.cycles import TimedOperation, run_cycles
from ops.readings.memory import run_memory

PLAN: Final = "plan"
MEMORY: Final = "memory"
VALUES: Final = "values"
CYCLES: Final = "cycles"
REPORT: Final = "report"
NEAR = (2.0, 0.5)
FAR = tuple(2.0 ** (sign * step) for step in range(2, 13) for sign in (-1, 1))  # where a limit may bind at last
SAME = 1e-9  # of cycles


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A device operation as one device's plan has it.

    Attributes:
        program: The folder of programs that it is of.
        name: Of the operation.
        plan: That operation alone.
    """

    program: str
    name: str
    plan: Plan

    def timed(self, spec: DeviceSpec, *, contention: bool = True) -> TimedOperation:
        """What it takes on a device."""
        (timed,) = run_cycles(self.plan, spec, contention=contention).operations
        return timed


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a field moves.

    Attributes:
        field: The field.
        moves: Of plan, memory, values, cycles and report.
        elasticity: Of each program whose cycles move, log(cycles) over log(figure), the mean of its operations:
            between the value and its double or half, whichever moves more; farther off where neither does.
    """

    field: Field
    moves: tuple[str, ...]
    elasticity: Mapping[str, float]


def held_operations(calls: Iterable[Sample], spec: DeviceSpec) -> tuple[Held, ...]:
    """Every device operation of the calls' plans, each once; a call that the device can not do has none."""
    found: dict[object, Held] = {}
    for call in calls:
        plan = _plan(call, spec)
        if isinstance(plan, str):
            continue
        for step in plan.steps:
            if isinstance(step, Operation | Relocate) and step.work is not None:
                one = _held(step, plan)
                found.setdefault((one.plan.steps, *one.plan.tensors.values()), one)
    return tuple(found.values())


def _held(step: Operation | Relocate, plan: Plan) -> Held:
    """One step alone, with its first and its last tensor."""
    if isinstance(step, Relocate):
        name, source, target = "Move", step.tensor, step.tensor
    else:
        name, source = step.name.removesuffix("DeviceOperation"), step.inputs[0]
        target = step.outputs[0].tensor if step.outputs else step.inputs[-1]
    alone = Operation(name=name, inputs=("read", "written"), work=step.work)
    tensors = {"read": plan.tensors[source], "written": plan.tensors[target]}
    program = type(step.work).__module__.split(".")[2]
    return Held(program, name, Plan(steps=(alone,), tensors=tensors))


def with_model(held: Iterable[Held], spec: DeviceSpec) -> tuple[Held, ...]:
    """Those whose cycles somebody has modeled."""
    return tuple(one for one in held if one.timed(spec).cycles is not None)


def cycles_of(one: Held, spec: DeviceSpec) -> OperationCycles:
    """What an operation of `with_model` takes."""
    timed = one.timed(spec).cycles
    assert timed is not None
    return timed


def effects(
    fields: Sequence[Field], calls: Sequence[Sample], spec: DeviceSpec, *, programs_tables: Iterable[str] = ()
) -> tuple[Effect, ...]:
    """What each of some fields moves.

    Args:
        fields: Of the device.
        calls: The calls.
        spec: The device.
        programs_tables: Tables that plans do not read.
    """
    held = with_model(held_operations(calls, spec), spec)
    before = {one: cycles_of(one, spec).cycles for one in held}
    planned = {call.name: _outcome(call, spec) for call in calls}
    tables = frozenset(programs_tables)
    return tuple(_effect(field, calls, planned, before, spec, replan=field.path[0] not in tables) for field in fields)


def _effect(
    field: Field,
    calls: Sequence[Sample],
    planned: Mapping[str, tuple[Any, Any]],
    before: Mapping[Held, float],
    spec: DeviceSpec,
    *,
    replan: bool,
) -> Effect:
    if not field.numeric:
        return _effect_of_another(field, calls, planned, before, spec)
    near, far = (_changed(spec, field, factors) for factors in (NEAR, FAR))
    elasticity = _elasticity(near, before)
    moves = {CYCLES} if elasticity else set()
    for changed in near.values() if replan else ():
        moves |= _replanned(calls, planned, changed)
    for factor, changed in far.items():
        if moves:
            break
        moves = _replanned(calls, planned, changed) if replan else set()
        elasticity = _elasticity({factor: changed}, before)
        moves |= {CYCLES} if elasticity else set()
    return Effect(field=field, moves=_in_order(moves), elasticity=MappingProxyType(elasticity))


def _effect_of_another(
    field: Field,
    calls: Sequence[Sample],
    planned: Mapping[str, tuple[Any, Any]],
    before: Mapping[Held, float],
    spec: DeviceSpec,
) -> Effect:
    """What it moves that a field which is no number is another: of a flag also values, of a text only what is shown."""
    moves = {VALUES} if isinstance(field.value, bool) else set()
    for changed in others(spec, field):
        moves |= _replanned(calls, planned, changed)
        if any(abs(cycles_of(one, changed).cycles / cycles - 1) > SAME for one, cycles in before.items()):
            moves.add(CYCLES)
    return Effect(field=field, moves=_in_order(moves or {REPORT}), elasticity=MappingProxyType({}))


def _in_order(moves: Collection[str]) -> tuple[str, ...]:
    return tuple(one for one in (PLAN, MEMORY, VALUES, CYCLES, REPORT) if one in moves)


def _changed(spec: DeviceSpec, field: Field, factors: Iterable[float]) -> dict[float, DeviceSpec]:
    """Devices with so many times as much of a field, as far as there are such devices."""
    found = ((factor, scaled(spec, field, factor)) for factor in factors)
    return {factor: changed for factor, changed in found if changed is not None}


def _elasticity(changed: Mapping[float, DeviceSpec], before: Mapping[Held, float]) -> dict[str, float]:
    """Of each program that moves; the mean of its operations."""
    found: dict[str, list[float]] = {}
    for one, cycles in before.items():
        slopes = [log(cycles_of(one, device).cycles / cycles) / log(factor) for factor, device in changed.items()]
        found.setdefault(one.program, []).append(max(slopes, key=abs, default=0.0))
    return {
        program: sum(slopes) / len(slopes)
        for program, slopes in found.items()
        if any(abs(slope) > SAME for slope in slopes)
    }


def _replanned(calls: Sequence[Sample], planned: Mapping[str, tuple[Any, Any]], changed: DeviceSpec) -> set[str]:
    """Whether plans, and places in memory, are others on a changed device."""
    moves: set[str] = set()
    for call in calls:
        for what, was, now in zip((PLAN, MEMORY), planned[call.name], _outcome(call, changed), strict=True):
            if was != now:
                moves.add(what)
        if len(moves) > 1:
            break
    return moves


def _plan(call: Sample, spec: DeviceSpec) -> Plan | str:
    """The plan of a call, or why there is none."""
    try:
        return call.plan(spec)
    except TTSimError as error:
        return str(error)


def _outcome(call: Sample, spec: DeviceSpec) -> tuple[object, object]:
    """What is decided of a call: its operations with their circular buffers; and where everything lies."""
    plan = _plan(call, spec)
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
    return events
