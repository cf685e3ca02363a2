"""Builds a plan step by step; `finish` verifies the plan.

Every tensor of a plan always has an owner. The plan frees its own tensors immediately (`free`), when the call returns
(`adopt`), or never, because the caller receives the tensor (`finish`). The caller keeps its tensors, unless the plan
frees them on the caller's behalf.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from device.errors import DeviceError, NotSimulatedError, TTSimError
from device.memory.layouts import BufferSpec, TensorSpec
from device.memory.memory_config import BufferType
from device.plan import (
    TARGET,
    Allocate,
    CircularBuffer,
    Decision,
    DeviceOp,
    Expected,
    Free,
    Operation,
    Plan,
    Refuse,
    Relocate,
    RequiredRoom,
    Step,
)
from device.spec.device_spec import DeviceSpec

CREATED: Final = "tt::tt_metal::create_device_tensor"
UPLOADED: Final = "Tensor::to_device"


def verify(plan: Plan, inputs: Collection[str]) -> None:
    """Raises AssertionError, with the step, for an inconsistent plan, which is a bug of the plan's author.

    Every tensor exists where it is used, and every buffer that the plan allocates is released once or returned. A plan
    that ends in a refusal returns nothing.
    """
    live, own, results = set(inputs), set[str](), set(plan.results.values())
    for number, step in enumerate(plan.steps):
        used, created = _tensors(step)
        faults = [f"there is no tensor {name}" for name in used if name not in live]
        faults += [f"there is a tensor {name} already" for name in created if name in live]
        if faults:
            raise AssertionError(f"step {number} of the plan, {type(step).__name__}: {faults[0]}")
        if isinstance(step, Free):
            live.discard(step.tensor)
            own.discard(step.tensor)
        live.update(created)
        own.update(created)
    if not plan.refused and (not results <= live or own - results):
        raise AssertionError(f"the plan returns {sorted(results)}, but its tensors at the end are {sorted(own)}")


def _tensors(step: Step) -> tuple[Sequence[str], Sequence[str]]:
    """The tensors that a step uses, and the tensors that it creates."""
    match step:
        case Allocate(tensor=tensor, source=source):
            return () if source is None else (source,), (tensor,)
        case Operation(inputs=inputs, outputs=outputs):
            return inputs, [output.tensor for output in outputs]
        case Free(tensor=tensor) | Relocate(tensor=tensor):
            return (tensor,), ()
    return (), ()


class FreeL1(NamedTuple):
    """The L1 of a core below the tensors that live when a call begins."""

    before_bytes: int  # what the library sees before a call; all that an empty L1 has, with its reserved top
    room_bytes: int  # what is left for tensors, below that top
    hole_bytes: int = 0  # the longest free block between tensors, which new tensors take first
    allocates: bool = True  # whether tensors of the call take L1; not without dispatch

    def without(self, own_bytes: int) -> "FreeL1":
        """The free L1 below tensors of the call that take this many bytes of every bank."""
        if not self.allocates or not own_bytes:
            return self
        if own_bytes <= self.hole_bytes:
            return self._replace(hole_bytes=self.hole_bytes - own_bytes)
        left = max(0, self.room_bytes - own_bytes)
        return FreeL1(left, left, self.hole_bytes)

    def beside(self, result: TensorSpec, spec: DeviceSpec) -> tuple[int, int]:
        """Free bytes that the library assumes when it chooses the program of a result, and the actual free bytes."""
        if result.memory_config.buffer_type is not BufferType.L1:
            return self.before_bytes, self.before_bytes
        taken = result.buffer(spec).bank_bytes
        expected = 0 if result.memory_config.is_sharded() else taken
        return max(0, self.before_bytes - expected), self.without(taken).before_bytes


class PlanTensor(NamedTuple):
    """A tensor of a plan as the next steps see it.

    A *view* (the same buffer under another shape) takes no step: the view keeps the name and changes the spec.
    """

    name: str  # Name of its buffer, unique in the plan
    spec: TensorSpec  # Shape, format, layout and place

    @property
    def in_l1(self) -> bool:
        """Whether the tensor is in L1."""
        return self.spec.memory_config.buffer_type is BufferType.L1


class PlanBuilder:
    """A plan under construction for the machine ``device_spec``; inputs that are None do not exist."""

    def __init__(
        self,
        device_spec: DeviceSpec,
        inputs: Mapping[str, TensorSpec | None],
        *,
        free_l1: FreeL1 | None = None,
    ) -> None:
        """Starts an empty plan; ``free_l1`` is the free L1 below the caller's tensors, by default all of L1."""
        self.device_spec = device_spec
        usable_bytes = device_spec.l1.usable_bytes
        self._free_l1 = FreeL1(usable_bytes, usable_bytes, allocates=False) if free_l1 is None else free_l1
        self._inputs = {name: spec for name, spec in inputs.items() if spec is not None}
        self._tensors = dict(self._inputs)
        self._steps: list[Step] = []
        self._own_l1_bytes: dict[str, int] = {}  # bytes per L1 bank of the plan's own live tensors
        self._adopted: list[str] = []
        self._expected: list[Expected] = []
        self._decisions: dict[Decision, None] = {}
        self._without_values: str | None = None
        self._buffers: dict[int, tuple[TensorSpec, BufferSpec]] = {}  # by the id of a spec

    def tensor(self, name: str) -> PlanTensor:
        """A tensor of the plan or of the caller, with its original spec."""
        return PlanTensor(name, self._tensors[name])

    def decide(self, decision: Decision) -> None:
        """Records a choice made for the caller; a repeated decision counts once."""
        self._decisions |= {decision: None}

    def leave_out_values(self, reason: str) -> None:
        """Marks the plan as without values; a device that computes values refuses the call with this reason."""
        self._without_values = self._without_values or reason

    def allocate(self, name: str, spec: TensorSpec) -> PlanTensor:
        """Allocates a tensor that a later operation writes."""
        return self._allocated(Allocate(name, self._buffer(spec), CREATED), spec)

    def upload(self, name: str, spec: TensorSpec, source: str, op: DeviceOp | None = None) -> PlanTensor:
        """Writes a host tensor to the device, changed by ``op`` if given; the padding of ``spec`` is zero."""
        return self._allocated(Allocate(name, self._buffer(spec), UPLOADED, source, op), spec)

    def run(
        self,
        operation: str,
        op: DeviceOp,
        reads: Sequence[PlanTensor],
        output: PlanTensor | None = None,
        buffers: tuple[CircularBuffer, ...] = (),
        *,
        more_outputs: Sequence[PlanTensor] = (),
        updates: Sequence[PlanTensor] = (),
        resident: Sequence[tuple[str, TensorSpec]] = (),
        dataflow: bool = False,
        key: Hashable = None,
        refused: str | None = None,
        unfinished: str | None = None,
        room: RequiredRoom | None = None,
    ) -> PlanTensor:
        """Adds a device operation, and returns the tensor that it writes: the output, or else the last tensor it reads.

        ``more_outputs`` are allocated after the output, and ``updates`` are tensors that it reads and writes into as
        well; the values of such an operation are a tuple, in this order.
        ``key`` identifies the program; by default the operation, its first input, its result and its attributes.
        ``refused`` says why the program cannot be built, ``unfinished`` why it cannot be finished once its config
        tensors are made; ``room`` is the L1 that it needs.
        """
        for buffer in () if refused or unfinished else buffers:
            if buffer.page_bytes < 1:
                raise NotSimulatedError(
                    f"{operation}: its circular buffer {buffer.name!r} has pages of {buffer.page_bytes} bytes, by "
                    "which the real library divides; such tensors are not simulated"
                )
        outputs, written = ((), reads[-1]) if output is None else ((output, *more_outputs), output)
        source = reads[0].spec if len(reads) > (output is None) else None
        step = Operation(
            name=operation,
            inputs=tuple([tensor.name for tensor in reads]),
            outputs=tuple([Allocate(tensor.name, self._buffer(tensor.spec)) for tensor in outputs]),
            updates=tuple([tensor.name for tensor in updates]),
            resident=tuple([Allocate(name, self._buffer(spec), UPLOADED) for name, spec in resident]),
            circular_buffers=buffers,
            dataflow=dataflow,
            op=op,
            key=(operation, source, written.spec, op) if key is None else key,
            refused=refused,
            unfinished=unfinished,
            room=room,
        )
        self._operated(step, [spec for _, spec in (*outputs, *resident)])
        return written

    def written_into(self, made: PlanTensor, target: PlanTensor) -> PlanTensor:
        """Makes the program that produces a tensor write into the caller's tensor, which becomes its last input.

        All outputs of a program must be the caller's, in order. Returns the caller's tensor as the program's output.
        """
        at, step = next(
            (number, step)
            for number, step in enumerate(self._steps)
            if isinstance(step, Operation) and made.name in step.written
        )
        step = _renamed(step, lambda name: target.name if name == made.name else name)
        self._steps[at] = replace(
            step,
            inputs=(*step.inputs, target.name),
            outputs=tuple([output for output in step.outputs if output.tensor != target.name]),
            updates=(*step.updates, target.name),
            key=(step.key, TARGET),  # a program of its own in the real library's cache
        )
        del self._own_l1_bytes[made.name], self._tensors[made.name]
        return PlanTensor(target.name, made.spec)

    def maker(self, tensor: PlanTensor) -> str:
        """The name of the operation that produces a tensor of the plan; empty for other tensors."""
        steps = [step for step in self._steps if isinstance(step, Operation) and tensor.name in step.written]
        return steps[0].name if steps and self.is_own(tensor) else ""

    def repeat(self, steps: Sequence[Step], prefix: str, again: str) -> None:
        """Writes steps of this plan once more, for tensors whose names begin with ``again`` instead of ``prefix``."""

        def named(tensor: str) -> str:
            return again + tensor[len(prefix) :] if tensor.startswith(prefix) else tensor

        self._insert(steps, self._tensors, named)

    def call(self, plan: Plan, inputs: Mapping[str, PlanTensor], prefix: str) -> Mapping[str, PlanTensor]:
        """Writes the steps of a call's plan, and returns its results by role.

        ``inputs`` are tensors of this plan by the names that the call's plan has for them. The call's own tensors get
        a prefix; hosts' tensors keep their names.
        """

        def named(tensor: str) -> str:
            return inputs[tensor].name if tensor in inputs else prefix + tensor

        self._insert(plan.steps, plan.tensors, named)
        for decision in plan.decisions:
            self.decide(decision)
        if plan.without_values is not None:
            self.leave_out_values(plan.without_values)
        return {
            role: PlanTensor(named(name), plan.tensors[name]) for role, name in plan.results.items() if not plan.refused
        }

    def _insert(self, steps: Sequence[Step], tensors: Mapping[str, TensorSpec], named: Callable[[str], str]) -> None:
        for step in steps:
            match step:
                case Free(tensor=tensor):
                    self.free(self.tensor(named(tensor)))
                case Allocate(tensor=tensor):
                    self._allocated(step._replace(tensor=named(tensor)), tensors[tensor])
                case Relocate(tensor=tensor):
                    self._steps.append(replace(step, tensor=named(tensor)))
                case Operation():
                    specs = [tensors[tensor.tensor] for tensor in (*step.outputs, *step.resident)]
                    self._operated(_renamed(step, named), specs)
                case Refuse():
                    self._steps.append(step)

    def relocate(self, tensor: PlanTensor, op: DeviceOp, *buffers: tuple[CircularBuffer, ...]) -> None:
        """Frees a tensor and allocates it again at the highest free address; ``op`` moves it (buffers: `Relocate`)."""
        self._steps.append(Relocate(tensor.name, self._buffer(tensor.spec), op, *buffers))

    def refuse(self, error: TTSimError) -> None:
        """Ends the call with this error once all earlier steps have run; no step may follow."""
        self._steps.append(Refuse(str(error), type(error)))

    def attempt(self, write: Callable[[], PlanTensor], otherwise: PlanTensor) -> PlanTensor:
        """The tensor that ``write`` writes; ``otherwise`` if the plan ends in a DeviceError that ``write`` raises.

        Steps before the error run first: they may be refused themselves, or find no room. An error of ``write`` before
        the plan has a step is raised.
        """
        try:
            return write()
        except DeviceError as error:
            if not self._steps:
                raise
            self.refuse(error)
            return otherwise

    @property
    def refused(self) -> bool:
        """Whether the plan ends in a refusal."""
        return bool(self._steps) and isinstance(self._steps[-1], Refuse)

    def free(self, *tensors: PlanTensor) -> None:
        """Releases tensors, in order: the plan's own, or the caller's on the caller's behalf."""
        for tensor in tensors:
            self._steps.append(Free(tensor.name))
            self._own_l1_bytes.pop(tensor.name, None)

    def free_own(self, *tensors: PlanTensor, keep: Collection[PlanTensor] = ()) -> None:
        """Frees the tensors that the plan owns, in order, except the buffers of ``keep``."""
        kept = {tensor.name for tensor in keep}
        for tensor in tensors:
            if self.is_own(tensor) and tensor.name not in kept:
                self.free(tensor)

    def expect(self, name: str, op: DeviceOp) -> None:
        """A tensor that is on the device is read as if ``op`` had prepared it."""
        self._expected.append(Expected(name, op))

    def adopt(self, tensor: PlanTensor) -> None:
        """Has a tensor of the plan released when the call returns, in the order of adoption."""
        self._adopted.append(tensor.name)

    def is_own(self, tensor: PlanTensor) -> bool:
        """Whether the plan allocated a tensor and has not released it."""
        return tensor.name in self._own_l1_bytes

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps so far."""
        return tuple(self._steps)

    @property
    def own_l1_bytes(self) -> int:
        """Bytes of every L1 bank that the plan's own tensors take at this point."""
        return sum(self._own_l1_bytes.values())

    @property
    def free_l1(self) -> FreeL1:
        """The L1 below the caller's tensors and the plan's own at this point."""
        return self._free_l1.without(self.own_l1_bytes)

    def free_others(self, survivor: PlanTensor) -> None:
        """Releases all tensors of the plan except ``survivor``, in the order of allocation."""
        self.free(*[self.tensor(name) for name in self._own_l1_bytes if name != survivor.name])

    def free_adopted(self) -> None:
        """Releases the adopted tensors that are still live."""
        self.free_own(*map(self.tensor, self._adopted))

    def finish(self, results: Mapping[str, PlanTensor]) -> Plan:
        """The plan that returns these tensors by role, once `verify` accepts it."""
        plan = Plan(
            steps=tuple(self._steps),
            tensors={**self._tensors, **dict(results.values())},
            results={role: tensor.name for role, tensor in results.items()},
            expected=tuple(self._expected),
            decisions=tuple(self._decisions),
            without_values=self._without_values,
        )
        verify(plan, self._inputs)
        return plan

    def _buffer(self, spec: TensorSpec) -> BufferSpec:
        """The buffer of a tensor, cached by the identity of its spec, which several tensors often share."""
        known = self._buffers.get(id(spec))
        if known is None:
            known = self._buffers[id(spec)] = spec, spec.buffer(self.device_spec)  # keeps the id valid
        return known[1]

    def _allocated(self, step: Allocate, spec: TensorSpec) -> PlanTensor:
        self._steps.append(step)
        self._hold(step, spec)
        return PlanTensor(step.tensor, spec)

    def _operated(self, step: Operation, specs: Sequence[TensorSpec]) -> None:
        """Adds an operation with the specs of its outputs and then of its resident tensors."""
        self._steps.append(step)
        outputs = len(step.outputs)
        for output, spec in zip(step.outputs, specs[:outputs], strict=True):
            self._hold(output, spec)
        for tensor, spec in zip(step.resident, specs[outputs:], strict=True):
            self._tensors[tensor.tensor] = spec

    def _hold(self, allocation: Allocate, spec: TensorSpec) -> None:
        in_l1 = allocation.buffer.buffer_type is BufferType.L1
        self._own_l1_bytes[allocation.tensor] = allocation.buffer.bank_bytes if in_l1 else 0
        self._tensors[allocation.tensor] = spec


def _renamed(step: Operation, named: Callable[[str], str]) -> Operation:
    def allocations(steps: Iterable[Allocate]) -> tuple[Allocate, ...]:
        return tuple([allocation._replace(tensor=named(allocation.tensor)) for allocation in steps])

    return replace(
        step,
        inputs=tuple([named(tensor) for tensor in step.inputs]),
        updates=tuple([named(tensor) for tensor in step.updates]),
        outputs=allocations(step.outputs),
        resident=allocations(step.resident),
        circular_buffers=tuple(
            [buffer._replace(view_of=buffer.view_of and named(buffer.view_of)) for buffer in step.circular_buffers]
        ),
    )


def plan_of(
    inputs: TensorSpec | Mapping[str, TensorSpec | None],
    spec: DeviceSpec,
    write: Callable[..., PlanTensor],
    *,
    attempts: bool = False,
    free_l1: FreeL1 | None = None,
) -> Plan:
    """A plan that ``write`` builds from the given inputs, or from a single "input"; its result is "output".

    ``write`` takes the builder and the inputs in order. With ``attempts``, the plan contains the steps before a
    DeviceError and ends with the error; otherwise the error is raised.
    """
    named = {"input": inputs} if isinstance(inputs, TensorSpec) else inputs
    builder = PlanBuilder(spec, named, free_l1=free_l1)
    tensors = [builder.tensor(name) for name, source in named.items() if source is not None]
    result = builder.attempt(lambda: write(builder, *tensors), tensors[0]) if attempts else write(builder, *tensors)
    return builder.finish({"output": result})
