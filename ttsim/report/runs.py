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
from ttsim.report.rows import Column, Row

CALL_COUNT_STEP: Final = 1024  # of the real library's profiler, from one device operation to the next
NO_STEP: Final = Operation(name="", inputs=())
NOT_TIMED: Final = TimedOperation("", None)


@dataclass(frozen=True, slots=True, kw_only=True)
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
    start_nanoseconds = Column["OpRun", float](lambda op: nanoseconds(op.runs.starts[op.number], op.runs.clock_hz))
    cycles = Column["OpRun", int](lambda op: 0 if op.time is None else op.time.cycles)  # 0 without a model
    nanoseconds = Column["OpRun", float](lambda op: nanoseconds(op.cycles, op.runs.clock_hz))
    share = Column["OpRun", float](lambda op: share_of(op.cycles, op.runs.cycles))  # Of all cycles
    bound_by = Column["OpRun", str](lambda op: "" if op.time is None else op.time.bound_by)  # The stage that binds it
    core_count = Column["OpRun", int](lambda op: 0 if op.time is None else op.time.core_count)
    circular_bytes = Column["OpRun", int](lambda op: op.l1[0])
    buffer_bytes = Column["OpRun", int](lambda op: op.l1[1])
    untimed = Column["OpRun", str](lambda op: op.reason)  # Why no model knows it; empty if one does

    @property
    def time(self) -> OperationTime | None:
        """The figures of its cycles; None without a model."""
        return self.taken if isinstance(self.taken, OperationTime) else None

    @property
    def reason(self) -> str:
        """Why its cycles are unknown; empty if they are known."""
        if self.taken is None:
            return "no cycles"
        return self.taken.reason if isinstance(self.taken, UntimedOperation) else ""

    @property
    def place(self) -> str:
        """The function that ran the operation, and the lines of the script."""
        return place_of(self.function, self.where)

    @property
    def l1_bytes(self) -> int:
        """Bytes of circular buffers and buffers, on a core."""
        return sum(self.l1)

    @property
    def l1_share(self) -> float:
        """`l1_bytes` as a share of the usable L1; 0 without a device."""
        return share_of(self.l1_bytes, self.runs.usable_bytes)

    @property
    def left_share(self) -> float:
        """The share of all kernel time before the operation."""
        return share_of(self.start_nanoseconds, self.runs.nanoseconds)

    @property
    def width_share(self) -> float:
        """The share of all kernel time that the operation takes."""
        return share_of(self.nanoseconds, self.runs.nanoseconds)

    @property
    def circular_buffers(self) -> tuple[CircularBuffer, ...]:
        """Circular buffers of its program that are no views, in order of allocation."""
        return tuple(buffer for buffer in self.step.circular_buffers if buffer.view_of is None)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The tensors that it reads."""
        return tuple(self.tensors[name] for name in names_read(self.step))

    @property
    def output(self) -> TensorSpec:
        """The tensor that it makes, or writes into."""
        return self.tensors[self.step.outputs[0].tensor if self.step.outputs else self.step.inputs[-1]]

    @property
    def attributes(self) -> tuple[tuple[str, str], ...]:
        """The attributes that the real library's profiler prints, by name."""
        return self.timed.description.attributes

    @property
    def kernel_nanoseconds(self) -> int:
        """Whole nanoseconds of its kernels; 0 without a model."""
        return 0 if self.time is None else kernel_nanoseconds(self.cycles, self.time.spec)

    @property
    def program(self) -> int:
        """The number of its program, counted from 1."""
        return self.runs.programs[self.number]

    @property
    def gap_nanoseconds(self) -> int:
        """The dispatch gap before it, in a trace replay."""
        return round(self.runs.gaps[self.number])

    @property
    def start_cycle(self) -> int:
        """The cycle in which its kernels start, gaps included."""
        return self.runs.start_cycles[self.number]

    @property
    def end_cycle(self) -> int:
        """The cycle in which the last of its kernels ends."""
        return self.start_cycle + self.cycles

    @property
    def core_ends(self) -> dict[Core, int]:
        """The cycle in which each core ends its part; empty without a model."""
        return {} if self.time is None else {core: self.start_cycle + end for core, end in self.time.ends.items()}

    @property
    def above_roof_share(self) -> float:
        """Its cycles above its roofline, as a share of all cycles."""
        return 0.0 if self.time is None else share_of(self.time.cycles_above_roof, self.runs.cycles)

    @property
    def call_count(self) -> int:
        """The GLOBAL CALL COUNT of the real library's profiler."""
        return (self.number + 1) * CALL_COUNT_STEP


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
