"""The record of what ran on a device, as frozen values; `figures_of` computes its figures, `export` writes files."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from device.memory.layouts import TensorSpec
from device.plan import BufferAllocated, MadeTensor
from ttsim.report.cycles.figures import OperationTime
from ttsim.report.cycles.report import CycleReport
from ttsim.report.network.report import NetworkReport
from ttsim.report.record.timelines import Timeline

CALL_COUNT_STEP: Final = 1024  # of the real library's profiler, from one device operation to the next


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreSpan:
    """What one core does in a device operation."""

    column: int
    row: int
    cycles: int  # From the start of the program to the end of the core's last stage


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTime:
    """A device operation in nanoseconds; whole figures of an `OperationTime`."""

    kernel: int  # From the first core's start to the last core's end
    least: int  # Of the core that ends first
    mean: int  # Of all cores that take part
    ideal: int  # What its roofline allows
    products: int  # What the matrix units alone need for its products
    dram: int  # What DRAM alone needs for its bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOperation:
    """A device operation."""

    number: int  # Counted from 0
    name: str  # As a graph capture shows it
    call: int  # Number of its call, counted from 0 among those that ran
    program: int  # Its program: equal numbers are one program, counted from 1
    cached: bool  # Whether the program was found in the cache
    inputs: tuple[TensorSpec, ...]  # What it reads
    output: TensorSpec  # What it makes, or writes into
    attributes: tuple[tuple[str, str], ...]  # What the real library's profiler prints of it, by name
    fidelity_phases: int  # Fidelity phases, 1 (LoFi) to 4 (HiFi4); 0 if it multiplies nothing
    start_cycle: int  # When its kernels start, gaps before it included
    end_cycle: int  # When the last of them ends; 0 cycles later where no model knows it
    gap_nanoseconds: int  # What no kernel fills before it, in a trace replay
    core_count: int  # Cores that take part; 0 where no model knows it
    nanoseconds: KernelTime | None  # Its times; None where no model knows it
    time: OperationTime | None  # All other figures; None likewise
    spans: tuple[CoreSpan, ...]  # Every core's part, row by row

    @property
    def call_count(self) -> int:
        """The number by which the real library's profiler knows it."""
        return (self.number + 1) * CALL_COUNT_STEP

    def end_of(self, span: CoreSpan) -> int:
        """The cycle in which a core ends its part."""
        return self.start_cycle + span.cycles


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
class DeviceFigures:
    """A device by the columns of the visualizer's table of devices; bytes are those of a core, totals of all."""

    device_id: int
    num_y_cores: int
    num_x_cores: int
    num_y_compute_cores: int
    num_x_compute_cores: int
    worker_l1_size: int
    l1_num_banks: int
    l1_bank_size: int
    address_at_first_l1_bank: int
    address_at_first_l1_cb_buffer: int
    num_banks_per_storage_core: int
    num_compute_cores: int
    num_storage_cores: int
    total_l1_memory: int
    total_l1_for_tensors: int
    total_l1_for_interleaved_buffers: int
    total_l1_for_sharded_buffers: int
    cb_limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Everything that ran on a device between two moments."""

    name: str
    arch: str  # Architecture of the device, if viewers know it; empty otherwise
    device: DeviceFigures
    clock_mhz: int
    calls: tuple[RecordedCall, ...]
    operations: tuple[RecordedOperation, ...]  # Of all calls, in order
    tensors: tuple[tuple[int, MadeTensor], ...]  # Tensors on the device that calls read or made, by number
    lifetimes: tuple[Lifetime, ...]  # Of these, in the same order
    # What programs send over the networks, by their number, of those whose model knows routes
    timelines: tuple[tuple[int, Timeline], ...]
    cycles: CycleReport  # The report on cycles
    network: NetworkReport  # The report on all calls as one network
