"""The report on a call: L1 of a core, partition and output, from the plan and the list of events."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from device.cores import CoreCoord, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, MemoryConfig
from device.plan import (
    BufferAllocated,
    BufferFreed,
    CircularBuffer,
    CircularBufferAllocated,
    CircularBuffersFreed,
    Event,
    OperationBegin,
    OperationEnd,
    usage_per_core,
)
from device.spec.device_spec import DeviceSpec
from device.time.stages import Lazy
from ops.programs.conv2d.partition import ConvPartition
from ttsim.report.accuracy import Accuracy
from ttsim.report.cycle_report import CycleReport
from ttsim.report.formatting import counted
from ttsim.report.l1_map import Ranges, ranges_of
from ttsim.runtime.types.layer import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class CircularBufferUse:
    """A circular buffer of one device operation."""

    name: str
    size_bytes: int  # On each of its cores
    address: int  # On each of its cores
    cores: str  # Where, as ttnn prints it
    core_count: int  # How many cores
    view: bool  # It lies on a tensor's shard and takes no L1 of its own
    l1_share: float  # Of the L1 a program can use, 0 to 1; 0 for a view
    ranges: Ranges = ()  # Its cores as rectangles: first column, first row, last column, last row


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferUse:
    """A buffer that is there while a device operation runs."""

    name: str  # The tensor it belongs to
    memory: str  # "L1", "L1_SMALL" or "DRAM"
    memory_layout: str  # How its pages are dealt to banks
    size_bytes: int  # All banks together, unaligned
    bank_bytes: int  # In the fullest bank, which for L1 is a core
    address: int  # In every bank
    l1_share: float  # Of the L1 a program can use, 0 to 1; 0 in DRAM


@dataclass(frozen=True, kw_only=True)
class OperationUse:
    """One device operation.

    Attributes:
        circular_buffers: In order of allocation; found out when asked for.
        buffers: What lies in L1 and DRAM when it ends, in order of allocation; likewise.
    """

    name: str  # As a graph capture shows it
    circular_buffers: Lazy[tuple[CircularBufferUse, ...]] = Lazy()  # noqa: RUF009 (a descriptor, not a default)
    buffers: Lazy[tuple[BufferUse, ...]] = Lazy()  # noqa: RUF009
    circular_bytes: int  # Circular buffers that are no views, on the fullest core
    buffer_bytes: int  # L1 and L1_SMALL buffers, on a core
    used_share: float  # Both together, of the L1 a program can use
    headroom_bytes: int  # Between the end of the circular buffers and the lowest L1 buffer

    @property
    def used_bytes(self) -> int:
        """Circular buffers and buffers together, on a core."""
        return self.circular_bytes + self.buffer_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class L1Use:
    """L1 of a core over the whole call, with what lay there before it."""

    usable_bytes: int  # What a program can use, L1_SMALL included
    peak_circular_bytes: int  # Circular buffers, added up as ttnn's extract_resource_usage_per_core does
    peak_buffer_bytes: int  # L1 and L1_SMALL buffers, likewise
    peak_total_bytes: int  # Both at one moment, likewise
    peak_share: float  # The last of usable_bytes
    headroom_bytes: int  # At the tightest moment, between the circular buffers and the lowest L1 buffer
    headroom_share: float  # That of usable_bytes
    tightest: str  # The device operation with the least headroom; empty if there was none


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """How a convolution was cut up."""

    scheme: str  # HEIGHT_SHARDED, BLOCK_SHARDED or WIDTH_SHARDED
    input_cores: int
    output_cores: int
    cores: str  # Those of the output, as ttnn prints them
    input_shard: tuple[int, int]  # Rows and channels of the input on one core
    output_shard: tuple[int, int]  # Rows and channels of the output on one core
    act_block_tiles: tuple[int, int]  # Height and width of an activation block
    subblock_tiles: tuple[int, int]  # Height and width of an output sub-block
    k_blocks: int  # Blocks of the inner dimension
    split_reader: bool  # Both data-movement processors read activations
    convolutions: int = 1  # How many of the call's convolutions (one a slice) were cut up so


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputUse:
    """The output tensor."""

    shape: tuple[int, ...]
    padded_shape: tuple[int, ...]  # As stored
    dtype: str  # Name of its data format
    layout: str  # "TILE" or "ROW_MAJOR"
    memory_config: str  # As ttnn prints it
    place: str  # The same in short
    height: int  # Rows of one image
    width: int  # Columns of one image


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A call of conv_transpose2d."""

    device: str
    output: OutputUse  # What came out
    partitions: tuple[Partition, ...]  # The ways in which the convolutions that ran were cut up, in order
    l1: L1Use  # L1 over the whole call
    operations: tuple[OperationUse, ...]  # The device operations in order
    accuracy: Accuracy | None = None  # Against float64; None where there are no values
    cycles: CycleReport | None = None  # What it took; None where cycles are not estimated


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerResult:
    """One layer that was run."""

    layer: Layer  # What was asked
    summary: Summary | None = None  # What it gave; None if it failed
    error: str | None = None  # Why it failed; None if it did not
    # Of a failed layer, the device operations it came to, the one that failed last
    reached: tuple[OperationUse, ...] = ()
    source: str = ""  # The call as Python; empty if its arguments do not exist


IN_L1 = (BufferType.L1, BufferType.L1_SMALL)
DEVICE_OPERATION = "DeviceOperation"  # the end of their names, left out where there is little room


def summarize(
    *,
    spec: DeviceSpec,
    before: Sequence[Event],
    events: Sequence[Event],
    layouts: Iterable[ConvPartition],
    output: TensorSpec,
    output_size: tuple[int, int],
    accuracy: Accuracy | None = None,
    cycles: CycleReport | None = None,
) -> Summary:
    """All figures of one call.

    Args:
        before: What happened on the device until the call: what it left allocated counts in peaks and headroom.
        events: What happened in the call.
        layouts: Of its convolutions, from the plan.
        output: Spec of the output tensor.
        output_size: (rows, columns) of an output image.
        accuracy: Of the output, where there are values.
        cycles: Of the call, where they are estimated.
    """
    operations = operation_uses(spec, before, events)
    return Summary(
        device=spec.name,
        output=OutputUse(
            shape=output.shape,
            padded_shape=output.padded_shape,
            dtype=output.data_format.name,
            layout=output.layout.name,
            memory_config=str(output.memory_config),
            place=place_of(output.memory_config),
            height=output_size[0],
            width=output_size[1],
        ),
        partitions=partitions_of(layouts),
        l1=l1_use(spec, [*before, *events], operations),
        operations=operations,
        accuracy=accuracy,
        cycles=cycles,
    )


def place_of(memory: MemoryConfig) -> str:
    """Where a tensor lies, in a few words; its memory config names the cores."""
    kind, shards = f"{memory.memory_layout.name} in {memory.buffer_type.name}", memory.shard_spec
    if shards is None:
        return kind
    rows, columns = shards.shape
    cores = counted(shards.grid.num_cores(), "core")
    return f"{kind}, shards {rows}x{columns} on {cores}, {shards.orientation.name}"


def partitions_of(layouts: Iterable[ConvPartition]) -> tuple[Partition, ...]:
    """The different partitions among some layouts, in order of their first convolution."""
    times: dict[Partition, int] = {}
    for partition in map(partition_of, layouts):
        times[partition] = times.get(partition, 0) + 1
    return tuple(one if count == one.convolutions else replace(one, convolutions=count) for one, count in times.items())


def partition_of(layout: ConvPartition) -> Partition:
    """The figures of a layout."""
    shards, blocks = layout.shards, layout.blocks
    return Partition(
        scheme=layout.scheme.name,
        input_cores=layout.config.cores.num_cores(),
        output_cores=layout.out_config.cores.num_cores(),
        cores=str(layout.out_config.cores),
        input_shard=(shards.in_rows, shards.in_width),
        output_shard=(shards.out_rows, shards.out_width),
        act_block_tiles=(blocks.act_h_tiles, blocks.act_w_tiles),
        subblock_tiles=(blocks.subblock_h_tiles, blocks.subblock_w_tiles),
        k_blocks=blocks.k_blocks,
        split_reader=layout.split_reader,
    )


def l1_use(spec: DeviceSpec, events: Sequence[Event], operations: Sequence[OperationUse]) -> L1Use:
    """L1 of a core, over events from the opening of the device on."""
    usage = usage_per_core(events)
    tightest = min(operations, key=lambda operation: operation.headroom_bytes, default=None)
    usable = spec.l1.usable_bytes
    headroom = usable if tightest is None else tightest.headroom_bytes
    return L1Use(
        usable_bytes=usable,
        peak_circular_bytes=usage.peak_cb,
        peak_buffer_bytes=usage.peak_l1,
        peak_total_bytes=usage.peak_total,
        peak_share=usage.peak_total / usable,
        headroom_bytes=headroom,
        headroom_share=headroom / usable,
        tightest="" if tightest is None else tightest.name,
    )


def operation_uses(spec: DeviceSpec, before: Sequence[Event], events: Sequence[Event]) -> tuple[OperationUse, ...]:
    """The device operations of a call, each with what lay in memory when it ended, or when it failed."""
    live = living_after((), before)
    found: list[OperationUse] = []
    circular: list[CircularBufferAllocated] = []
    running: str | None = None
    for event in events:
        if isinstance(event, BufferAllocated):
            live[event.number] = event
        elif isinstance(event, BufferFreed):
            live.pop(event.number, None)
        elif isinstance(event, CircularBufferAllocated):
            circular.append(event)
        elif isinstance(event, CircularBuffersFreed):
            circular = []
        elif isinstance(event, OperationBegin) and is_program(event.name):
            running, circular = event.name, []
        elif isinstance(event, OperationEnd) and event.name == running:
            found.append(operation_use(spec, running, tuple(circular), live.values()))
            running = None
    if running is not None:
        found.append(operation_use(spec, running, tuple(circular), live.values()))
    return tuple(found)


def is_program(name: str) -> bool:
    """Whether a function is a device operation."""
    return name.endswith(DEVICE_OPERATION)


def living_after(before: Iterable[BufferAllocated], events: Iterable[Event]) -> dict[int, BufferAllocated]:
    """The buffers that live after some events by their running number, oldest first.

    Args:
        before: Those that lived when the first of them happened.
        events: What happened.
    """
    live = {one.number: one for one in before}
    for event in events:
        if isinstance(event, BufferAllocated):
            live[event.number] = event
        elif isinstance(event, BufferFreed):
            live.pop(event.number, None)
    return live


def operation_use(
    spec: DeviceSpec, name: str, circular: Sequence[CircularBufferAllocated], live: Iterable[BufferAllocated]
) -> OperationUse:
    """One device operation with its circular buffers and the buffers around it."""
    usable = spec.l1.usable_bytes
    buffers = list(live)
    local = [event for event in circular if not event.view]
    in_l1 = [event for event in buffers if event.buffer.buffer_type in IN_L1]
    circular_bytes = fullest_core_bytes(local)
    buffer_bytes = sum(event.buffer.bank_bytes for event in in_l1)
    top = max((event.address + event.size_bytes for event in local), default=spec.l1.base_bytes)
    bottom = min((event.address for event in in_l1), default=spec.l1.bytes)
    return OperationUse(
        name=name,
        circular_buffers=lambda: tuple(circular_buffer_use(event, usable) for event in circular),
        buffers=lambda: tuple(buffer_use(event, usable) for event in buffers),
        circular_bytes=circular_bytes,
        buffer_bytes=buffer_bytes,
        used_share=(circular_bytes + buffer_bytes) / usable,
        headroom_bytes=bottom - top,
    )


def circular_buffer_use(event: CircularBufferAllocated, usable_bytes: int) -> CircularBufferUse:
    """The figures of one circular buffer."""
    return CircularBufferUse(
        name=event.name,
        size_bytes=event.size_bytes,
        address=event.address,
        cores=str(event.cores),
        core_count=event.cores.num_cores(),
        view=event.view,
        l1_share=0.0 if event.view else event.size_bytes / usable_bytes,
        ranges=ranges_of(event.cores),
    )


def buffer_use(event: BufferAllocated, usable_bytes: int) -> BufferUse:
    """The figures of one buffer."""
    buffer = event.buffer
    return BufferUse(
        name=event.name,
        memory=buffer.buffer_type.name,
        memory_layout=buffer.memory_layout.name,
        size_bytes=buffer.size_bytes,
        bank_bytes=buffer.bank_bytes,
        address=event.address,
        l1_share=buffer.bank_bytes / usable_bytes if buffer.buffer_type in IN_L1 else 0.0,
    )


def fullest_core_bytes(local: Sequence[CircularBufferAllocated | CircularBuffer]) -> int:
    """Bytes of circular buffers on the core that has most; cores are told apart only where the sets differ."""
    by_cores: dict[CoreRangeSet, int] = {}
    for event in local:
        by_cores[event.cores] = by_cores.get(event.cores, 0) + event.size_bytes
    if len(by_cores) <= 1:
        return sum(by_cores.values())
    by_core: dict[CoreCoord, int] = {}
    for cores, size in by_cores.items():
        for core in cores.cores():
            by_core[core] = by_core.get(core, 0) + size
    return max(by_core.values())
