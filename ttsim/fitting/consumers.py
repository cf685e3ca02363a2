"""What a memory was full of when something did not fit, read from the events."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from device.events import (
    BufferAllocated,
    BufferFreed,
    CircularBufferAllocated,
    CircularBuffersFreed,
    Event,
    OperationBegin,
    OperationEnd,
    Refused,
)
from device.memory.buffers import Buffer
from device.memory.memory_config import BufferType
from device.spec.device_spec import DeviceSpec


class Consumer(NamedTuple):
    """Something that takes memory."""

    text: str  # What it is, and of which operation
    size_bytes: int  # In one bank


class Shortage(NamedTuple):
    """A memory that something did not fit into."""

    memory: BufferType
    consumers: tuple[Consumer, ...]  # What took it, largest first
    cached: bool = False  # Circular buffers of a cached program did not fit: events do not name them


def shortage(events: Sequence[Event], before: Iterable[Buffer]) -> Shortage | None:
    """What took the memory that was short; None if nothing was refused.

    Args:
        events: What happened in one call.
        before: Buffers that lived before.
    """
    refusals = [index for index, event in enumerate(events) if isinstance(event, Refused)]
    if not refusals:
        return None
    until, refused = events[: refusals[0]], events[refusals[0]]
    asked = refused.buffer if isinstance(refused, Refused) else None
    memory = BufferType.L1 if asked is None else asked.buffer_type
    sizes: Counter[str] = Counter()
    for one in _buffers(until, before, memory):
        sizes[one.text] += one.size_bytes
    programs = list(_circular_buffers(until)) if asked is None else []
    for one in programs:
        sizes[one.text] += one.size_bytes
    found = (Consumer(text, size) for text, size in sizes.items())
    largest = tuple(sorted(found, key=lambda one: (-one.size_bytes, one.text)))
    return Shortage(memory, largest, cached=asked is None and not programs)


def bank_bytes(spec: DeviceSpec, memory: BufferType, l1_small_bytes: int) -> int:
    """Bytes of a memory that one bank has for buffers; of L1, circular buffers included."""
    if memory is BufferType.DRAM:
        return spec.dram.usable_bytes
    return l1_small_bytes if memory is BufferType.L1_SMALL else spec.l1.usable_bytes - l1_small_bytes


def _buffers(events: Iterable[Event], before: Iterable[Buffer], memory: BufferType) -> Iterator[Consumer]:
    """Buffers alive after the events; the small ones of a program count together."""
    small = memory is BufferType.L1_SMALL
    old = "index tensors of programs cached before the call" if small else "buffer {!r} from before the call"
    live = {
        one.number: Consumer(old.format(one.name), one.spec.bank_bytes)
        for one in before
        if one.spec.buffer_type is memory
    }
    running: list[str] = []
    for event in events:
        if isinstance(event, OperationBegin):
            running.append(event.name)
        elif isinstance(event, OperationEnd):
            running.pop()
        elif isinstance(event, BufferAllocated) and event.buffer.buffer_type is memory:
            owner = f" of {running[-1]}" if running else ""
            text = f"index tensors{owner}" if small else f"buffer {event.name!r}{owner}"
            live[event.number] = Consumer(text, event.buffer.bank_bytes)
        elif isinstance(event, BufferFreed):
            live.pop(event.number, None)
    yield from live.values()


def _circular_buffers(events: Iterable[Event]) -> Iterator[Consumer]:
    """Circular buffers of the last program that take L1 of their own."""
    found: list[Consumer] = []
    for event in events:
        if isinstance(event, CircularBuffersFreed):
            found.clear()
        elif isinstance(event, CircularBufferAllocated) and not event.view:
            found.append(Consumer(f"circular buffer {event.name!r} of {event.operation}", event.size_bytes))
    yield from found
