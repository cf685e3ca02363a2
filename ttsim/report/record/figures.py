"""The record of what ran on a device, as frozen values; `figures_of` computes its figures, `export` writes files."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from device.events import BufferAllocated, MadeTensor
from device.memory.layouts import TensorSpec
from ttsim.report.cycles.figures import OperationTime
from ttsim.report.cycles.report import CycleReport
from ttsim.report.network.report import NetworkReport
from ttsim.report.record.timelines import Timeline

CALL_COUNT_STEP: Final = 1024  # of the real library's profiler, from one device operation to the next


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreSpan:
    """What one core does in a device operation.

    Attributes:
        column: Where.
        row: Where.
        cycles: From the start of the program to the end of the core's last stage.
    """

    column: int
    row: int
    cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTime:
    """A device operation in nanoseconds; whole figures of an `OperationTime`.

    Attributes:
        kernel: From the first core's start to the last core's end.
        least: Of the core that ends first.
        mean: Of all cores that take part.
        ideal: What its roofline allows.
        products: What the matrix units alone need for its products.
        dram: What DRAM alone needs for its bytes.
    """

    kernel: int
    least: int
    mean: int
    ideal: int
    products: int
    dram: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOperation:
    """A device operation.

    Attributes:
        number: Counted from 0.
        name: As a graph capture shows it.
        call: Number of its call, counted from 0 among those that ran.
        program: Its program: equal numbers are one program, counted from 1.
        cached: Whether the program was found in the cache.
        inputs: What it reads.
        output: What it makes, or writes into.
        attributes: What the real library's profiler prints of it, by name.
        fidelity_phases: Fidelity phases, 1 (LoFi) to 4 (HiFi4); 0 if it multiplies nothing.
        start_cycle: When its kernels start, gaps before it included.
        end_cycle: When the last of them ends; 0 cycles later where no model knows it.
        gap_nanoseconds: What no kernel fills before it, in a trace replay.
        core_count: Cores that take part; 0 where no model knows it.
        nanoseconds: Its times; None where no model knows it.
        time: All other figures; None likewise.
        spans: Every core's part, row by row.
    """

    number: int
    name: str
    call: int
    program: int
    cached: bool
    inputs: tuple[TensorSpec, ...]
    output: TensorSpec
    attributes: tuple[tuple[str, str], ...]
    fidelity_phases: int
    start_cycle: int
    end_cycle: int
    gap_nanoseconds: int
    core_count: int
    nanoseconds: KernelTime | None
    time: OperationTime | None
    spans: tuple[CoreSpan, ...]

    @property
    def call_count(self) -> int:
        """The number by which the real library's profiler knows it."""
        return (self.number + 1) * CALL_COUNT_STEP

    def end_of(self, span: CoreSpan) -> int:
        """The cycle in which a core ends its part."""
        return self.start_cycle + span.cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The pages of an L1 buffer on one core.

    Attributes:
        address: Where the buffer begins in every bank.
        buffer_type: L1 or L1_SMALL, as the real library numbers them.
        bank: The core, counted row by row.
        column: The core.
        row: The core.
        start: Address of the first page there.
        size_bytes: From there to the end of the last page.
        page_bytes: Of one page.
        pages: How many there are.
    """

    address: int
    buffer_type: int
    bank: int
    column: int
    row: int
    start: int
    size_bytes: int
    page_bytes: int
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """From when to when a tensor is there, in numbers of calls; None for none that was seen.

    Attributes:
        tensor: Number of the tensor.
        made: The call that made it.
        last_read: The last call that read it.
        freed: The call that its buffer was freed in, or directly behind.
        made_at: File and line of the script that made it; empty and 0 where none is known.
        last_read_at: Likewise, of the last call that read it.
    """

    tensor: int
    made: int | None
    last_read: int | None
    freed: int | None
    made_at: tuple[str, int]
    last_read_at: tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A call of a function that ran device operations, or failed before it could.

    Attributes:
        number: Counted from 1.
        function: Its name.
        where: The lines of the script that made it.
        nanoseconds: Of its device operations.
        arguments: What it was given and what was chosen for it, in words.
        inputs: Numbers of the record's tensors that it read.
        outputs: Numbers of those that it returned.
        living: The buffers that live when it has ended, or when it failed, oldest first.
        chunks: The L1 buffers among them that hold tensors, by core.
        error: Why it failed; empty if it did not.
        nodes: Its graph, as a capture has it; each device operation ends with its circular buffers released.
    """

    number: int
    function: str
    where: str
    nanoseconds: int
    arguments: tuple[tuple[str, str], ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    living: tuple[BufferAllocated, ...]
    chunks: tuple[Chunk, ...]
    error: str
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
    """Everything that ran on a device between two moments.

    Attributes:
        name: Of the report.
        arch: Architecture of the device, if viewers know it; empty otherwise.
        device: The device.
        clock_mhz: Its clock.
        calls: In order.
        operations: Of all calls, in order.
        tensors: Tensors on the device that calls read or made, by number.
        lifetimes: Of these, in the same order.
        timelines: What programs send over the networks, by their number, of those whose model knows routes.
        cycles: The report on cycles.
        network: The report on all calls as one network.
    """

    name: str
    arch: str
    device: DeviceFigures
    clock_mhz: int
    calls: tuple[RecordedCall, ...]
    operations: tuple[RecordedOperation, ...]
    tensors: tuple[tuple[int, MadeTensor], ...]
    lifetimes: tuple[Lifetime, ...]
    timelines: tuple[tuple[int, Timeline], ...]
    cycles: CycleReport
    network: NetworkReport
