"""The one list of what happened on a device, and what it says about the use of L1.

A device appends to every recorder that listens; reports and the graph capture read the list and compute nothing of
their own.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from device.cores import CoreRangeSet
from device.memory.layouts import BufferSpec, TensorSpec
from device.memory.memory_config import BufferType
from device.plan import Work
from device.spec.device_spec import DeviceSpec

_L1: Final = (BufferType.L1, BufferType.L1_SMALL)


class MadeTensor(NamedTuple):
    """What a device operation made."""

    number: int  # Running number of its buffer on the device
    address: int  # Where the buffer begins in every bank
    spec: TensorSpec  # Shape, format, layout and place


class ReadTensor(NamedTuple):
    """What a device operation or a function reads."""

    tensor: MadeTensor  # What it is taken for
    buffer: BufferSpec  # Where it lies


class OperationBegin(NamedTuple):
    """A function of the library, or a device operation, starts."""

    name: str
    work: Work | None = None  # What a device operation computes; None for a function
    read: tuple[ReadTensor, ...] = ()  # Tensors on the device that it reads, and writes into, in order
    hosts: tuple[TensorSpec, ...] = ()  # Tensors on the host that a function reads, in order
    spec: DeviceSpec | None = None  # The device of a device operation; None for a function
    dispatched: bool = True  # Whether a device operation runs; in a capture without dispatch it does not
    step: int | None = None  # Index of the step in the plan whose operation it is; None for a function


class OperationEnd(NamedTuple):
    """It ends; begins and ends nest."""

    name: str  # The name it began with
    aborted: bool = False  # Whether an error ended it
    made: tuple[MadeTensor, ...] = ()  # The outputs of a device operation, or what it wrote into; none of a function
    cached: bool = False  # Whether its program was found in the program cache
    hosts: tuple[TensorSpec, ...] = ()  # Tensors on the host that a function made, in order


class BufferAllocated(NamedTuple):
    """A buffer came to life.

    Attributes:
        number: Running number of the buffer on its device.
        name: What it is for.
        address: Where it begins in every bank.
        buffer: Type, layout, sizes and cores.
        by: The function of the real library that asks for it.
        tensor: The tensor that it is for, where that is known.
    """

    number: int
    name: str
    address: int
    buffer: BufferSpec
    by: str = ""
    tensor: TensorSpec | None = None


class BufferFreed(NamedTuple):
    """A buffer died; the fields are those of ``BufferAllocated``; what it held is not told."""

    number: int
    name: str
    address: int
    buffer: BufferSpec
    by: str = ""
    tensor: TensorSpec | None = None


class CircularBufferAllocated(NamedTuple):
    """A program got a circular buffer.

    Attributes:
        operation: The device operation.
        name: Its role there.
        size_bytes: On each core.
        address: On each core.
        cores: Where it is.
        view: Whether it lies on a tensor's shard and takes no L1 of its own.
        dataflow: Whether it is a dataflow buffer.
        scratchpad: Whether it is a scratchpad, which is one of them, too.
    """

    operation: str
    name: str
    size_bytes: int
    address: int
    cores: CoreRangeSet
    view: bool
    dataflow: bool = False
    scratchpad: bool = False

    @property
    def shown(self) -> bool:
        """Whether a capture shows it: a dataflow buffer only without dispatch, when nothing has an address."""
        return not self.dataflow or self.address == 0


class CircularBuffersFreed(NamedTuple):
    """The circular buffers of the last program are gone: the next is made or found in the cache, or none is kept."""


class Refused(NamedTuple):
    """The device refused a buffer, or the circular buffers of a program: what follows is the way back."""

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

    Attributes:
        peak_cb: Circular buffers of one program that are no views, in bytes.
        peak_l1: L1 and L1_SMALL buffers, in bytes.
        peak_total: Both together at one moment, in bytes.
    """

    peak_cb: int
    peak_l1: int
    peak_total: int


def usage_per_core(events: Iterable[Event]) -> UsagePerCore:
    """What the real library's ``extract_resource_usage_per_core`` says of a capture.

    Buffers count with their bytes per bank, not rounded, wherever their cores are. Circular buffers are added up
    whatever cores they are on, and count until the next program is made (one that is found in the program cache makes
    none). A buffer that was there before the first event does not count, but is taken off when it is freed, as there.
    (The real library adds up without a sign: where that makes its sum negative, it reports numbers near 2**64.)
    """
    cb = dataflow = l1 = peak_cb = peak_l1 = peak_total = 0
    for event in events:
        match event:
            case CircularBufferAllocated():
                if not event.view and event.shown:
                    cb += 0 if event.dataflow else event.size_bytes
                    dataflow += event.size_bytes if event.dataflow else 0
                    peak_cb, peak_total = max(peak_cb, cb), max(peak_total, cb + dataflow + l1)
            case BufferAllocated():
                if event.buffer.buffer_type in _L1:
                    l1 += event.buffer.bank_bytes
                    peak_l1, peak_total = max(peak_l1, l1), max(peak_total, cb + dataflow + l1)
            case BufferFreed():
                if event.buffer.buffer_type in _L1:
                    l1 -= event.buffer.bank_bytes
            case CircularBuffersFreed():
                cb = dataflow = 0
    return UsagePerCore(peak_cb, peak_l1, peak_total)
