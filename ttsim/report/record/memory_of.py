"""What lies in L1 core by core, and how long tensors are there, from the events of calls."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from device.memory.layouts import TensorSpec, page_places
from device.memory.memory_config import BufferType
from device.plan import BufferAllocated, BufferFreed, Event, MadeTensor, OperationBegin, OperationEnd, Refused
from device.spec.device_spec import DeviceSpec
from ttsim.report.memory.summary import living_after
from ttsim.report.record.figures import Chunk, Lifetime

NOWHERE: Final = ("", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCall:
    """A call, as far as memory goes."""

    number: int  # Counted from 1
    before: tuple[BufferAllocated, ...]  # What lay in the memories when it began
    events: tuple[Event, ...]  # What happened meanwhile
    at: tuple[str, int]  # File and line of the script that made it


def until_refused(events: Iterable[Event]) -> Iterator[Event]:
    """Events up to the moment when something did not fit; all of them if everything did."""
    for event in events:
        if isinstance(event, Refused):
            return
        yield event


class Chunks:
    """Finds the pages of buffers on their cores, of equal tensors once.

    Args:
        tensors: The tensor in each buffer, by the buffer's number; another buffer's pages are not told.
        spec: The device.
    """

    def __init__(self, tensors: Mapping[int, TensorSpec], spec: DeviceSpec) -> None:
        self._tensors = tensors
        self._spec = spec
        self._known: dict[TensorSpec, tuple[tuple[int, int, int, int], ...]] = {}

    def of(self, living: Iterable[BufferAllocated]) -> Iterator[Chunk]:
        """The pages in L1; L1_SMALL, which programs keep full of tables, and DRAM, which no core has, are left out."""
        for one in living:
            if one.buffer.buffer_type is BufferType.L1 and one.number in self._tensors:
                yield from self._chunks(one, self._tensors[one.number])

    def _chunks(self, one: BufferAllocated, tensor: TensorSpec) -> Iterator[Chunk]:
        if tensor not in self._known:
            self._known[tensor] = tuple(_banks(tensor, one.buffer.page_bytes, self._spec))
        for bank, start, size, pages in self._known[tensor]:
            row, column = divmod(bank, self._spec.grid.cols)
            yield Chunk(
                address=one.address,
                buffer_type=one.buffer.buffer_type.value,
                bank=bank,
                column=column,
                row=row,
                start=one.address + start,
                size_bytes=size,
                page_bytes=one.buffer.page_bytes,
                pages=pages,
            )


def _banks(tensor: TensorSpec, page_bytes: int, spec: DeviceSpec) -> Iterator[tuple[int, int, int, int]]:
    """Bank, first offset, bytes to the end of the last page, and pages."""
    places = page_places(tensor, spec)
    for bank in np.unique(places.banks):
        offsets = places.offsets[places.banks == bank]
        first = int(offsets.min())
        yield int(bank), first, int(offsets.max()) + page_bytes - first, len(offsets)


def lifetimes(calls: Sequence[SeenCall], tensors: Mapping[MadeTensor, int]) -> tuple[Lifetime, ...]:
    """From when to when tensors are there.

    Args:
        tensors: Their numbers.
    """
    made: dict[MadeTensor, SeenCall] = {}
    read: dict[MadeTensor, SeenCall] = {}
    for call in calls:
        for event in call.events:
            if isinstance(event, OperationBegin):
                read.update((one.tensor, call) for one in event.read)
            elif isinstance(event, OperationEnd):
                made.update((one, call) for one in event.made if one not in made and one not in read)
    freed = _freed(calls)
    return tuple(
        Lifetime(
            tensor=number,
            made=made[one].number if one in made else None,
            last_read=read[one].number if one in read else None,
            freed=freed.get(one.number),
            made_at=made[one].at if one in made else NOWHERE,
            last_read_at=read[one].at if one in read else NOWHERE,
        )
        for one, number in tensors.items()
    )


def _freed(calls: Sequence[SeenCall]) -> dict[int, int]:
    """The call in which each buffer was freed, or the last one before it was gone."""
    found: dict[int, int] = {}
    for at, call in enumerate(calls):
        found.update((event.number, call.number) for event in call.events if isinstance(event, BufferFreed))
        if at + 1 < len(calls):
            still = {one.number for one in calls[at + 1].before}
            after = living_after(call.before, call.events)
            found.update((number, call.number) for number in after if number not in still)
    return found
