"""The device operations that ran, in order: one row each, built once from the events of calls."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, Final

from device.memory.layouts import TensorSpec
from device.plan import CircularBuffer, Operation
from device.spec.device_spec import DeviceSpec
from device.time.stages import nanoseconds
from ops.launch import Launch, Replay, gaps_nanoseconds
from ops.passes.cycles import TimedOperation
from ttsim.report.cycles import Core, OperationTime, UntimedOperation, kernel_nanoseconds, share_of
from ttsim.report.rows import Column, Derived, Row

CALL_COUNT_STEP: Final = 1024  # of the real library's profiler, from one device operation to the next
NO_STEP: Final = Operation(name="", inputs=())
NOT_TIMED: Final = TimedOperation("", None)


@dataclass(frozen=True, slots=True)
class LivingBuffer:
    """A buffer in L1 at some moment."""

    name: str  # Its name in the call that made it
    memory: str  # "L1" or "L1_SMALL"
    bank_bytes: int  # On the core that has most of it
    address: int  # On every core that has it
    function: str = ""  # The function of the library that made it; empty if it was there before the first call
    where: str = ""  # The lines of the script that made it; empty before the first call

    @property
    def place(self) -> str:
        """The function that made the buffer, and the lines of the script."""
        return place_of(self.function, self.where)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OpRun(Row, figures="number name call function where"):
    """A device operation that ran."""

    number: int  # Counted from 0
    name: str  # As a graph capture shows it
    call: int  # Number of the call that ran it, counted from 0
    function: str
    where: str  # The lines of the script that made the call, outermost first

    runs: "Runs"  # All operations that ran
    taken: OperationTime | UntimedOperation | None  # None if cycles are not estimated
    # Bytes of circular buffers without views (fullest core), and of L1 and L1_SMALL buffers, at the fullest moment
    l1: tuple[int, int] = (0, 0)
    buffers: tuple[LivingBuffer, ...] = ()  # Which these are, oldest first
    step: Operation = NO_STEP  # The operation of the plan
    tensors: Mapping[str, TensorSpec] = field(default_factory=dict)  # The tensors of the plan by name
    timed: TimedOperation = NOT_TIMED  # Cycles and description of its program
    cached: bool = False  # Whether the program was found in the cache

    # Kernel time of all operations before it
    start_nanoseconds = Column[float](lambda op: nanoseconds(op.runs.starts[op.number], op.runs.clock_hz))
    cycles = Column[int](lambda op: 0 if op.time is None else op.time.cycles)  # 0 without a model
    nanoseconds = Column[float](lambda op: nanoseconds(op.cycles, op.runs.clock_hz))
    share = Column[float](lambda op: share_of(op.cycles, op.runs.cycles))  # Of all cycles
    bound_by = Column[str](lambda op: "" if op.time is None else op.time.bound_by)  # The stage that binds it
    core_count = Column[int](lambda op: 0 if op.time is None else op.time.core_count)
    circular_bytes = Column[int](lambda op: op.l1[0])
    buffer_bytes = Column[int](lambda op: op.l1[1])
    untimed = Column[str](  # Why its cycles are unknown; empty if they are known
        lambda op: "no cycles" if op.taken is None else getattr(op.taken, "reason", "")
    )

    time = Derived[OperationTime | None](  # The figures of its cycles; None without a model
        lambda op: op.taken if isinstance(op.taken, OperationTime) else None
    )
    place = Derived[str](lambda op: place_of(op.function, op.where))  # The function that ran it, and the lines
    l1_bytes = Derived[int](lambda op: sum(op.l1))  # Of circular buffers and buffers, on a core
    l1_share = Derived[float](lambda op: share_of(op.l1_bytes, op.runs.usable_bytes))  # 0 without a device
    # Shares of all kernel time: before the operation, and of the operation
    left_share = Derived[float](lambda op: share_of(op.start_nanoseconds, op.runs.nanoseconds))
    width_share = Derived[float](lambda op: share_of(op.nanoseconds, op.runs.nanoseconds))
    # Circular buffers of its program that are no views, in order of allocation
    circular_buffers = Derived[tuple[CircularBuffer, ...]](
        lambda op: tuple(buffer for buffer in op.step.circular_buffers if buffer.view_of is None)
    )
    # The tensors that it reads, and the tensor that it makes or writes into
    inputs = Derived[tuple[TensorSpec, ...]](lambda op: tuple(op.tensors[name] for name in names_read(op.step)))
    output = Derived[TensorSpec](
        lambda op: op.tensors[op.step.outputs[0].tensor if op.step.outputs else op.step.inputs[-1]]
    )
    # The attributes that the real library's profiler prints, by name
    attributes = Derived[tuple[tuple[str, str], ...]](lambda op: op.timed.description.attributes)
    # Whole nanoseconds of its kernels; 0 without a model
    kernel_nanoseconds = Derived[int](lambda op: kernel_nanoseconds(op.cycles, op.time.spec) if op.time else 0)
    program = Derived[int](lambda op: op.runs.programs[op.number])  # The number of its program, counted from 1
    gap_nanoseconds = Derived[int](lambda op: round(op.runs.gaps[op.number]))  # Dispatch before it, in a trace replay
    # The cycles in which its kernels start and the last of them ends, gaps included
    start_cycle = Derived[int](lambda op: op.runs.start_cycles[op.number])
    end_cycle = Derived[int](lambda op: op.start_cycle + op.cycles)
    core_ends = Derived[dict[Core, int]](  # The cycle in which each core ends its part; empty without a model
        lambda op: {core: op.start_cycle + end for core, end in op.time.ends.items()} if op.time else {}
    )
    above_roof_share = Derived[float](  # Its cycles above its roofline, as a share of all cycles
        lambda op: share_of(op.time.cycles_above_roof, op.runs.cycles) if op.time else 0.0
    )
    call_count = Derived[int](lambda op: (op.number + 1) * CALL_COUNT_STEP)  # The profiler's GLOBAL CALL COUNT


def place_of(function: str, where: str) -> str:
    """A function, and the lines of a script."""
    return f"{function}, {where}" if where else function


def names_read(step: Operation) -> tuple[str, ...]:
    """Names of the tensors that an operation reads; an operation without outputs writes into its last input."""
    return step.inputs if step.outputs or len(step.inputs) == 1 else step.inputs[:-1]


class Runs(list[OpRun]):
    """All device operations that ran, in order."""

    clock_hz: int
    spec: DeviceSpec | None  # None if only the clock is known
    launches: list[Launch]  # Launches of the operations

    def __init__(self, clock_hz: int, spec: DeviceSpec | None = None) -> None:
        super().__init__()
        self.clock_hz = clock_hz
        self.spec = spec
        self.launches = []

    def add(self, **facts: Any) -> None:
        """Appends an operation with these fields and the next number."""
        self.append(OpRun(number=len(self), runs=self, **facts))

    @property
    def usable_bytes(self) -> int:
        """The usable L1 of a core; 0 without a device."""
        return 0 if self.spec is None else self.spec.l1.usable_bytes

    @cached_property
    def starts(self) -> list[int]:
        """Cycles before each operation, and at the end the cycles of all."""
        return [0, *accumulate(op.cycles for op in self)]

    @property
    def cycles(self) -> int:
        """Cycles of all operations that have a model."""
        return self.starts[-1]

    @property
    def nanoseconds(self) -> float:
        """Nanoseconds of `cycles`."""
        return nanoseconds(self.cycles, self.clock_hz)

    @cached_property
    def programs(self) -> list[int]:
        """The program number of each operation, from 1; equal programs have equal numbers."""
        numbers: dict[Hashable, int] = {}
        return [numbers.setdefault((op.name, op.step.key), len(numbers) + 1) for op in self]

    @cached_property
    def gaps(self) -> list[float]:
        """The nanoseconds of dispatch gap before each operation, in a trace replay."""
        return [] if self.spec is None else list(gaps_nanoseconds(self.launches, self.spec, Replay.TRACE))

    @cached_property
    def start_cycles(self) -> list[int]:
        """The cycle in which each operation starts, gaps included."""
        waited = accumulate(round(gap * self.clock_hz / 1e9) for gap in self.gaps)
        return [start + gap for start, gap in zip(self.starts, waited, strict=False)]
