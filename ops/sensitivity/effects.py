"""What a field moves: the plans of a set of calls, where their tensors lie, and the cycles of plans that are held."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import log
from types import MappingProxyType
from typing import Final, TypeAlias

from device.errors import TTSimError
from device.machine import Machine
from device.plan import Event, Operation, OperationBegin, Plan, Relocate
from device.spec.device_spec import DeviceSpec
from device.time.network import torus_of
from device.time.stages import OperationCycles
from ops.launch import Launch, between_kernels_nanoseconds
from ops.passes.cycles import TimedOperation, launches_of, run_cycles
from ops.passes.memory import run_memory
from ops.sensitivity.fields import Field, others, scaled
from ops.sensitivity.read_set import fields_asked
from ops.sensitivity.samples import L1_SMALL_BYTES, Sample

LAUNCH: Final = "launch"


@dataclass(frozen=True, slots=True, eq=False)
class FixedOperation:
    """A device operation as one device's plan has it."""

    program: str
    name: str
    plan: Plan  # That operation alone

    def timed(self, spec: DeviceSpec, *, contention: bool = True) -> TimedOperation:
        """What it takes on a device, if that is known."""
        (timed,) = run_cycles(self.plan, spec, contention=contention).operations
        return timed

    def operation(self, spec: DeviceSpec) -> OperationCycles:
        """What an operation of `with_model` takes, in all detail."""
        timed = self.timed(spec).cycles
        assert timed is not None
        return timed

    def cycles(self, spec: DeviceSpec) -> float:
        """What an operation of `with_model` takes."""
        return self.operation(spec).cycles


@dataclass(frozen=True, slots=True, eq=False)
class FixedLaunches:
    """Programs with the cycles that their kernels take on one device, one after the other."""

    program: str  # `LAUNCH`
    name: str  # What they are
    queue: tuple[Launch, ...]

    def cycles(self, spec: DeviceSpec) -> float:
        """What passes between the kernels, in all ways to launch them together."""
        passed = sum(between_kernels_nanoseconds(self.queue, spec).values())
        return passed * spec.clock_hz / 1e9


Held: TypeAlias = FixedOperation | FixedLaunches


def fixed_operations(calls: Iterable[Sample], spec: DeviceSpec) -> tuple[FixedOperation, ...]:
    """Every device operation of the calls' plans, each once; a call that the device can not do has none."""
    found: dict[object, FixedOperation] = {}
    for call in calls:
        plan = plan_or_refusal(call, spec)
        if isinstance(plan, str):
            continue
        for step in plan.steps:
            if isinstance(step, Operation | Relocate) and step.op is not None:
                one = _held(step, plan)
                found.setdefault((one.plan.steps, *one.plan.tensors.values()), one)
    return tuple(found.values())


def with_model(held: Iterable[FixedOperation], spec: DeviceSpec) -> tuple[FixedOperation, ...]:
    """Those whose cycles somebody has modeled."""
    return tuple(one for one in held if one.timed(spec).cycles is not None)


def fixed_launches(calls: Iterable[Sample], spec: DeviceSpec) -> FixedLaunches:
    """The launches of all programs of some calls."""
    queue: list[Launch] = []
    for call in calls:
        plan = plan_or_refusal(call, spec)
        if isinstance(plan, Plan):
            queue += launches_of(plan, run_cycles(plan, spec).operations, spec)
    return FixedLaunches(LAUNCH, "programs of all calls", tuple(queue))


def plan_or_refusal(call: Sample, spec: DeviceSpec) -> Plan | str:
    """The plan of a call, or why there is none."""
    try:
        return call.plan(spec)
    except TTSimError as error:
        return str(error)


def _program_of(op: type) -> str:
    """The name of a program: its folder in `ops.programs`, or the file of its family among data movements."""
    folder, *files = op.__module__.split(".")[2:]
    return files[0] if folder == "data_movement" else folder


def _held(step: Operation | Relocate, plan: Plan) -> FixedOperation:
    """One step alone, with its first and its last tensor."""
    if isinstance(step, Relocate):
        name, source, target = "Move", step.tensor, step.tensor
    else:
        name = step.name.removesuffix("DeviceOperation")
        target = step.outputs[0].tensor if step.outputs else step.inputs[-1]
        source = step.inputs[0] if step.inputs else target
    alone = Operation(name=name, inputs=("read", "written"), op=step.op)
    tensors = {"read": plan.tensors[source], "written": plan.tensors[target]}
    return FixedOperation(_program_of(type(step.op)), name, Plan(steps=(alone,), tensors=tensors))


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
class _SampleMachine:
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
    held: tuple[Held, ...] = (*with_model(fixed_operations(calls, spec), spec), fixed_launches(calls, spec))
    every = (*planned, *calls)
    ground = _SampleMachine(
        spec=spec,
        calls=every,
        planned={call.name: _outcome(call, spec) for call in every},
        before={one: one.cycles(spec) for one in held},
        asked={call.name: fields_asked(partial(_outcome, call), spec) for call in every}
        | {one: fields_asked(one.cycles, spec) for one in held},
    )
    found = []
    for field in fields:
        found.append(_effect(field, far, ground, elasticities=elasticities))
        if watch is not None:
            watch()
    return tuple(found)


def _effect(field: Field, far: Sequence[float], ground: _SampleMachine, *, elasticities: bool) -> Effect:
    """What a field moves: a number at its double and its half, or as far from it as it takes to move something."""
    moves: set[str] = set()
    elasticity: dict[str, float] = {}
    if field.numeric:
        further = ({factor: device} for factor, device in _changed(ground.spec, field, far))
        rounds: Iterable[Mapping[float, DeviceSpec]] = chain([dict(_changed(ground.spec, field, NEAR))], further)
    else:  # a flag moves values, a text what is shown
        moves = {VALUES} if isinstance(field.value, bool) else {REPORT} if isinstance(field.value, str) else set()
        rounds = [dict(enumerate(others(ground.spec, field)))]
    for changed in rounds:
        if field.numeric and elasticities:
            elasticity = _elasticity(field, changed, ground)
            moves = {LAUNCHES if program == LAUNCH else CYCLES for program in elasticity}
        for device in changed.values():
            if not (field.numeric and elasticities):
                moves |= _retimed(field, device, ground, moves)
            moves |= _replanned(field, device, ground)
        if moves:
            break
    ordered = tuple(kind for kind in (PLAN, MEMORY, VALUES, CYCLES, LAUNCHES, REPORT) if kind in moves)
    return Effect(field=field, moves=ordered, elasticity=MappingProxyType(elasticity))


def _retimed(field: Field, changed: DeviceSpec, ground: _SampleMachine, known: Collection[str]) -> set[str]:
    """Whether kernels take another time on a device, and what passes between them; what is known is not looked at."""
    moves: set[str] = set()
    for one, was in ground.before.items() if _has_cores_of(changed, ground.spec) else ():
        kind = LAUNCHES if one.program == LAUNCH else CYCLES
        if kind in known or kind in moves or field.name not in ground.asked[one]:
            continue
        if abs(one.cycles(changed) / was - 1) > SAME:
            moves.add(kind)
    return moves


def _changed(spec: DeviceSpec, field: Field, factors: Iterable[float]) -> Iterator[tuple[float, DeviceSpec]]:
    """Devices with so many times as much of a field, as far as there are such devices."""
    for factor in factors:
        if (changed := scaled(spec, field, factor)) is not None:
            yield factor, changed


def _elasticity(field: Field, changed: Mapping[float, DeviceSpec], ground: _SampleMachine) -> dict[str, float]:
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


def _replanned(field: Field, changed: DeviceSpec, ground: _SampleMachine) -> set[str]:
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
        (step.name, step.op, step.circular_buffers, step.refused) if isinstance(step, Operation) else type(step)
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
