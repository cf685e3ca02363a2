"""Writes a plan: steps are added one after the other, and `finish` verifies the plan.

Every tensor of a plan has an owner at every moment. The plan releases what it allocates: at once (`free`), when the
call returns (`adopt`), or never, because the caller gets the tensor (`finish`). The caller's tensors stay the caller's,
unless the plan frees them on the caller's behalf.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from device.errors import DeviceError, TTSimError
from device.memory.layouts import BufferSpec, TensorSpec
from device.memory.memory_config import BufferType
from device.plan import (
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
    Step,
)
from device.spec.device_spec import DeviceSpec


def verify(plan: Plan, *, given: Collection[str], known_works: Collection[type] | None = None) -> None:
    """Raises AssertionError, with the step, for an inconsistent plan, which is a bug of the plan's author.

    Every name is known where it is used, every buffer that the plan allocates is released once or returned, nothing is
    read or released after its release, and every op has a model. A plan that ends in a refusal returns nothing.
    """
    live: set[str] = set(given)
    own: set[str] = set()
    for number, step in enumerate(plan.steps):
        fault = _fault(step, live, own)
        op = None if isinstance(step, Free | Refuse) else step.op
        if fault is None and known_works is not None and op is not None and type(op) not in known_works:
            fault = f"nothing is known of the work {type(op).__name__}"
        if fault is not None:
            raise AssertionError(f"step {number} of the plan, {_named(step)}: {fault}")
    if plan.refused:
        return
    results = set(plan.results.values())
    if missing := sorted(results - live):
        raise AssertionError(f"the plan returns {', '.join(missing)}, which is not there at its end")
    if left := sorted(own - results):
        raise AssertionError(f"the plan neither releases nor returns {', '.join(left)}")


def _fault(step: Step, live: set[str], own: set[str]) -> str | None:
    """The fault of a step; None updates the names of readable tensors and of the plan's own to those after the step."""
    created: list[str] = []
    match step:
        case Allocate():
            if step.source is not None and step.source not in live:
                return f"its source {step.source} is not there"
            created = [step.tensor]
        case Free():
            if step.tensor not in live:
                return "it is not there, or was released before"
            live.discard(step.tensor)
            own.discard(step.tensor)
        case Relocate():
            return None if step.tensor in live else "it is not there"
        case Operation():
            for name in step.inputs:
                if name not in live:
                    return f"its input {name} is not there"
            created = [output.tensor for output in step.outputs]
            seen = {*step.inputs, *created, *[tensor.tensor for tensor in step.resident]}
            for buffer in step.circular_buffers:
                if buffer.view_of is not None and buffer.view_of not in seen:
                    return (
                        f"its circular buffer {buffer.name} lies on {buffer.view_of}, which it neither reads nor makes"
                    )
    for name in created:
        if name in live:
            return f"there is a tensor {name} already"
        live.add(name)
        own.add(name)
    return None


def _named(step: Step) -> str:
    """A step in an error."""
    if isinstance(step, Refuse):
        return f"Refuse {step.text}"
    return step.name if isinstance(step, Operation) else f"{type(step).__name__} {step.tensor}"


CREATED: Final = "tt::tt_metal::create_device_tensor"
UPLOADED: Final = "Tensor::to_device"


class PlanTensor(NamedTuple):
    """A tensor of a plan as the next steps see it.

    A *view* (the same buffer under another shape) takes no step: the view keeps the name and changes the spec.
    """

    name: str  # Of the buffer it lies in, unique in the plan
    spec: TensorSpec  # Shape, format, layout and place

    @property
    def in_l1(self) -> bool:
        """Whether the tensor lies in L1."""
        return self.spec.memory_config.buffer_type is BufferType.L1


class PlanBuilder:
    """A plan under construction for the machine ``device_spec``."""

    def __init__(self, device_spec: DeviceSpec, inputs: Mapping[str, TensorSpec]) -> None:
        """Starts an empty plan."""
        self.device_spec = device_spec
        self._inputs = dict(inputs)
        self._tensors = dict(inputs)
        self._steps: list[Step] = []
        self._own_l1_bytes: dict[str, int] = {}  # bytes per L1 bank of the plan's own live tensors
        self._freed: set[str] = set()
        self._adopted: list[str] = []
        self._expected: list[Expected] = []
        self._decisions: dict[Decision, None] = {}
        self._buffers: dict[int, tuple[TensorSpec, BufferSpec]] = {}  # by the id of a spec

    def tensor(self, name: str) -> PlanTensor:
        """A tensor of the plan or of the caller, with its original spec."""
        return PlanTensor(name, self._tensors[name])

    def decide(self, decision: Decision) -> None:
        """Records a choice made for the caller; a repeated decision counts once."""
        self._decisions |= {decision: None}

    def allocate(self, name: str, spec: TensorSpec, *, by: str = CREATED) -> PlanTensor:
        """Allocates a tensor that a later operation writes."""
        return self._allocated(Allocate(name, self._buffer(spec), by), spec)

    def upload(self, name: str, spec: TensorSpec, source: str, op: DeviceOp | None = None) -> PlanTensor:
        """Writes a host tensor to the device, changed by ``op`` if given; the padding of ``spec`` is zero."""
        return self._allocated(Allocate(name, self._buffer(spec), UPLOADED, source, op), spec)

    def run(
        self,
        operation: str,
        op: DeviceOp,
        reads: Sequence[PlanTensor],
        *,
        output: PlanTensor | None = None,
        resident: Sequence[PlanTensor] = (),
        circular_buffers: tuple[CircularBuffer, ...] = (),
        dataflow: bool = False,
        key: Hashable = None,
        refused: str | None = None,
        unfinished: str | None = None,
    ) -> PlanTensor:
        """Adds a device operation, and returns the tensor that it writes: the output, or else the last tensor it reads.

        ``key`` identifies the program; by default the operation, its first input, its result and its attributes.
        ``refused`` says why the program cannot be built, ``unfinished`` why it cannot be finished once its config
        tensors are made.
        """
        written = reads[-1] if output is None else output
        source = reads[0].spec if len(reads) > (output is None) else None
        self._operated(
            Operation(
                name=operation,
                inputs=tuple([tensor.name for tensor in reads]),
                outputs=() if output is None else (Allocate(output.name, self._buffer(output.spec)),),
                resident=tuple([Allocate(tensor.name, self._buffer(tensor.spec), UPLOADED) for tensor in resident]),
                circular_buffers=circular_buffers,
                dataflow=dataflow,
                op=op,
                key=(operation, source, written.spec, op) if key is None else key,
                refused=refused,
                unfinished=unfinished,
            ),
            () if output is None else (output.spec,),
        )
        for tensor in resident:
            self._tensors[tensor.name] = tensor.spec
        return written

    def repeat(self, steps: Sequence[Step], prefix: str, again: str) -> None:
        """Writes steps of this plan once more, for tensors whose names begin with ``again`` instead of ``prefix``."""

        def named(tensor: str) -> str:
            return again + tensor[len(prefix) :] if tensor.startswith(prefix) else tensor

        for step in steps:
            match step:
                case Free(tensor=tensor):
                    self.free(self.tensor(named(tensor)))
                case Allocate(tensor=tensor):
                    self._allocated(step._replace(tensor=named(tensor)), self._tensors[tensor])
                case Relocate(tensor=tensor):
                    self._steps.append(replace(step, tensor=named(tensor)))
                case Operation():
                    self._operated(_renamed(step, named), [self._tensors[output.tensor] for output in step.outputs])
                    self._tensors.update(
                        (named(output.tensor), self._tensors[output.tensor]) for output in step.resident
                    )

    def relocate(self, tensor: PlanTensor, op: DeviceOp, *buffers: tuple[CircularBuffer, ...]) -> None:
        """Releases a tensor and allocates it again, as high as it can lie; ``op`` moves it (buffers: `Relocate`)."""
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
            if not self.begun:
                raise
            self.refuse(error)
            return otherwise

    @property
    def begun(self) -> bool:
        """Whether the plan has a step."""
        return bool(self._steps)

    @property
    def refused(self) -> bool:
        """Whether the plan ends in a refusal."""
        return bool(self._steps) and isinstance(self._steps[-1], Refuse)

    def free(self, *tensors: PlanTensor) -> None:
        """Releases tensors, in order: the plan's own, or the caller's on the caller's behalf."""
        for tensor in tensors:
            self._steps.append(Free(tensor.name))
            self._own_l1_bytes.pop(tensor.name, None)
            self._freed.add(tensor.name)

    def expect(self, name: str, op: DeviceOp) -> None:
        """A tensor that is on the device is read as if ``op`` had prepared it."""
        self._expected.append(Expected(name, op))

    def adopt(self, tensor: PlanTensor) -> None:
        """Has a tensor of the plan released when the call returns, in the order of adoption."""
        self._adopted.append(tensor.name)

    def is_live(self, tensor: PlanTensor) -> bool:
        """Whether a tensor has not been released."""
        return tensor.name not in self._freed

    def is_own(self, tensor: PlanTensor) -> bool:
        """Whether the plan allocated a tensor and has not released it."""
        return tensor.name in self._own_l1_bytes

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps so far."""
        return tuple(self._steps)

    @property
    def held_l1_bytes(self) -> int:
        """Bytes of every L1 bank that the plan's own tensors take at this point."""
        return sum(self._own_l1_bytes.values())

    def free_others(self, *survivors: PlanTensor) -> None:
        """Releases all tensors of the plan except ``survivors``, in the order of allocation."""
        names = {tensor.name for tensor in survivors}
        self.free(*(self.tensor(name) for name in list(self._own_l1_bytes) if name not in names))

    def free_adopted(self) -> None:
        """Releases the adopted tensors that are still live."""
        self.free(*(self.tensor(name) for name in self._adopted if name in self._own_l1_bytes))

    def finish(
        self,
        results: Mapping[str, str],
        seen: Mapping[str, TensorSpec] | None = None,
        *,
        known_works: Collection[type] | None = None,
    ) -> Plan:
        """The plan, once `verify` accepts it; ``seen`` are the specs of results that are views."""
        tensors = {**self._tensors, **(seen or {})}
        steps, expected, chosen = tuple(self._steps), tuple(self._expected), tuple(self._decisions)
        plan = Plan(steps=steps, tensors=tensors, results=dict(results), expected=expected, decisions=chosen)
        verify(plan, given=self._inputs, known_works=known_works)
        return plan

    def _buffer(self, spec: TensorSpec) -> BufferSpec:
        """The buffer of a tensor, by the spec's identity: several tensors often share one spec."""
        known = self._buffers.get(id(spec))
        if known is None:
            known = self._buffers[id(spec)] = spec, spec.buffer(self.device_spec)  # keeps the id valid
        return known[1]

    def _allocated(self, step: Allocate, spec: TensorSpec) -> PlanTensor:
        self._steps.append(step)
        self._hold(step, spec)
        return PlanTensor(step.tensor, spec)

    def _operated(self, step: Operation, specs: Sequence[TensorSpec]) -> None:
        self._steps.append(step)
        for result, spec in zip(step.outputs, specs, strict=True):
            self._hold(result, spec)

    def _hold(self, allocation: Allocate, spec: TensorSpec) -> None:
        in_l1 = allocation.buffer.buffer_type is BufferType.L1
        self._own_l1_bytes[allocation.tensor] = allocation.buffer.bank_bytes if in_l1 else 0
        self._freed.discard(allocation.tensor)
        self._tensors[allocation.tensor] = spec


def _renamed(step: Operation, named: Callable[[str], str]) -> Operation:
    """An operation on other tensors."""
    return replace(
        step,
        inputs=tuple([named(tensor) for tensor in step.inputs]),
        outputs=tuple([Allocate(named(output.tensor), output.buffer, output.by) for output in step.outputs]),
        resident=tuple([Allocate(named(output.tensor), output.buffer, output.by) for output in step.resident]),
        circular_buffers=tuple(
            [
                buffer if buffer.view_of is None else buffer._replace(view_of=named(buffer.view_of))
                for buffer in step.circular_buffers
            ]
        ),
    )
