"""The steps of a plan, and the events of running it."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from device.cores import CoreRangeSet
from device.memory.layouts import BufferSpec, TensorSpec
from device.memory.memory_config import BufferType
from device.numbers.formats import DataFormat
from device.spec.device_spec import DeviceSpec

TARGET: Final = "target"  # how the names of callers' tensors that results are written into begin in plans
MOVE: Final = "MoveDeviceOperation"  # the device operation that a `Relocate` runs


class DeviceOp:
    """Base class of the immutable attributes of a device operation; equal values compute the same."""

    __slots__ = ()


class ProgramKey(tuple[Hashable, ...]):
    """The cache key of a program or a plan, with a cached hash."""

    def __hash__(self) -> int:
        """The hash of the tuple."""
        known: int | None = self.__dict__.get("known")
        if known is None:
            known = self.__dict__["known"] = super().__hash__()
        return known


class CircularBuffer(NamedTuple):
    """One circular buffer of a program; a named tuple, because a plan creates some thirty of them."""

    name: str  # The role it has in its operation ("act", "weights", ...)
    size_bytes: int  # Bytes on each of its cores
    page_bytes: int  # Bytes of one page (a tile, a stick or an index list)
    data_format: DataFormat  # Element format of a page
    cores: CoreRangeSet  # Where it lives
    view_of: str | None = None  # Name of the tensor whose shard holds the buffer; None: L1 of its own, bottom-up
    offset_bytes: int = 0  # Distance from the start of that shard
    scratchpad: bool = False  # Whether only one processor uses it: a scratchpad, as captures call it
    number: int | None = None  # What its program calls it; None: its place among the program's buffers


class Allocate(NamedTuple):
    """Allocates a buffer."""

    tensor: str  # Name of the tensor it belongs to, unique in the plan
    buffer: BufferSpec  # What is asked of the allocator
    by: str = "tt::tt_metal::create_device_tensor"  # The real library's function that asks, as captures name it
    source: str | None = None  # Host tensor that is written into it at once; None if an operation writes it later
    op: DeviceOp | None = None  # What the host does to that tensor on the way; None writes it as it is


@dataclass(frozen=True, slots=True)
class Free:
    """Frees a tensor's buffer; freeing twice is harmless, as in the real library."""

    tensor: str


class RequiredRoom(NamedTuple):
    """L1 that must be free on every core below all L1 buffers when a program is built."""

    size_bytes: int
    refusal: str  # Raised as a DeviceError where there is less; "{room}" stands for the bytes that are free


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One device operation: a program on a set of cores."""

    name: str  # As a graph capture of the real library shows it, for example "HaloDeviceOperation"
    inputs: tuple[str, ...]  # Tensors it reads
    # Allocated before it runs, in order; without outputs and updates, it writes into its last input
    outputs: tuple[Allocate, ...] = ()
    updates: tuple[str, ...] = ()  # Inputs into which it writes as well, after its outputs
    resident: tuple[Allocate, ...] = ()  # Config tensors that stay allocated while the program is cached
    circular_buffers: tuple[CircularBuffer, ...] = ()  # In order of allocation
    dataflow: bool = False  # They are dataflow buffers: a capture shows them only when nothing is dispatched
    op: DeviceOp | None = None  # What it computes, with all that the passes need to know of it
    key: Hashable = None  # Equal keys mean the same cached program (resident tensors are then not made again)
    # Why the program cannot be built: raised as a DeviceError once the outputs are allocated, so that an earlier lack
    # of memory is reported first, as on a real device
    refused: str | None = None
    # Why the program cannot be finished: raised as a DeviceError once the resident tensors are allocated as well
    unfinished: str | None = None
    room: RequiredRoom | None = None  # What the program checks before it is built

    def __post_init__(self) -> None:
        if type(self.key) is tuple:
            object.__setattr__(self, "key", ProgramKey(self.key))

    @property
    def written(self) -> tuple[str, ...]:
        """The written tensors: the outputs, then the inputs that the operation writes."""
        return (*[output.tensor for output in self.outputs], *self.updates) or self.inputs[-1:]

    @property
    def targets(self) -> tuple[str, ...]:
        """The caller's result tensors among the inputs, which the operation writes and does not read."""
        return tuple([name for name in self.updates if name.startswith(TARGET)])


@dataclass(frozen=True, slots=True)
class Relocate:
    """Frees a tensor and allocates it again to defragment memory; `MOVE` runs if the address changes."""

    tensor: str
    buffer: BufferSpec  # What is asked of the allocator
    op: DeviceOp | None = None  # What the operation computes
    circular_buffers: tuple[CircularBuffer, ...] = ()  # Of the program that copies page by page
    # Of the program that reads the whole tensor before it writes, where both places overlap and it fits
    overlapping: tuple[CircularBuffer, ...] = ()


@dataclass(frozen=True, slots=True)
class Refuse:
    """The last step of a refused call, whose earlier steps run first."""

    text: str
    error: type[Exception]  # A class of `device.errors`


Step = Allocate | Free | Operation | Relocate | Refuse


@dataclass(frozen=True, slots=True)
class Expected:
    """The spec with which a reader views a tensor on the device."""

    tensor: str
    op: DeviceOp  # What would have prepared it for this reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A choice of a planner, with its reason."""

    name: str  # What was chosen, as a key
    value: str | int
    text: str  # Choice and reason, as a sentence
    limits: tuple[tuple[str, int], ...] = ()  # The figures that decided, by name; bytes where the name says so


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The steps of one call, in order."""

    steps: tuple[Step, ...]
    # Shape, format, layout and place of every named tensor (inputs included)
    tensors: Mapping[str, TensorSpec] = field(default_factory=dict)
    # Names of what the call returns, by role ("output", "weight", "bias")
    results: Mapping[str, str] = field(default_factory=dict)
    expected: tuple[Expected, ...] = ()  # What its operations take tensors for that were on the device before
    decisions: tuple[Decision, ...] = ()  # What was chosen for the caller, each once, in order
    without_values: str | None = None  # Why its numbers are not known, and what to do; None where they are

    @property
    def refused(self) -> bool:
        """Whether the plan ends with a refusal."""
        return bool(self.steps) and isinstance(self.steps[-1], Refuse)


_L1: Final = (BufferType.L1, BufferType.L1_SMALL)


class WrittenTensor(NamedTuple):
    """A tensor that a device operation wrote."""

    number: int  # Running number of its buffer on the device
    address: int  # Where the buffer begins in every bank
    spec: TensorSpec  # Shape, format, layout and place


class ReadTensor(NamedTuple):
    """A tensor that a device operation or a function reads."""

    tensor: WrittenTensor  # What it is taken for
    buffer: BufferSpec  # Where it lies


class OperationBegin(NamedTuple):
    """A function of the library, or a device operation, starts."""

    name: str
    op: DeviceOp | None = None  # What a device operation computes; None for a function
    read: tuple[ReadTensor, ...] = ()  # Tensors on the device that it reads, and writes into, in order
    hosts: tuple[TensorSpec, ...] = ()  # Tensors on the host that a function reads, in order
    spec: DeviceSpec | None = None  # The device of a device operation; None for a function
    dispatched: bool = True  # Whether a device operation runs; in a capture without dispatch it does not
    step: int | None = None  # Index of the step in the plan whose operation it is; None for a function


class OperationEnd(NamedTuple):
    """A function or a device operation ends; begin and end events nest."""

    name: str  # The name it began with
    aborted: bool = False  # Whether an error ended it
    made: tuple[WrittenTensor, ...] = ()  # The outputs of a device operation, or what it wrote into; none of a function
    cached: bool = False  # Whether its program was found in the program cache
    hosts: tuple[TensorSpec, ...] = ()  # Tensors on the host that a function made, in order


class BufferAllocated(NamedTuple):
    """A buffer was allocated."""

    number: int  # Running number of the buffer on its device
    name: str  # What it is for
    address: int  # Where it begins in every bank
    buffer: BufferSpec  # Type, layout, sizes and cores
    by: str = ""  # The function of the real library that asks for it
    tensor: TensorSpec | None = None  # The tensor that it is for, where that is known


class BufferFreed(NamedTuple):
    """A buffer was freed; the fields are those of ``BufferAllocated``, without its tensor."""

    number: int
    name: str
    address: int
    buffer: BufferSpec
    by: str = ""
    tensor: TensorSpec | None = None


class CircularBufferAllocated(NamedTuple):
    """A circular buffer of a program was allocated."""

    operation: str  # The device operation
    name: str  # Its role there
    size_bytes: int  # On each core
    address: int  # On each core
    cores: CoreRangeSet  # Where it is
    view: bool  # Whether it lies on a tensor's shard and takes no L1 of its own
    dataflow: bool = False  # Whether it is a dataflow buffer
    scratchpad: bool = False  # Whether it is a scratchpad, which is one of them, too

    @property
    def shown(self) -> bool:
        """Whether a capture shows the buffer: a dataflow buffer only without dispatch."""
        return not self.dataflow or self.address == 0


class CircularBuffersFreed(NamedTuple):
    """The circular buffers of the last program were freed, because another program runs or the cache is disabled."""


class Refused(NamedTuple):
    """The device refused a buffer, or the circular buffers of a program; later events undo the call."""

    reason: str  # The text of the error
    # The buffer that does not fit; None if the circular buffers of the last program do not
    buffer: BufferSpec | None = None


Event = (
    OperationBegin
    | OperationEnd
    | BufferAllocated
    | BufferFreed
    | CircularBufferAllocated
    | CircularBuffersFreed
    | Refused
)


class UsagePerCore(NamedTuple):
    """Peaks of L1 use on a core.

    Examples:
        >>> ttnn.graph.begin_graph_capture()
        >>> ttnn.graph.extract_resource_usage_per_core(ttnn.graph.end_graph_capture()).peak_total
        0
    """

    peak_cb: int  # Circular buffers of one program that are no views, in bytes
    peak_l1: int  # L1 and L1_SMALL buffers, in bytes
    peak_total: int  # Both together at one moment, in bytes


def usage_per_core(events: Iterable[Event]) -> UsagePerCore:
    """The result of the real library's ``extract_resource_usage_per_core`` for a capture.

    Buffers count with their bytes per bank, not rounded, on any core. Circular buffers are summed over all cores and
    count until the next program is created (a cached program creates none). As in the real library, a buffer from
    before the first event is not added, but subtracted when it is freed. (The real library uses unsigned sums, so a
    negative sum is reported as a number near 2**64.)
    """
    use = L1Use()
    for event in events:
        match event:
            case CircularBufferAllocated():
                if not event.view and event.shown:
                    use.add_circular_buffers(event.size_bytes, dataflow=event.dataflow)
            case BufferAllocated():
                use.add(event.buffer)
            case BufferFreed():
                use.remove(event.buffer)
            case CircularBuffersFreed():
                use.remove_circular_buffers()
    return use.peaks


class L1Use:
    """The used L1 of a core during a call, in bytes, and its peaks so far."""

    __slots__ = ("_circular", "_dataflow", "_l1", "_peak_circular", "_peak_l1", "_peak_total")

    def __init__(self) -> None:
        self._circular = self._dataflow = self._l1 = 0
        self._peak_circular = self._peak_l1 = self._peak_total = 0

    @property
    def peaks(self) -> UsagePerCore:
        """The peaks so far."""
        return UsagePerCore(self._peak_circular, self._peak_l1, self._peak_total)

    def add(self, buffer: BufferSpec) -> None:
        """A buffer is allocated."""
        if buffer.buffer_type in _L1:
            self._l1 += buffer.bank_bytes
            self._peak_l1 = max(self._peak_l1, self._l1)
            self._raise_total()

    def remove(self, buffer: BufferSpec) -> None:
        """A buffer is freed."""
        if buffer.buffer_type in _L1:
            self._l1 -= buffer.bank_bytes

    def add_circular_buffers(self, size_bytes: int, *, dataflow: bool = False) -> None:
        """Circular buffers of a program, or dataflow buffers, are allocated."""
        if dataflow:
            self._dataflow += size_bytes
        else:
            self._circular += size_bytes
            self._peak_circular = max(self._peak_circular, self._circular)
        self._raise_total()

    def remove_circular_buffers(self) -> None:
        """Circular buffers and dataflow buffers of the last program are freed."""
        self._circular = self._dataflow = 0

    def _raise_total(self) -> None:
        self._peak_total = max(self._peak_total, self._circular + self._dataflow + self._l1)


class Moment(NamedTuple):
    """The state of a device before a call."""

    buffers: int  # Buffers that it had made
    programs: int
    recorders: tuple[list[Event], ...]  # Who listened
