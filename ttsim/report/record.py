"""The record of what ran on a device, from which `export` writes files for other tools."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

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


class Chunk(NamedTuple):
    """The pages of an L1 buffer on one core; the fields are the columns of the visualizer's table."""

    address: int  # Where the buffer begins in every bank
    bank: int  # The core, counted row by row
    column: int
    row: int
    start: int  # Address of the first page there
    size_bytes: int  # From there to the end of the last page
    page_bytes: int
    pages: int  # How many there are
    buffer_type: int  # L1 or L1_SMALL, as the real library numbers them


class Lifetime(NamedTuple):
    """The lifetime of a tensor in numbers of calls; None if the call was not seen."""

    tensor: int
    made: int | None
    last_read: int | None
    freed: int | None  # The call in which, or after which, its buffer was freed
    made_at: tuple[str, int]  # File and line of the script that made it; ("", 0) if unknown
    last_read_at: tuple[str, int]  # File and line of the last call that read it


@dataclass(frozen=True, kw_only=True)
class RecordedCall:
    """A call that ran device operations, or failed before."""

    number: int  # Counted from 1
    function: str
    where: str = ""  # The lines of the script that made it
    at: tuple[str, int] = ("", 0)  # File and line of the script that made it
    before: tuple[BufferAllocated, ...]  # The buffers that lived when it began
    events: tuple[Event, ...]  # Events of the call
    nanoseconds: int = 0  # Of its device operations
    arguments: tuple[tuple[str, str], ...] = ()  # Its arguments and the planner's choices, as text
    inputs: tuple[int, ...] = ()  # Numbers of the record's tensors that it read
    outputs: tuple[int, ...] = ()  # Numbers of the tensors that it returned
    error: str = ""  # Why it failed; empty if it did not
    # Its graph as a capture; each device operation ends with its circular buffers released
    nodes: tuple[Mapping[str, Any], ...] = ()

    @cached_property
    def living(self) -> tuple[BufferAllocated, ...]:
        """The buffers that live at the end of the call, or at its failed allocation, oldest first."""
        fitted = takewhile(lambda event: not isinstance(event, Refused), self.events)
        return tuple(living_after(self.before, fitted).values())


class Chunks:
    """Finds the pages of buffers on their cores, once for equal tensors; `tensors` maps buffer numbers to tensors."""

    def __init__(self, tensors: Mapping[int, TensorSpec], spec: DeviceSpec) -> None:
        self._tensors = tensors
        self._spec = spec
        self._known: dict[TensorSpec, tuple[tuple[int, int, int, int], ...]] = {}

    def of(self, living: Iterable[BufferAllocated]) -> Iterator[Chunk]:
        """The pages in L1, without L1_SMALL, which is full of index tables, and DRAM, which belongs to no core."""
        for event in living:
            tensor, page = self._tensors.get(event.number), event.buffer.page_bytes
            if event.buffer.buffer_type is not BufferType.L1 or tensor is None:
                continue
            if tensor not in self._known:
                self._known[tensor] = tuple(_banks(tensor, page, self._spec))
            for bank, start, size, pages in self._known[tensor]:
                row, column = divmod(bank, self._spec.grid.cols)
                place = (bank, column, row, event.address + start)
                yield Chunk(event.address, *place, size, page, pages, event.buffer.buffer_type.value)


def _banks(tensor: TensorSpec, page_bytes: int, spec: DeviceSpec) -> Iterator[tuple[int, int, int, int]]:
    """Bank, first offset, bytes to the end of the last page, and number of pages."""
    places = page_places(tensor, spec)
    for bank in np.unique(places.banks):
        offsets = places.offsets[places.banks == bank]
        first = int(offsets.min())
        yield int(bank), first, int(offsets.max()) + page_bytes - first, len(offsets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All calls on a device between two moments."""

    name: str
    arch: str  # Architecture of the device, if viewers know it; empty otherwise
    device: Mapping[str, int]  # By the columns of the visualizer's table of devices
    clock_mhz: int
    calls: tuple[RecordedCall, ...]
    operations: tuple[OpRun, ...]  # Of all calls, in order
    tensors: tuple[tuple[int, MadeTensor], ...]  # Tensors on the device that calls read or made, by number
    lifetimes: tuple[Lifetime, ...]  # Lifetimes of `tensors`, in the same order
    chunks: Chunks  # Finds their pages on the cores
    # Network traffic by program number, for programs whose model knows routes
    timelines: tuple[tuple[int, Timeline], ...]
    cycles: CycleReport  # The report on cycles
    network: NetworkReport  # The report on all calls as one network

    @property
    def device_id(self) -> int:
        """The number of the device."""
        return self.device["device_id"]


def numbered(tensors: Iterable[MadeTensor]) -> dict[MadeTensor, int]:
    """A number for each tensor: that of its buffer; further tensors in the same buffer get numbers behind the last."""
    first: dict[int, MadeTensor] = {}
    views = [tensor for tensor in dict.fromkeys(tensors) if first.setdefault(tensor.number, tensor) != tensor]
    numbers = {tensor: number for number, tensor in first.items()}
    return numbers | {view: number for number, view in enumerate(views, start=max(first, default=0) + 1)}


def device_figures(spec: DeviceSpec, l1_small_bytes: int) -> dict[str, int]:
    """A device by the columns of the visualizer's table of devices; `l1_small_bytes` are per core."""
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
    """The family of a device if a catalog device has it, else empty: viewers refuse unknown families."""
    return spec.family if any(load_spec(name).family == spec.family for name in catalog_names()) else ""


def lifetimes(calls: Sequence[RecordedCall], tensors: Mapping[MadeTensor, int]) -> tuple[Lifetime, ...]:
    """The lifetimes of tensors, by their numbers."""
    result: dict[MadeTensor, RecordedCall] = {}
    read: dict[MadeTensor, RecordedCall] = {}
    for call in calls:
        for event in call.events:
            if isinstance(event, OperationBegin):
                read.update((source.tensor, call) for source in event.read)
            elif isinstance(event, OperationEnd):
                result.update((tensor, call) for tensor in event.made if tensor not in result and tensor not in read)
    freed = _freed(calls)

    def seen(call: RecordedCall | None) -> tuple[int | None, tuple[str, int]]:
        return (None, ("", 0)) if call is None else (call.number, call.at)

    def lifetime(tensor: MadeTensor, number: int) -> Lifetime:
        (made_in, made_at), (read_in, read_at) = seen(result.get(tensor)), seen(read.get(tensor))
        return Lifetime(number, made_in, read_in, freed.get(tensor.number), made_at, read_at)

    return tuple(lifetime(tensor, number) for tensor, number in tensors.items())


def _freed(calls: Sequence[RecordedCall]) -> dict[int, int]:
    freed: dict[int, int] = {}
    for call, after in pairwise((*calls, None)):
        assert call is not None
        freed.update((event.number, call.number) for event in call.events if isinstance(event, BufferFreed))
        if after is not None:
            still = {event.number for event in after.before}
            freed.update((gone, call.number) for gone in living_after(call.before, call.events) if gone not in still)
    return freed
