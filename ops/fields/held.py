"""Plans that are held while the machine changes: their device operations, and the queue in which they are launched."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from device.errors import TTSimError
from device.plan import Operation, Plan, Relocate
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles
from ops.fields.samples import Sample
from ops.launch.queue import Launch, between_kernels_nanoseconds
from ops.readings.cycles import TimedOperation, run_cycles
from ops.readings.launches import launches_of

LAUNCH: Final = "launch"


class Held(Protocol):
    """What takes time on a machine that may change."""

    @property
    def program(self) -> str:
        """The folder of programs that it is of; `LAUNCH` for what passes between them."""
        ...

    @property
    def name(self) -> str:
        """What it is."""
        ...

    def cycles(self, spec: DeviceSpec) -> float:
        """What it takes on a device, in cycles of its cores."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class HeldOperation:
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
class HeldLaunches:
    """Programs with the cycles that their kernels take on one device, one after the other."""

    program: str  # `LAUNCH`
    name: str  # What they are
    queue: tuple[Launch, ...]

    def cycles(self, spec: DeviceSpec) -> float:
        """What passes between the kernels, in all ways to launch them together."""
        passed = sum(between_kernels_nanoseconds(self.queue, spec).values())
        return passed * spec.clock_hz / 1e9


def held_operations(calls: Iterable[Sample], spec: DeviceSpec) -> tuple[HeldOperation, ...]:
    """Every device operation of the calls' plans, each once; a call that the device can not do has none."""
    found: dict[object, HeldOperation] = {}
    for call in calls:
        plan = plan_or_refusal(call, spec)
        if isinstance(plan, str):
            continue
        for step in plan.steps:
            if isinstance(step, Operation | Relocate) and step.work is not None:
                one = _held(step, plan)
                found.setdefault((one.plan.steps, *one.plan.tensors.values()), one)
    return tuple(found.values())


def with_model(held: Iterable[HeldOperation], spec: DeviceSpec) -> tuple[HeldOperation, ...]:
    """Those whose cycles somebody has modeled."""
    return tuple(one for one in held if one.timed(spec).cycles is not None)


def held_launches(calls: Iterable[Sample], spec: DeviceSpec) -> HeldLaunches:
    """The launches of all programs of some calls."""
    queue: list[Launch] = []
    for call in calls:
        plan = plan_or_refusal(call, spec)
        if isinstance(plan, Plan):
            queue += launches_of(plan, run_cycles(plan, spec).operations, spec)
    return HeldLaunches(LAUNCH, "programs of all calls", tuple(queue))


def plan_or_refusal(call: Sample, spec: DeviceSpec) -> Plan | str:
    """The plan of a call, or why there is none."""
    try:
        return call.plan(spec)
    except TTSimError as error:
        return str(error)


def _held(step: Operation | Relocate, plan: Plan) -> HeldOperation:
    """One step alone, with its first and its last tensor."""
    if isinstance(step, Relocate):
        name, source, target = "Move", step.tensor, step.tensor
    else:
        name = step.name.removesuffix("DeviceOperation")
        target = step.outputs[0].tensor if step.outputs else step.inputs[-1]
        source = step.inputs[0] if step.inputs else target
    alone = Operation(name=name, inputs=("read", "written"), work=step.work)
    tensors = {"read": plan.tensors[source], "written": plan.tensors[target]}
    program = type(step.work).__module__.split(".")[2]
    return HeldOperation(program, name, Plan(steps=(alone,), tensors=tensors))
