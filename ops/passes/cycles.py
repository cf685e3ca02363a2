"""The cycle pass over a plan: the cycles of every device operation, in sequence.

Included: the kernels of every device operation, from the first core's start to the last core's end. Excluded: the
preparation of tensors on the host, transfers between host and device, and the dispatch between operations.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from device.errors import DeviceError
from device.memory.memory_config import BufferType, MemoryConfig, TensorMemoryLayout
from device.plan import MOVE, DeviceOp, Event, Operation, OperationBegin, Plan, Refuse, Relocate
from device.spec.device_spec import DeviceSpec
from device.time.network import hands
from device.time.stages import OperationCycles, Stage
from ops.launch import Launch, LaunchedProgram
from ops.op_model import NO_DESCRIPTION, Description, Ends, NoModelError, OpModels, op_model_of
from ops.op_models import OP_MODELS
from ops.passes.floors import floored


@dataclass(frozen=True, slots=True)
class TimedOperation:
    """A device operation of a plan and its cycles."""

    name: str  # As a graph capture shows it
    cycles: OperationCycles | None  # None without a model
    reason: str = ""  # Why there is no model; empty if there is one
    fidelity_phases: int = 0  # Fidelity phases of its tile products, 1 (LoFi) to 4 (HiFi4); 0 if it multiplies nothing
    description: Description = NO_DESCRIPTION  # How it was planned
    place: str = ""  # The memories that it reads from and writes to, as evidence of its cycles is sorted
    ends: Ends | None = None  # Its tensors; None where nobody knows them

    @property
    def kind(self) -> str:
        """The class of its program, for evidence of its cycles."""
        return self.description.measured_as or base_name(self.name)


@dataclass(frozen=True, slots=True)
class PlanCycles:
    """A plan's device operations in time."""

    operations: tuple[TimedOperation, ...]
    clock_hz: int

    @property
    def cycles(self) -> float:
        """All operations that have a model, in sequence."""
        return sum(operation.cycles.cycles for operation in self.operations if operation.cycles is not None)

    @property
    def untimed(self) -> tuple[TimedOperation, ...]:
        """Operations that are missing in `cycles`."""
        return tuple(operation for operation in self.operations if operation.cycles is None)


def run_cycles(
    plan: Plan,
    spec: DeviceSpec,
    *,
    ran: Iterable[int] | None = None,
    op_models: OpModels = OP_MODELS,
) -> PlanCycles:
    """Cycles of the device operations of a plan; equal programs, such as slices, are timed once.

    Raises:
        DeviceError: The device refuses an operation, which has no cycles then.
    """
    timed: list[TimedOperation] = []
    known: dict[object, TimedOperation] = {}
    steps = list(operations_of(plan, ran))
    times = Counter(step.name for step in steps)
    for step in steps:
        if step.refused is not None:
            raise DeviceError(step.refused)
        ends = ends_of(step, plan)
        same = (step.name, step.op, ends) if times[step.name] > 1 else step.name  # whose hash is quicker
        if same not in known:
            known[same] = timed_operation(step.name, step.op, ends, spec, op_models)
        timed.append(known[same])
    return PlanCycles(tuple(timed), spec.clock_hz)


def timed_operation(
    name: str, op: DeviceOp | None, ends: Ends, spec: DeviceSpec, op_models: OpModels = OP_MODELS
) -> TimedOperation:
    """One operation; without cycles only if it has no model, or if its result has no elements."""
    model = op_model_of(op, op_models)
    phases, place = model.fidelity_phases(op), place_of(ends)
    if not ends.written.volume:
        return TimedOperation(name, None, NO_ELEMENTS, phases, place=place)
    description = model.describe(op, ends, spec)
    try:
        if model.cycles is None:
            raise NoModelError(model.no_model)
        timed = floored(model.cycles(op, ends, spec), ends, phases, spec)
        return TimedOperation(name, timed, "", phases, description, place, ends)
    except NoModelError as error:
        return TimedOperation(name, None, str(error), phases, description, place)


def base_name(name: str) -> str:
    """The name of a device operation without the endings that all share."""
    return name.removesuffix("DeviceOperation").removesuffix("Operation")


def place_of(ends: Ends) -> str:
    """The memories of both ends of an operation: "DRAM", "L1 to shards"."""
    read, written = map(_memory_word, (ends.read.memory_config, ends.written.memory_config))
    return read if read == written else f"{read} to {written}"


def _memory_word(memory: MemoryConfig) -> str:
    """The memory of a tensor as a word."""
    if memory.buffer_type is BufferType.DRAM:
        return "DRAM"
    return "L1" if memory.memory_layout is TensorMemoryLayout.INTERLEAVED else "shards"


def operations_of(plan: Plan, ran: Iterable[int] | None = None) -> Iterator[Operation]:
    """The device operations of a plan in order; a relocated tensor counts as a move.

    ``ran`` are the indices of the steps that ran, from `steps_that_ran`: only the memory pass knows whether a tensor
    moved. None counts every relocation as a move.
    """
    steps = plan.steps if ran is None else (plan.steps[index] for index in ran)
    for step in steps:
        if isinstance(step, Operation):
            yield step
        elif isinstance(step, Relocate):
            buffers, key = step.circular_buffers, (MOVE, step.buffer)
            yield Operation(name=MOVE, inputs=(step.tensor,), circular_buffers=buffers, op=step.op, key=key)
        elif isinstance(step, Refuse):
            raise step.error(step.text)


def steps_that_ran(events: Iterable[Event]) -> tuple[int, ...]:
    """Indices of a plan's steps whose device operations ran, in order, by the events of the memory pass."""
    begun = (event.step for event in events if isinstance(event, OperationBegin))
    return tuple(step for step in begun if step is not None)


def ends_of(step: Operation, plan: Plan) -> Ends:
    """The tensors that an operation reads, and the tensor that it writes; the latter for both if it reads none."""
    written = step.written[0]
    read = step.inputs[0] if step.inputs else written
    others = tuple(plan.tensors[name] for name in step.inputs[1:])
    whole = bool(step.outputs) or written in step.targets
    return Ends(read=plan.tensors[read], written=plan.tensors[written], others=others, whole=whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """The error of a model on measured configurations that the fit of its constants had not seen."""

    mean: float  # Mean absolute error, of the measured cycles
    within: float  # Nine of ten errors are no larger; of fewer than nine configurations all of them
    configurations: int  # How many were measured
    older_release: str = ""  # Of the kernels that were measured, where today's were not

    @property
    def share(self) -> float:
        """The error bar: nine of ten errors are within twice this share."""
        return max(self.mean, self.within / 2)


@cache
def expected_errors() -> Mapping[tuple[str, str, str], ExpectedError]:
    """All errors of models, by class of program, architecture and memory."""
    table = tomllib.loads(files("ops.passes").joinpath("expected_errors.toml").read_text(encoding="utf-8"))
    return MappingProxyType(
        {
            (kind, architecture, place): ExpectedError(**row)
            for kind, architectures in table.items()
            for architecture, places in architectures.items()
            for place, row in places.items()
        }
    )


def expected_error(kind: str, architecture: str, place: str) -> ExpectedError | None:
    """The expected error of a class of programs in a memory; None if nothing was measured on this architecture."""
    return expected_errors().get((kind, architecture, place))


NO_ELEMENTS: Final = "its result is empty: kernels start and find no work, and how long that takes is not known"
MOVING_KERNELS: Final = 2  # of a program, on as many data movement processors
COMPUTE_PROCESSORS: Final = 3  # unpackers, matrix unit and packer have one each
COMPUTE_STAGES: Final = frozenset({Stage.TILIZE, Stage.UNPACK, Stage.MATH, Stage.PACK, Stage.BIAS, Stage.UNTILIZE})
MULTICAST_STAGES: Final = frozenset({Stage.ACT_MULTICAST, Stage.WEIGHT_MULTICAST})
BINARY_BYTES: Final = 4096  # guess: a kernel of a few hundred instructions
ARGUMENTS: Final = 8  # guess: words of its own for each processor of each core
ASSUMPTIONS: Final = (
    f"each kernel binary has {BINARY_BYTES} bytes, each processor of a core {ARGUMENTS} arguments of its own",
    "where blocks are multicast, senders and receivers have a kernel each",
    "the host adds no time of Python, and the device waits for nobody but its programs",
)


def launches_of(
    plan: Plan, timed: Sequence[TimedOperation], spec: DeviceSpec, *, ran: Iterable[int] | None = None
) -> tuple[Launch, ...]:
    """The device operations of a plan as a queue of launches; an operation without a model takes no cycles."""
    return tuple(
        Launch(_program(step, operation.cycles, spec), 0.0 if operation.cycles is None else operation.cycles.cycles)
        for step, operation in zip(operations_of(plan, ran), timed, strict=True)
    )


def _program(step: Operation, cycles: OperationCycles | None, spec: DeviceSpec) -> LaunchedProgram:
    """One program; an operation without a model of its cycles counts as using all processors."""
    places = {buffer.cores for buffer in step.circular_buffers}
    stages = frozenset(Stage) - MULTICAST_STAGES if cycles is None else cycles.working
    processors = hands(spec, MOVING_KERNELS) + (COMPUTE_PROCESSORS if stages & COMPUTE_STAGES else 0)
    multicasts = len(stages & MULTICAST_STAGES)
    cores = max([place.num_cores() for place in places] or [1 if cycles is None else cycles.cores])
    groups = min(max(2**multicasts, len(places)), cores)
    return LaunchedProgram(
        name=step.name,
        cores=cores,
        processors=processors,
        binaries=processors + multicasts,
        binary_bytes=BINARY_BYTES,
        groups=groups,
        circular_buffers=len(step.circular_buffers),
        buffer_groups=min(max(len(places), 1), groups),
        arguments=ARGUMENTS,
        key=step.key,
    )
