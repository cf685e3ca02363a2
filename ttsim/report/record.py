"""The record of calls on a device, from which `exports` writes files for other tools."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, takewhile
from typing import Any, Final, NamedTuple

import numpy as np

from device.memory.layouts import TensorSpec, page_places
from device.memory.memory_config import BufferType
from device.plan import BufferAllocated, BufferFreed, Event, OperationBegin, OperationEnd, Refused, WrittenTensor
from device.spec.device_spec import DeviceSpec, catalog_names, load_spec
from ttsim.report.cycle_report import CycleReport
from ttsim.report.memory import living_after
from ttsim.report.network import NetworkReport, OpRun
from ttsim.report.rows import Derived
from ttsim.report.timelines import Document
from ttsim.runtime.traces import CallSite

NOWHERE: Final = CallSite("", 0)
Moment = tuple[int | None, CallSite]  # a call by its number, and the line that made it; None if it was not seen
Lifetime = tuple[int, int | None, CallSite, int | None, CallSite, int | None]  # see `lifetimes`


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


@dataclass(frozen=True, kw_only=True)
class RecordedCall:
    """A call that ran device operations, or failed."""

    number: int  # Counted from 1
    function: str
    where: str = ""  # The lines of the script that made it
    stack: tuple[CallSite, ...] = ()  # These lines with their files and functions, outermost first
    before: tuple[BufferAllocated, ...]  # The buffers that lived when it began
    events: tuple[Event, ...]  # Events of the call
    nanoseconds: int = 0  # Of its device operations
    arguments: tuple[tuple[str, str], ...] = ()  # Its arguments and the planner's choices, as text
    inputs: tuple[int, ...] = ()  # Numbers of the record's tensors that it read
    outputs: tuple[int, ...] = ()  # Numbers of the tensors that it returned
    error: str = ""  # Why it failed; empty if it did not
    # Its graph as a capture; each device operation ends with its circular buffers released
    nodes: tuple[Mapping[str, Any], ...] = ()

    @property
    def at(self) -> CallSite:
        """The script line of the call; `NOWHERE` if unknown."""
        return self.stack[-1] if self.stack else NOWHERE

    @cached_property
    def living(self) -> tuple[BufferAllocated, ...]:
        """The live buffers at the end of the call, or at its failed allocation, oldest first."""
        fitted = takewhile(lambda event: not isinstance(event, Refused), self.events)
        return tuple(living_after(self.before, fitted).values())


def chunks_of(
    living: Iterable[BufferAllocated], tensors: Mapping[int, TensorSpec], spec: DeviceSpec
) -> Iterator[Chunk]:
    """The pages of L1 buffers on their cores; `tensors` maps buffer numbers to their tensors.

    L1_SMALL, which has only index tables, and DRAM, which belongs to no core, are excluded.
    """
    for event in living:
        if event.buffer.buffer_type is BufferType.L1 and event.number in tensors:
            page = event.buffer.page_bytes
            for bank, start, size, pages in _banks(tensors[event.number], page, spec):
                row, column = divmod(bank, spec.grid.cols)
                place = (event.address, bank, column, row, event.address + start)
                yield Chunk(*place, size, page, pages, event.buffer.buffer_type.value)


@lru_cache(maxsize=256)
def _banks(tensor: TensorSpec, page_bytes: int, spec: DeviceSpec) -> list[tuple[int, int, int, int]]:
    """Bank, first offset, bytes to the end of the last page, and number of pages."""
    places = page_places(tensor, spec)
    order = np.lexsort((places.offsets, places.banks))
    banks, first, counts = np.unique(places.banks[order], return_index=True, return_counts=True)
    offsets = places.offsets[order]
    starts, ends = offsets[first], offsets[first + counts - 1] + page_bytes
    return list(zip(*(column.tolist() for column in (banks, starts, ends - starts, counts)), strict=True))


@dataclass(frozen=True, kw_only=True)
class Record:
    """All calls on a device between two moments."""

    name: str
    spec: DeviceSpec
    l1_small_bytes: int  # Per core
    calls: tuple[RecordedCall, ...]
    operations: tuple[OpRun, ...]  # Of all calls, in order
    sources: Mapping[str, str]  # Texts of the script's files by the names of `RecordedCall.stack`
    tensors: dict[WrittenTensor, int]  # Tensors on the device that calls read or made, with their numbers
    # Network traffic by program number, for programs whose model knows routes
    timelines: tuple[tuple[int, Document], ...]
    cycles: CycleReport  # The report on cycles
    network: NetworkReport  # The report on all calls as one network

    arch = Derived[str](lambda record: known_arch(record.spec))  # Empty if viewers do not know it
    device = Derived[dict[str, int]](lambda record: device_figures(record.spec, record.l1_small_bytes))
    source_numbers = Derived[dict[str, int]](  # By file
        lambda record: {file: number for number, file in enumerate(record.sources, start=1)}
    )
    device_id = Derived[int](lambda record: record.device["device_id"])
    lifetimes = Derived[list[Lifetime]](lambda record: lifetimes(record.calls, record.tensors))

    buffers = Derived[dict[int, TensorSpec]](  # The first tensor in each buffer, by the buffer's number
        lambda record: {tensor.number: tensor.spec for tensor in reversed(record.tensors)}
    )


def numbered(tensors: Iterable[WrittenTensor]) -> dict[WrittenTensor, int]:
    """A number for each tensor: the number of its buffer; further tensors of a buffer get new numbers."""
    first: dict[int, WrittenTensor] = {}
    views = [tensor for tensor in dict.fromkeys(tensors) if first.setdefault(tensor.number, tensor) != tensor]
    numbers = {tensor: number for number, tensor in first.items()}
    return numbers | {view: number for number, view in enumerate(views, start=max(first, default=0) + 1)}


DEVICE_FIGURES: Final[Mapping[str, Callable[[DeviceSpec, int], int]]] = {
    "device_id": lambda spec, bank: 0,
    "num_y_cores": lambda spec, bank: spec.grid.rows,
    "num_x_cores": lambda spec, bank: spec.grid.cols,
    "num_y_compute_cores": lambda spec, bank: spec.grid.rows,
    "num_x_compute_cores": lambda spec, bank: spec.grid.cols,
    "worker_l1_size": lambda spec, bank: spec.l1.bytes,
    "l1_num_banks": lambda spec, bank: spec.grid.cores,
    "l1_bank_size": lambda spec, bank: bank,
    "address_at_first_l1_bank": lambda spec, bank: spec.l1.base_bytes,
    "address_at_first_l1_cb_buffer": lambda spec, bank: spec.l1.base_bytes,
    "num_banks_per_storage_core": lambda spec, bank: 1,
    "num_compute_cores": lambda spec, bank: spec.grid.cores,
    "num_storage_cores": lambda spec, bank: 0,
    "total_l1_memory": lambda spec, bank: spec.l1.bytes * spec.grid.cores,
    "total_l1_for_tensors": lambda spec, bank: bank * spec.grid.cores,
    "total_l1_for_interleaved_buffers": lambda spec, bank: bank * spec.grid.cores,
    "total_l1_for_sharded_buffers": lambda spec, bank: bank * spec.grid.cores,
    "cb_limit": lambda spec, bank: spec.l1.usable_bytes,
}


def device_figures(spec: DeviceSpec, l1_small_bytes: int) -> dict[str, int]:
    """The row of a device in the visualizer's table of devices; `l1_small_bytes` is per core."""
    bank = spec.l1.usable_bytes - l1_small_bytes
    return {name: figure(spec, bank) for name, figure in DEVICE_FIGURES.items()}


def known_arch(spec: DeviceSpec) -> str:
    """The family of a device if it is in the catalog, else empty, because viewers refuse unknown families."""
    return spec.family if any(load_spec(name).family == spec.family for name in catalog_names()) else ""


def lifetimes(calls: Sequence[RecordedCall], tensors: Mapping[WrittenTensor, int]) -> list[Lifetime]:
    """For each tensor: its number, its producer, its last reader, and the last call before its buffer was freed."""
    producers: dict[WrittenTensor, Moment] = {}
    readers: dict[WrittenTensor, Moment] = {}
    for call in calls:
        for event in call.events:
            if isinstance(event, OperationBegin):
                readers.update((source.tensor, (call.number, call.at)) for source in event.read)
            elif isinstance(event, OperationEnd):
                new = (tensor for tensor in event.made if tensor not in producers and tensor not in readers)
                producers.update((tensor, (call.number, call.at)) for tensor in new)
    freed, never = _freed(calls), (None, NOWHERE)
    return [
        (number, *producers.get(tensor, never), *readers.get(tensor, never), freed.get(tensor.number))
        for tensor, number in tensors.items()
    ]


def _freed(calls: Sequence[RecordedCall]) -> dict[int, int]:
    freed: dict[int, int] = {}
    for call, after in pairwise((*calls, None)):
        assert call is not None
        freed.update((event.number, call.number) for event in call.events if isinstance(event, BufferFreed))
        if after is not None:
            still = {event.number for event in after.before}
            freed.update((gone, call.number) for gone in living_after(call.before, call.events) if gone not in still)
    return freed
