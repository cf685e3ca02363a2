"""The words a plan is written in: allocations, releases and device operations, as pure data.

A plan is a sequence of steps over *tensors named by strings*. It holds no address and no number: the memory reading
gives every tensor an address, the values reading gives it contents, the cycles reading gives every operation its
time. What an operation computes stands in its ``work``, a frozen value; what a work means is said outside the plan, in
the table that a reading is given.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from device.cores import CoreRangeSet
from device.errors import TTSimError
from device.memory.layouts import BufferSpec, TensorSpec
from device.numbers.formats import DataFormat

MOVE: Final = "MoveDeviceOperation"  # the device operation that a `Relocate` runs


class Work:
    """What a step computes: the base of all frozen values that say so. Equal works compute the same."""

    __slots__ = ()


class ProgramKey(tuple[Hashable, ...]):
    """What decides a program or a plan; caches and queues ask for its hash, which is worked out once."""

    def __hash__(self) -> int:
        """That of the tuple."""
        known: int | None = self.__dict__.get("known")
        if known is None:
            known = self.__dict__["known"] = super().__hash__()
        return known


class CircularBuffer(NamedTuple):
    """One circular buffer of a program; a plan has some thirty of them, and a named tuple is quickly made."""

    name: str  # The role it has in its operation ("act", "weights", ...)
    size_bytes: int  # Bytes on each of its cores
    page_bytes: int  # Bytes of one page (a tile, a stick or an index list)
    data_format: DataFormat  # Element format of a page
    cores: CoreRangeSet  # Where it lives
    # Name of the tensor whose shard it is placed on; None if it takes L1 of its own, bottom-up
    view_of: str | None = None
    offset_bytes: int = 0  # Distance from the start of that shard
    scratchpad: bool = False  # Whether it is room for one processor alone, which a capture calls a scratchpad


class Allocate(NamedTuple):
    """A buffer comes into being."""

    tensor: str  # Name of the tensor it belongs to, unique in the plan
    buffer: BufferSpec  # What is asked of the allocator
    # The function of the real library that asks (the name seen in a graph capture)
    by: str = "tt::tt_metal::create_device_tensor"
    source: str | None = None  # Host tensor that is written into it at once; None if an operation writes it later
    work: Work | None = None  # What the host does to that tensor on the way; None writes it as it is


@dataclass(frozen=True, slots=True)
class Free:
    """A tensor's buffer is released; doing so twice is harmless, as in the real library."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One device operation: a program on a set of cores."""

    name: str  # As a graph capture of the real library shows it, for example "HaloDeviceOperation"
    inputs: tuple[str, ...]  # Tensors it reads
    # Tensors it makes, allocated before it runs, in order; without any it writes into its last input
    outputs: tuple[Allocate, ...] = ()
    # Config tensors that stay allocated as long as the program stays in the program cache
    resident: tuple[Allocate, ...] = ()
    circular_buffers: tuple[CircularBuffer, ...] = ()  # In order of allocation
    dataflow: bool = False  # They are dataflow buffers: a capture shows them only when nothing is dispatched
    work: Work | None = None  # What it computes, with all that the readings need to know of it
    key: Hashable = None  # Equal keys mean the same cached program (resident tensors are then not made again)
    # Why its program cannot be built, if it cannot: raised as a DeviceError once its outputs are allocated, so that
    # what does not fit before that is reported first, as on a real device
    refused: str | None = None
    # Why its program cannot be finished: raised as a DeviceError once its resident tensors are, too
    unfinished: str | None = None

    def __post_init__(self) -> None:
        if type(self.key) is tuple:
            object.__setattr__(self, "key", ProgramKey(self.key))


@dataclass(frozen=True, slots=True)
class Relocate:
    """A tensor is released and allocated again to defragment; `MOVE` runs if the address changes."""

    tensor: str
    buffer: BufferSpec  # What is asked of the allocator
    work: Work | None = None  # What the operation computes
    circular_buffers: tuple[CircularBuffer, ...] = ()  # Of the program that copies page by page
    # Of the program that reads all before it writes, where both places overlap and it fits
    overlapping: tuple[CircularBuffer, ...] = ()


@dataclass(frozen=True, slots=True)
class Refuse:
    """The call ends here, refused once all before it has run: the last step of a plan."""

    text: str
    error: type[TTSimError]


Step = Allocate | Free | Operation | Relocate | Refuse


@dataclass(frozen=True, slots=True)
class Expected:
    """What a reader takes a tensor for that it finds on the device."""

    tensor: str
    work: Work  # What would have prepared it for this reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Something that a planner chose for the caller, and what it came from."""

    name: str  # What was chosen, as a key
    value: str | int
    text: str  # Choice and reason, as a sentence
    limits: tuple[tuple[str, int], ...] = ()  # The figures that decided, by name; bytes where the name says so


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one call does, in order."""

    steps: tuple[Step, ...]
    # Shape, format, layout and place of every named tensor (inputs included)
    tensors: Mapping[str, TensorSpec] = field(default_factory=dict)
    # Names of what the call returns, by role ("output", "weight", "bias")
    results: Mapping[str, str] = field(default_factory=dict)
    expected: tuple[Expected, ...] = ()  # What its operations take tensors for that were on the device before
    decisions: tuple[Decision, ...] = ()  # What was chosen for the caller, each once, in order

    @property
    def refused(self) -> bool:
        """Whether it ends in a refusal."""
        return bool(self.steps) and isinstance(self.steps[-1], Refuse)
