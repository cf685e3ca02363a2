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
    """One circular buffer of a program; a plan has some thirty of them, and a named tuple is quickly made.

    Attributes:
        name: The role it has in its operation ("act", "weights", ...).
        size_bytes: Bytes on each of its cores.
        page_bytes: Bytes of one page (a tile, a stick or an index list).
        data_format: Element format of a page.
        cores: Where it lives.
        view_of: Name of the tensor whose shard it is placed on; None if it takes L1 of its own, bottom-up.
        offset_bytes: Distance from the start of that shard.
        scratchpad: Whether it is room for one processor alone, which a capture calls a scratchpad.
    """

    name: str
    size_bytes: int
    page_bytes: int
    data_format: DataFormat
    cores: CoreRangeSet
    view_of: str | None = None
    offset_bytes: int = 0
    scratchpad: bool = False


class Allocate(NamedTuple):
    """A buffer comes into being.

    Attributes:
        tensor: Name of the tensor it belongs to, unique in the plan.
        buffer: What is asked of the allocator.
        by: The function of the real library that asks (the name seen in a graph capture).
        source: Host tensor that is written into it at once; None if an operation writes it later.
        work: What the host does to that tensor on the way; None writes it as it is.
    """

    tensor: str
    buffer: BufferSpec
    by: str = "tt::tt_metal::create_device_tensor"
    source: str | None = None
    work: Work | None = None


@dataclass(frozen=True, slots=True)
class Free:
    """A tensor's buffer is released; doing so twice is harmless, as in the real library."""

    tensor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One device operation: a program on a set of cores.

    Attributes:
        name: As a graph capture of the real library shows it, for example "HaloDeviceOperation".
        inputs: Tensors it reads.
        outputs: Tensors it makes, allocated before it runs, in order; without any it writes into its last input.
        resident: Config tensors that stay allocated as long as the program stays in the program cache.
        circular_buffers: In order of allocation.
        dataflow: They are dataflow buffers: a capture shows them only when nothing is dispatched.
        work: What it computes, with all that the readings need to know of it.
        key: Equal keys mean the same cached program (resident tensors are then not made again).
        refused: Why its program cannot be built, if it cannot: raised as a DeviceError once its outputs are
            allocated, so that what does not fit before that is reported first, as on a real device.
        unfinished: Why its program cannot be finished: raised as a DeviceError once its resident tensors are, too.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[Allocate, ...] = ()
    resident: tuple[Allocate, ...] = ()
    circular_buffers: tuple[CircularBuffer, ...] = ()
    dataflow: bool = False
    work: Work | None = None
    key: Hashable = None
    refused: str | None = None
    unfinished: str | None = None

    def __post_init__(self) -> None:
        if type(self.key) is tuple:
            object.__setattr__(self, "key", ProgramKey(self.key))


@dataclass(frozen=True, slots=True)
class Relocate:
    """A tensor is released and allocated again to defragment; the operation `MOVE` runs if it comes to lie elsewhere.

    Attributes:
        tensor: Its name.
        buffer: What is asked of the allocator.
        work: What the operation computes.
        circular_buffers: Of the program that copies page by page.
        overlapping: Of the program that reads all before it writes, where both places overlap and it fits.
    """

    tensor: str
    buffer: BufferSpec
    work: Work | None = None
    circular_buffers: tuple[CircularBuffer, ...] = ()
    overlapping: tuple[CircularBuffer, ...] = ()


@dataclass(frozen=True, slots=True)
class Refuse:
    """The call ends here, refused once all before it has run: the last step of a plan.

    Attributes:
        text: Why.
        error: The error that is raised.
    """

    text: str
    error: type[TTSimError]


Step = Allocate | Free | Operation | Relocate | Refuse


@dataclass(frozen=True, slots=True)
class Expected:
    """What a reader takes a tensor for that it finds on the device.

    Attributes:
        tensor: Its name.
        work: What would have prepared it for this reader.
    """

    tensor: str
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Something that a planner chose for the caller, and what it came from.

    Attributes:
        name: What was chosen, as a key.
        value: The choice.
        text: Choice and reason, as a sentence.
        limits: The figures that decided, by name; bytes where the name says so.
    """

    name: str
    value: str | int
    text: str
    limits: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one call does, in order.

    Attributes:
        steps: The steps.
        tensors: Shape, format, layout and place of every named tensor (inputs included).
        results: Names of what the call returns, by role ("output", "weight", "bias").
        expected: What its operations take tensors for that were on the device before.
        decisions: What was chosen for the caller, each once, in order.
    """

    steps: tuple[Step, ...]
    tensors: Mapping[str, TensorSpec] = field(default_factory=dict)
    results: Mapping[str, str] = field(default_factory=dict)
    expected: tuple[Expected, ...] = ()
    decisions: tuple[Decision, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether it ends in a refusal."""
        return bool(self.steps) and isinstance(self.steps[-1], Refuse)
