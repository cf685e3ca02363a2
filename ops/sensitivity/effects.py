"""The effects of a field on the plans of a set of calls, the memory of their tensors, and the cycles of fixed plans."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import log
from types import MappingProxyType
from typing import Final, TypeAlias

from device.errors import TTSimError
from device.machine import Machine
from device.plan import Event, Operation, OperationBegin, Plan, Refuse, Relocate, Step
from device.spec.device_spec import DeviceSpec
from device.time.dram import DramCosts
from device.time.energy import AreaCosts, EnergyCosts
from device.time.stages import OperationCycles
from ops.launch import Launch, between_kernels_nanoseconds
from ops.passes.cycles import launches_of, run_cycles
from ops.passes.memory import run_memory
from ops.programs.data_movement.copy import Conversion
from ops.sensitivity.fields import Field, others, scaled
from ops.sensitivity.read_set import fields_asked
from ops.sensitivity.samples import L1_SMALL_BYTES, Sample

PLAN: Final = "plan"
MEMORY: Final = "memory"
VALUES: Final = "values"
CYCLES: Final = "cycles"
LAUNCHES: Final = "launches"
REPORT: Final = "report"
PRICES: Final = (EnergyCosts.TABLE, AreaCosts.TABLE, DramCosts.TABLE)  # of reports alone: they decide nothing
NEAR = (2.0, 0.5)
FAR = tuple(2.0 ** (sign * step) for step in range(2, 13) for sign in (-1, 1))  # where a limit may bind at last
SAME = 1e-9  # of cycles


@dataclass(frozen=True, slots=True, eq=False)
class FixedOperation:
    """A device operation with a cycle model, as planned on one device."""

    program: str
    name: str
    plan: Plan  # That operation alone
    moves: str = CYCLES  # What moves with its cycles

    def operation(self, spec: DeviceSpec) -> OperationCycles:
        """The detailed cycles of the operation on a device."""
        (timed,) = run_cycles(self.plan, spec).operations
        assert timed.cycles is not None
        return timed.cycles

    def cycles(self, spec: DeviceSpec) -> float:
        """The cycles of the operation on a device."""
        return self.operation(spec).cycles


@dataclass(frozen=True, slots=True, eq=False)
class FixedLaunches:
    """Programs with the cycles of their kernels on one device, in sequence."""

    queue: tuple[Launch, ...]
    program: str = "launch"
    moves: str = LAUNCHES  # What moves with its cycles
    name: str = "programs of all calls"

    def cycles(self, spec: DeviceSpec) -> float:
        """The sum of the dispatch overhead over all ways of launching the programs on a device."""
        passed = sum(between_kernels_nanoseconds(self.queue, spec).values())
        return passed * spec.clock_hz / 1e9


Fixed: TypeAlias = FixedOperation | FixedLaunches


def fixed_operations(calls: Iterable[Sample], spec: DeviceSpec) -> tuple[FixedOperation, ...]:
    """Each distinct device operation with a cycle model in the calls' plans; without refused calls."""
    operations: dict[object, FixedOperation] = {}
    for plan in _plans(calls, spec):
        for step in plan.steps:
            if isinstance(step, Operation | Relocate) and step.op is not None:
                fixed = _fixed(step, plan)
                operations.setdefault((fixed.plan.steps, *fixed.plan.tensors.values()), fixed)
    return tuple(
        fixed for fixed in operations.values() if all(timed.cycles for timed in run_cycles(fixed.plan, spec).operations)
    )


def fixed_launches(calls: Iterable[Sample], spec: DeviceSpec) -> FixedLaunches:
    """The launches of all programs of some calls."""
    queues = (launches_of(plan, run_cycles(plan, spec).operations, spec) for plan in _plans(calls, spec))
    return FixedLaunches(tuple(chain.from_iterable(queues)))


def plan_or_refusal(call: Sample, spec: DeviceSpec) -> Plan | str:
    """The plan of a call, or the text of its refusal."""
    try:
        return call.plan(spec)
    except TTSimError as error:
        return str(error)


def _plans(calls: Iterable[Sample], spec: DeviceSpec) -> Iterator[Plan]:
    plans = (plan_or_refusal(call, spec) for call in calls)
    return (plan for plan in plans if isinstance(plan, Plan) and not any(map(_is_refused, plan.steps)))


def _is_refused(step: Step) -> bool:
    """Whether the device refuses a call at a step, so that the call has no cycles."""
    return isinstance(step, Refuse) or (isinstance(step, Operation) and step.refused is not None)


def _fixed(step: Operation | Relocate, plan: Plan) -> FixedOperation:
    """One step with the tensors that it reads and writes."""
    sources: Sequence[str]
    if isinstance(step, Relocate):
        name, sources, target = "Move", (step.tensor,), step.tensor
    else:
        name = step.name.removesuffix("DeviceOperation")
        target = step.written[0]
        sources = step.inputs or (target,)
    tensors = {f"read_{place}": plan.tensors[source] for place, source in enumerate(sources)}
    tensors["written"] = plan.tensors[target]
    alone = Operation(name=name, inputs=tuple(tensors), op=step.op)
    # The program is the folder in `ops.programs`, or the file of the family among data movements
    folder, *files = type(step.op).__module__.split(".")[2:]
    program = files[0] if folder == "data_movement" else folder
    if name.startswith(Conversion.TYPECAST.value):  # a copy that computes
        program = "typecast"
    return FixedOperation(program, name, Plan(steps=(alone,), tensors=tensors))


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The effects of a field."""

    field: Field
    moves: tuple[str, ...]  # Of plan, memory, values, cycles, launches and report
    # Of each program whose cycles move, log(cycles) over log(figure), the mean of its operations: between the value and
    # its double or half, whichever moves more; farther off where neither does. Empty where nobody asked for it.
    elasticity: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Before:
    """Decisions and cycles before a field is changed."""

    spec: DeviceSpec
    # Each call with its decisions, the places of its tensors, and the fields of the device that it depends on
    calls: tuple[tuple[Sample, tuple[object, object], frozenset[str]], ...]
    # Each fixed operation with its cycles, and the fields that these depend on
    cycles: tuple[tuple[Fixed, float, frozenset[str]], ...]

    def retimed(self, field: Field, device: DeviceSpec, known: Collection[str] = ()) -> Iterator[tuple[Fixed, float]]:
        """Fixed operations that read a field, with their cycles on a device relative to before.

        Operations whose effect is already ``known`` are skipped. On a device with fewer columns or rows of cores, which
        lacks cores of the plans, all operations are skipped.
        """
        if device.grid.cols >= self.spec.grid.cols and device.grid.rows >= self.spec.grid.rows:
            for fixed, cycles, read in self.cycles:
                if field.name in read and fixed.moves not in known:
                    yield fixed, fixed.cycles(device) / cycles

    def replanned(self, field: Field, device: DeviceSpec) -> set[str]:
        """The kinds of decisions (plans, memory) that differ on a device with another value of a field."""
        moves: set[str] = set()
        for call, outcome, read in self.calls:
            if field.name in read:
                pairs = zip((PLAN, MEMORY), outcome, _outcome(call, device), strict=True)
                moves |= {what for what, was, now in pairs if was != now}
            if len(moves) > 1:
                break
        return moves


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
    """The effects of each field on the plans, memory, values and cycles of some calls.

    ``planned`` are further calls whose time is not compared. A number without an effect at its double and its half is
    tried with the ``far`` factors. Without ``elasticities`` the search is much faster. ``watch`` is called after each
    field.
    """
    if not fields:
        return ()
    fixed: tuple[Fixed, ...] = (*fixed_operations(calls, spec), fixed_launches(calls, spec))
    before = _Before(
        spec,
        tuple((call, _outcome(call, spec), fields_asked(partial(_outcome, call), spec)) for call in (*planned, *calls)),
        tuple((operation, operation.cycles(spec), fields_asked(operation.cycles, spec)) for operation in fixed),
    )
    moved = []
    for field in fields:
        moved.append(_effect(field, far, before, elasticities=elasticities and field.numeric))
        if watch is not None:
            watch()
    return tuple(moved)


def _effect(field: Field, far: Sequence[float], before: _Before, *, elasticities: bool) -> Effect:
    """The effects of a number at its double and its half, or at the first factor of ``far`` with an effect."""
    moves: set[str] = set()
    if field.path[0] in PRICES:
        return Effect(field=field, moves=(REPORT,), elasticity=MappingProxyType({}))
    if field.numeric:
        rounds: Iterable[Sequence[float]] = [NEAR, *((factor,) for factor in far)]
    else:  # a text changes reports
        moves = {REPORT} if isinstance(field.value, str) else set()
        rounds = [()]
    slopes: dict[Fixed, list[float]] = {}
    for factors in rounds:
        slopes = {fixed: [0.0] for fixed, _, _ in before.cycles}
        scales = ((factor, scaled(before.spec, field, factor)) for factor in factors)
        for factor, device in scales if field.numeric else enumerate(others(before.spec, field)):
            if device is None:
                continue
            for fixed, ratio in before.retimed(field, device, known=() if elasticities else moves):
                if abs(ratio - 1) > SAME:
                    moves.add(fixed.moves)
                if elasticities:
                    slopes[fixed].append(log(ratio) / log(factor))
            moves |= before.replanned(field, device)
        if moves:
            break
    if isinstance(field.value, bool) and CYCLES not in moves:
        moves.add(VALUES)  # which are not measured
    ordered = tuple(kind for kind in (PLAN, MEMORY, VALUES, CYCLES, LAUNCHES, REPORT) if kind in moves)
    return Effect(field=field, moves=ordered, elasticity=MappingProxyType(_elasticity(slopes)))


def _elasticity(slopes: Mapping[Fixed, Sequence[float]]) -> dict[str, float]:
    """The mean over the operations of each program whose cycles change, each at its largest slope."""
    programs: dict[str, list[float]] = {}
    for fixed, own in slopes.items():
        programs.setdefault(fixed.program, []).append(max(own, key=abs))
    return {
        program: sum(largest) / len(largest)
        for program, largest in programs.items()
        if any(abs(slope) > SAME for slope in largest)
    }


def _outcome(call: Sample, spec: DeviceSpec) -> tuple[object, object]:
    """The decisions about a call: its operations with their circular buffers, and the memory of all tensors."""
    plan = plan_or_refusal(call, spec)
    if isinstance(plan, str):
        return plan, None
    decided = [
        (step.name, step.op, step.circular_buffers, step.refused) if isinstance(step, Operation) else type(step)
        for step in plan.steps
    ]
    events: list[Event] = []
    try:
        with Machine(spec, l1_small_bytes=L1_SMALL_BYTES) as machine:
            machine.recorders.append(events)
            buffers = {name: machine.allocate(tensor.buffer(spec), name) for name, tensor in call.given.items()}
            run_memory(plan, machine, buffers)
    except TTSimError as error:
        return decided, str(error)
    return decided, [event._replace(spec=None) if isinstance(event, OperationBegin) else event for event in events]
