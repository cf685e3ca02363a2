"""The record of what ran on a device, from which `export` writes files for other tools."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from device.memory.layouts import TensorSpec, page_places
from device.memory.memory_config import BufferType
from device.plan import BufferAllocated, BufferFreed, Event, MadeTensor, OperationBegin, OperationEnd, Refused
from device.spec.device_spec import DeviceSpec, catalog_names, load_spec
from ttsim.report.cycle_report import CycleReport
from ttsim.report.memory import living_after
from ttsim.report.network import NetworkReport
from ttsim.report.runs import OpRun
from ttsim.report.timelines import Timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The pages of an L1 buffer on one core."""

    address: int  # Where the buffer begins in every bank
    buffer_type: int  # L1 or L1_SMALL, as the real library numbers them
    bank: int  # The core, counted row by row
    column: int
    row: int
    start: int  # Address of the first page there
    size_bytes: int  # From there to the end of the last page
    page_bytes: int
    pages: int  # How many there are


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """From when to when a tensor is there, in numbers of calls; None for none that was seen."""

    tensor: int
    made: int | None
    last_read: int | None
    freed: int | None  # The call that its buffer was freed in, or directly behind
    made_at: tuple[str, int]  # File and line of the script that made it; empty and 0 where none is known
    last_read_at: tuple[str, int]  # Likewise, of the last call that read it


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A call of a function that ran device operations, or failed before it could."""

    number: int  # Counted from 1
    function: str
    where: str  # The lines of the script that made it
    nanoseconds: int  # Of its device operations
    arguments: tuple[tuple[str, str], ...]  # What it was given and what was chosen for it, in words
    inputs: tuple[int, ...]  # Numbers of the record's tensors that it read
    outputs: tuple[int, ...]  # Numbers of those that it returned
    living: tuple[BufferAllocated, ...]  # The buffers that live when it has ended, or when it failed, oldest first
    chunks: tuple[Chunk, ...]  # The L1 buffers among them that hold tensors, by core
    error: str  # Why it failed; empty if it did not
    # Its graph, as a capture has it; each device operation ends with its circular buffers released
    nodes: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Everything that ran on a device between two moments."""

    name: str
    arch: str  # Architecture of the device, if viewers know it; empty otherwise
    device: Mapping[str, int]  # By the columns of the visualizer's table of devices
    clock_mhz: int
    calls: tuple[RecordedCall, ...]
    operations: tuple[OpRun, ...]  # Of all calls, in order
    tensors: tuple[tuple[int, MadeTensor], ...]  # Tensors on the device that calls read or made, by number
    lifetimes: tuple[Lifetime, ...]  # Of these, in the same order
    # What programs send over the networks, by their number, of those whose model knows routes
    timelines: tuple[tuple[int, Timeline], ...]
    cycles: CycleReport  # The report on cycles
    network: NetworkReport  # The report on all calls as one network


def numbered(tensors: Iterable[MadeTensor]) -> dict[MadeTensor, int]:
    """A number for each tensor: that of its buffer; what sees a buffer as another tensor is counted behind the last."""
    each = list(dict.fromkeys(tensors))
    views, found = [], {}
    taken: set[int] = set()
    for one in each:
        if one.number in taken:
            views.append(one)
            continue
        taken.add(one.number)
        found[one] = one.number
    found.update((one, number) for number, one in enumerate(views, start=max(taken, default=0) + 1))
    return found


def device_figures(spec: DeviceSpec, l1_small_bytes: int) -> dict[str, int]:
    """A device by the columns of the visualizer's table of devices; bytes are those of a core, totals of all.

    Args:
        l1_small_bytes: Bytes of each core's L1 set apart for index tables.
    """
    cores, bank = spec.grid.cores, spec.l1.usable_bytes - l1_small_bytes
    return {
        "device_id": 0,
        "num_y_cores": spec.grid.rows,
        "num_x_cores": spec.grid.cols,
        "num_y_compute_cores": spec.grid.rows,
        "num_x_compute_cores": spec.grid.cols,
        "worker_l1_size": spec.l1.bytes,
        "l1_num_banks": cores,
        "l1_bank_size": bank,
        "address_at_first_l1_bank": spec.l1.base_bytes,
        "address_at_first_l1_cb_buffer": spec.l1.base_bytes,
        "num_banks_per_storage_core": 1,
        "num_compute_cores": cores,
        "num_storage_cores": 0,
        "total_l1_memory": spec.l1.bytes * cores,
        "total_l1_for_tensors": bank * cores,
        "total_l1_for_interleaved_buffers": bank * cores,
        "total_l1_for_sharded_buffers": bank * cores,
        "cb_limit": spec.l1.usable_bytes,
    }


def known_arch(spec: DeviceSpec) -> str:
    """The family of a device if a device of the catalog has it, too; else nothing, for viewers refuse what is new."""
    return spec.family if any(load_spec(name).family == spec.family for name in catalog_names()) else ""


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
