"""The device operations that ran, one row each, and the report on a network: their sums, and the peak of L1."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from operator import add
from typing import Any, Final

from device.memory.buffers import place
from device.memory.layouts import TensorSpec
from device.plan import BufferAllocated, CircularBuffer, Operation
from device.spec.device_spec import DeviceSpec
from device.time.stages import nanoseconds
from ops.launch import Launch, Replay, gaps_nanoseconds
from ops.passes.cycles import TimedOperation
from ops.programs.host_fallback import NAME as FALLBACK
from ttsim.report.cycle_report import INCLUDES, LEAVES_OUT, LaunchTimes, launch_lines, launch_times
from ttsim.report.cycles import CallRun, Core, OperationTime, UntimedOperation, kernel_nanoseconds, share_of
from ttsim.report.explain import explain_inclusion
from ttsim.report.formatting import (
    TableColumn,
    counted,
    cycles,
    percent,
    printable,
    short_name,
    short_place,
    table_lines,
    time,
    wrapped,
)
from ttsim.report.memory import L1Map, Occupant, l1_map
from ttsim.report.rows import Column, Derived, Report, Row

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

    @classmethod
    def of(cls, event: BufferAllocated, function: str, where: str) -> "LivingBuffer":
        """An allocated buffer with its creator."""
        spec = event.buffer
        return cls(event.name, spec.buffer_type.name, spec.bank_bytes, event.address, function, where)

    @property
    def place(self) -> str:
        """The function that created the buffer, and the lines of the script."""
        return place_of(self.function, self.where)


class OpRun(Row, figures="number name call function where", kw_only=True):
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
    circular_buffers = Derived[tuple[CircularBuffer, ...]](lambda op: tuple(local_buffers(op.step)))
    # The tensors that it reads, and the tensor that it makes or writes into
    inputs = Derived[tuple[TensorSpec, ...]](lambda op: tuple(op.tensors[name] for name in names_read(op.step)))
    output = Derived[TensorSpec](lambda op: op.tensors[op.step.written[0]])
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


def local_buffers(step: Operation) -> list[CircularBuffer]:
    """The circular buffers of a program without views, in order of allocation."""
    return [buffer for buffer in step.circular_buffers if buffer.view_of is None]


def placed_buffers(step: Operation, spec: DeviceSpec) -> Iterable[tuple[CircularBuffer, int]]:
    """The circular buffers without views, with addresses, of every program."""
    local = local_buffers(step)
    placed = place([(buffer.size_bytes, buffer.cores) for buffer in local], spec.l1)
    return zip(local, placed.addresses, strict=True)


def names_read(step: Operation) -> tuple[str, ...]:
    """Names of the tensors that an operation reads; an operation without outputs writes into its last inputs."""
    return step.inputs if step.outputs else step.inputs[: -len(step.written)] or step.inputs


class Runs(list[OpRun]):
    """All device operations that ran, in order."""

    def __init__(self, clock_hz: int, spec: DeviceSpec | None = None) -> None:
        super().__init__()
        self.clock_hz = clock_hz
        self.spec = spec  # None if only the clock is known
        self.usable_bytes = 0 if spec is None else spec.l1.usable_bytes  # The usable L1 of a core
        self.calls: list[CallRun] = []  # The calls that ran them

    def add(self, **facts: Any) -> None:
        """Appends an operation with these fields and the next number."""
        self.append(OpRun(number=len(self), runs=self, **facts))

    @cached_property
    def starts(self) -> list[int]:
        """Cycles before each operation, followed by the cycles of all operations."""
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
    def launches(self) -> list[Launch]:
        """The launched programs, in order."""
        return [launch for call in self.calls for launch in call.launches]

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
        return list(map(add, self.starts, waited))


class LivingCircularBuffer(Row):
    """A circular buffer, not a view, of a running program."""

    buffer: CircularBuffer

    name = Column[str](lambda row: row.buffer.name)
    size_bytes = Column[int](lambda row: row.buffer.size_bytes)  # On each of its cores
    cores = Column[str](lambda row: str(row.buffer.cores))  # As ttnn prints them


class Sum(Row, figures="name"):
    """Operations of one kind or of one line of the script, together."""

    name: str  # The kind of operation, or the lines of the script
    parts: list[OpRun]

    # The functions that ran the operations, without repetition
    functions = Column[tuple[str, ...]](lambda sums: tuple(dict.fromkeys(op.function for op in sums.parts)))
    calls = Column[int](lambda sums: len({op.call for op in sums.parts}))  # How many calls ran them
    count = Column[int](lambda sums: len(sums.parts))  # How many operations
    untimed = Column[int](lambda sums: sum(bool(op.untimed) for op in sums.parts))  # Operations without a model
    cycles = Column[int](lambda sums: sum(op.cycles for op in sums.parts))  # Cycles of the timed operations
    nanoseconds = Column[float](lambda sums: nanoseconds(sums.cycles, sums.parts[0].runs.clock_hz))
    share = Column[float](lambda sums: share_of(sums.cycles, sums.parts[0].runs.cycles))  # Of all cycles
    l1_bytes = Column[int](lambda sums: max(op.l1_bytes for op in sums.parts))  # The most of an operation on a core


class HighWater(Row, figures="operation nanoseconds usable_bytes"):
    """The peak of L1 of a core, and its buffers.

    Counted like ttnn's extract_resource_usage_per_core, with three differences: cached programs count with their
    circular buffers, the circular buffers are those of the fullest core, and earlier buffers count.
    """

    usable_bytes: int  # Usable L1, L1_SMALL included
    fullest: OpRun | None  # The device operation that runs; None if no operation ran

    operation = Column[int | None](lambda mark: mark.fullest.number if mark.fullest else None)
    nanoseconds = Column[float](lambda mark: mark.fullest.start_nanoseconds if mark.fullest else 0.0)  # Until it begins
    total_bytes = Column[int](lambda mark: mark.fullest.l1_bytes if mark.fullest else 0)
    share = Column[float](lambda mark: mark.total_bytes / mark.usable_bytes)
    circular_buffers = Column[tuple[LivingCircularBuffer, ...]](  # In order of allocation
        lambda mark: tuple(map(LivingCircularBuffer, mark.fullest.circular_buffers if mark.fullest else ()))
    )
    buffers = Column[tuple[LivingBuffer, ...]](
        lambda mark: mark.fullest.buffers if mark.fullest else ()
    )  # Oldest first


def sums(operations: Sequence[OpRun], *, by: Callable[[OpRun], str]) -> tuple[Sum, ...]:
    """Operations grouped by a key, in order of the first operation of each group."""
    together: defaultdict[str, list[OpRun]] = defaultdict(list)
    for op in operations:
        together[by(op)].append(op)
    return tuple(Sum(name, ops) for name, ops in together.items())


NOWHERE = "(no line of a script)"
SMALL = "L1_SMALL"
LONGEST_PLACE = 60  # places that a line of a script takes, outside of tables
OPERATIONS: Final[Sequence[TableColumn[OpRun]]] = (
    TableColumn("#", lambda op: str(op.number)),
    TableColumn("operation", lambda op: short_name(op.name), words=True),
    TableColumn("function", lambda op: short_name(op.function), words=True, goes=2),
    TableColumn("where", lambda op: short_place(op.where or NOWHERE), words=True, goes=5),
    TableColumn("begins", lambda op: time(op.start_nanoseconds), goes=1),
    TableColumn("cycles", lambda op: "not timed" if op.untimed else cycles(op.cycles)),
    TableColumn("time", lambda op: "" if op.untimed else time(op.nanoseconds), goes=4),
    TableColumn("share", lambda op: "" if op.untimed else percent(op.share), goes=7),
    TableColumn("bound by", lambda op: op.bound_by, words=True),
    TableColumn("cores", lambda op: "" if op.untimed else str(op.core_count), goes=3),
    TableColumn("L1 B", lambda op: f"{op.l1_bytes:,}", goes=6),
)
COUNT: Final[TableColumn[Sum]] = TableColumn("count", lambda row: str(row.count))
SUMS: Final[Sequence[TableColumn[Sum]]] = (
    TableColumn("untimed", lambda row: str(row.untimed) if row.untimed else "", goes=4),
    TableColumn("cycles", lambda row: cycles(row.cycles)),
    TableColumn("time", lambda row: time(row.nanoseconds), goes=1),
    TableColumn("share", lambda row: percent(row.share), goes=7),
    TableColumn("L1 B", lambda row: f"{row.l1_bytes:,}", goes=3),
)
KINDS: Final = (TableColumn[Sum]("operation", lambda row: short_name(row.name), words=True), COUNT, *SUMS)
LAYERS: Final = (
    TableColumn[Sum]("where", lambda row: short_place(row.name or NOWHERE), words=True),
    TableColumn[Sum]("functions", lambda row: ", ".join(row.functions), words=True, goes=2),
    TableColumn[Sum]("calls", lambda row: str(row.calls), goes=5),
    replace(COUNT, goes=6),
    *SUMS,
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NetworkReport(Report):
    """The cycles of calls on a device in sequence: ``print(report)`` shows tables, ``to_json()`` has all figures.

    Attributes:
        device: Name of the device.
        clock_hz: Clock of the worker cores, in Hz.
        calls: Number of calls that ran a device operation.
        cycles: Cycles of all operations that have a model.
        nanoseconds: Time of all operations that have a model.
        operations: The device operations in order, with and without a model.
        kinds: Sums over operations of one name, in order of the first.
        layers: Sums over operations of the same lines of the script, in order of the first.
        high_water: The peak of L1.
        l1: L1 of a core over all operations, each at its peak.
        launches: The dispatch overhead, which no other figure includes.
        includes: What the cycles count.
        leaves_out: What the cycles do not count.

    Examples:
        >>> tensor = ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> with ttnn.profile(device) as profile:
        ...     output = ttnn.relu(ttnn.relu(tensor))
        >>> [(kind.name, kind.count) for kind in profile.network().kinds]
        [('UnaryDeviceOperation', 2)]
    """

    FORMAT = 1

    device: str
    clock_hz: int
    calls: int
    cycles: int
    nanoseconds: float
    operations: tuple[OpRun, ...]
    kinds: tuple[Sum, ...]
    layers: tuple[Sum, ...]
    high_water: HighWater
    l1: L1Map
    launches: LaunchTimes
    includes: tuple[str, ...] = INCLUDES
    leaves_out: tuple[str, ...] = LEAVES_OUT

    @property
    def untimed(self) -> tuple[OpRun, ...]:
        """Operations without a model."""
        return tuple(operation for operation in self.operations if operation.untimed)

    @property
    def headline(self) -> str:
        """The operations and their time, in one line."""
        missing = f", not counting {len(self.untimed)} of them" if self.untimed else ", all timed"
        took = f"{cycles(self.cycles)} cycles, {time(self.nanoseconds)} at {self.clock_hz / 1e9:g} GHz"
        ran = f"{counted(len(self.operations), 'device operation')} of {counted(self.calls, 'call')}"
        return f"{self.device}: {took}, in {ran}{missing}"

    def _host_lines(self) -> list[str]:
        """The functions that the host computed, with their share of all calls."""
        calls = {op.call: op.function for op in self.operations if op.name == FALLBACK}
        if not calls:
            return []
        functions = ", ".join(f"{name} ({count})" for name, count in Counter(calls.values()).most_common())
        share = f"{counted(len(calls), 'call')} of {self.calls} ({percent(len(calls) / self.calls)})"
        return [f"On the host in float32, neither planned nor timed: {share}: {functions}"]

    def table(self, width: int | None = None) -> str:
        """Tables of operations, kinds and layers, then the peak of L1, in lines of `width` characters."""
        if not self.operations:
            return f"No device operation ran on {self.device}."
        untimed = [f"Not counted: #{op.number} {op.name}, {op.untimed}" for op in self.untimed]
        below = [
            *untimed,
            *self._host_lines(),
            *launch_lines(self.launches),
            explain_inclusion(self.includes, self.leaves_out),
        ]
        kinds = sorted(self.kinds, key=lambda kind: -kind.cycles)
        parts = (
            wrapped(self.headline, width, indent=2),
            table_lines(OPERATIONS, self.operations, width),
            ["By kind", *table_lines(KINDS, kinds, width)],
            ["By line of the script", *table_lines(LAYERS, self.layers, width)],
            [line for text in _fullest(self.high_water) for line in wrapped(text, width, indent=4)],
            [line for text in below for line in wrapped(text, width, indent=2)],
        )
        return "\n\n".join(map("\n".join, parts))


def network_report(runs: Runs, spec: DeviceSpec, kind: type[NetworkReport] = NetworkReport) -> NetworkReport:
    """The report, an instance of `kind`, on operations in sequence on a device."""
    moments = [  # the fullest of each operation: its circular buffers, then buffers, oldest first
        [
            *(Occupant.of(buffer, address) for buffer, address in placed_buffers(op.step, spec)),
            *(Occupant(own.name, own.memory, own.address, own.bank_bytes, made=own.place) for own in op.buffers),
        ]
        for op in runs
    ]
    return kind(
        device=spec.name,
        clock_hz=spec.clock_hz,
        calls=len({op.call for op in runs}),
        cycles=runs.cycles,
        nanoseconds=runs.nanoseconds,
        operations=tuple(runs),
        kinds=sums(runs, by=lambda op: op.name),
        layers=sums(runs, by=lambda op: op.where),
        high_water=HighWater(spec.l1.usable_bytes, max(runs, key=lambda op: op.l1_bytes, default=None)),
        l1=l1_map(moments, spec),
        launches=launch_times(runs.launches, runs.nanoseconds, spec),
    )


def _fullest(mark: HighWater) -> Iterator[str]:
    op = mark.fullest
    if op is None:
        return
    yield (
        f"L1 is fullest in #{op.number} {op.name} of {op.function} ({_line(op.where)}), "
        f"{time(mark.nanoseconds)} after the start: {mark.total_bytes:,} of {mark.usable_bytes:,} B of a core "
        f"({percent(mark.share)}), {op.circular_bytes:,} of them circular buffers"
    )
    for circular in mark.circular_buffers:
        yield f"  {circular.size_bytes:>9,} B  circular buffer {circular.name} on {circular.cores}"
    for buffer in mark.buffers:
        if buffer.memory != SMALL:
            known = (
                f"of {buffer.function} ({_line(buffer.where)})" if buffer.function else "made outside of these calls"
            )
            place = f"{buffer.memory} at {buffer.address}"
            yield f"  {buffer.bank_bytes:>9,} B  {place}: {printable(buffer.name)}, {known}"
    small = [buffer.bank_bytes for buffer in mark.buffers if buffer.memory == SMALL]
    if small:
        yield f"  {sum(small):>9,} B  {SMALL}: {len(small)} config tensors of programs in the cache"


def _line(where: str) -> str:
    return short_place(where or NOWHERE, LONGEST_PLACE)
