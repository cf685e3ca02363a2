"""The report on a call: L1 of a core, partition and output, from the plan and the list of events."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

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
    UsagePerCore,
    usage_per_core,
)
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.partition import ConvPartition
from ttsim.report.accuracy import Accuracy
from ttsim.report.cycle_report import CycleReport
from ttsim.report.cycles import Ranges, ranges_of
from ttsim.report.formatting import counted
from ttsim.report.l1_map import CIRCULAR, Held
from ttsim.report.rows import Column, Row
from ttsim.runtime.types.layer import Layer

IN_L1: Final = (BufferType.L1, BufferType.L1_SMALL)
DEVICE_OPERATION: Final = "DeviceOperation"  # the end of operation names, left out to save room


@dataclass(frozen=True, eq=False, repr=False)
class CircularBufferUse(Row):
    """A circular buffer of one device operation."""

    event: CircularBufferAllocated
    usable_bytes: int

    name = Column["CircularBufferUse", str](lambda use: use.event.name)
    size_bytes = Column["CircularBufferUse", int](lambda use: use.event.size_bytes)  # On each of its cores
    address = Column["CircularBufferUse", int](lambda use: use.event.address)  # On each of its cores
    cores = Column["CircularBufferUse", str](lambda use: str(use.event.cores))  # As ttnn prints them
    core_count = Column["CircularBufferUse", int](lambda use: use.event.cores.num_cores())
    # A view on a tensor's shard, without L1 of its own
    view = Column["CircularBufferUse", bool](lambda use: use.event.view)
    # Of the L1 that a program can use
    l1_share = Column["CircularBufferUse", float](lambda use: 0.0 if use.view else use.size_bytes / use.usable_bytes)
    ranges = Column["CircularBufferUse", Ranges](lambda use: ranges_of(use.event.cores))


@dataclass(frozen=True, eq=False, repr=False)
class BufferUse(Row):
    """A buffer that exists while a device operation runs."""

    event: BufferAllocated
    usable_bytes: int

    name = Column["BufferUse", str](lambda use: use.event.name)  # The tensor it belongs to
    memory = Column["BufferUse", str](lambda use: use.event.buffer.buffer_type.name)  # "L1", "L1_SMALL" or "DRAM"
    memory_layout = Column["BufferUse", str](lambda use: use.event.buffer.memory_layout.name)
    size_bytes = Column["BufferUse", int](lambda use: use.event.buffer.size_bytes)  # All banks together, unaligned
    bank_bytes = Column["BufferUse", int](lambda use: use.event.buffer.bank_bytes)  # In the fullest bank: a core of L1
    address = Column["BufferUse", int](lambda use: use.event.address)  # In every bank
    # Of the L1 that a program can use; 0 in DRAM
    l1_share = Column["BufferUse", float](lambda use: use.bank_bytes / use.usable_bytes if use.in_l1 else 0.0)

    @property
    def in_l1(self) -> bool:
        """Whether the buffer is in L1 or L1_SMALL."""
        return self.event.buffer.buffer_type in IN_L1


AnyBufferUse = CircularBufferUse | BufferUse


@dataclass(frozen=True, eq=False, repr=False)
class OperationUse(Row, figures="name"):
    """One device operation, its circular buffers, and the buffers at its end."""

    name: str  # As a graph capture shows it
    spec: DeviceSpec
    circular: tuple[CircularBufferAllocated, ...]
    live: tuple[BufferAllocated, ...]

    circular_buffers = Column["OperationUse", tuple[CircularBufferUse, ...]](  # In order of allocation
        lambda op: tuple(CircularBufferUse(event, op.spec.l1.usable_bytes) for event in op.circular)
    )
    buffers = Column["OperationUse", tuple[BufferUse, ...]](  # In L1 and DRAM, in order of allocation
        lambda op: tuple(BufferUse(event, op.spec.l1.usable_bytes) for event in op.live)
    )
    # Circular buffers that are no views, on the fullest core
    circular_bytes = Column["OperationUse", int](lambda op: fullest_core_bytes(op.local))
    # L1 and L1_SMALL buffers, on a core
    buffer_bytes = Column["OperationUse", int](lambda op: sum(event.buffer.bank_bytes for event in op.in_l1))
    used_share = Column["OperationUse", float](  # Circular buffers and buffers, as a share of the usable L1
        lambda op: op.used_bytes / op.spec.l1.usable_bytes
    )
    headroom_bytes = Column["OperationUse", int](  # Between the end of the circular buffers and the lowest L1 buffer
        lambda op: (
            min((event.address for event in op.in_l1), default=op.spec.l1.bytes)
            - max((event.address + event.size_bytes for event in op.local), default=op.spec.l1.base_bytes)
        )
    )

    @property
    def local(self) -> list[CircularBufferAllocated]:
        """The circular buffers that are no views."""
        return [event for event in self.circular if not event.view]

    @property
    def in_l1(self) -> list[BufferAllocated]:
        """The buffers in L1 and L1_SMALL."""
        return [event for event in self.live if event.buffer.buffer_type in IN_L1]

    @property
    def used_bytes(self) -> int:
        """Circular buffers and buffers together, on a core."""
        return self.circular_bytes + self.buffer_bytes

    @property
    def held(self) -> tuple[Held, ...]:
        """The contents of L1: circular buffers, then buffers."""
        circular = (
            Held(
                name=use.name,
                kind=CIRCULAR,
                address=use.address,
                size_bytes=use.size_bytes,
                cores=use.cores,
                ranges=use.ranges,
            )
            for use in self.circular_buffers
            if not use.view
        )
        buffers = (
            Held(name=use.name, kind=use.memory, address=use.address, size_bytes=use.bank_bytes)
            for use in self.buffers
            if use.in_l1
        )
        return (*circular, *buffers)


@dataclass(frozen=True, eq=False, repr=False)
class L1Use(Row, figures="usable_bytes"):
    """L1 of a core over the whole call, with the buffers from before the call."""

    usable_bytes: int  # Usable L1, L1_SMALL included
    usage: UsagePerCore  # Added up as ttnn's extract_resource_usage_per_core does
    tight: OperationUse | None  # The device operation with the least headroom; None if there was none

    peak_circular_bytes = Column["L1Use", int](lambda use: use.usage.peak_cb)  # Circular buffers
    peak_buffer_bytes = Column["L1Use", int](lambda use: use.usage.peak_l1)  # L1 and L1_SMALL buffers
    peak_total_bytes = Column["L1Use", int](lambda use: use.usage.peak_total)  # Both at one moment
    peak_share = Column["L1Use", float](lambda use: use.peak_total_bytes / use.usable_bytes)
    headroom_bytes = Column["L1Use", int](  # At the tightest moment, between the circular buffers and the lowest buffer
        lambda use: use.usable_bytes if use.tight is None else use.tight.headroom_bytes
    )
    headroom_share = Column["L1Use", float](lambda use: use.headroom_bytes / use.usable_bytes)
    tightest = Column["L1Use", str](lambda use: "" if use.tight is None else use.tight.name)


@dataclass(frozen=True, eq=False, repr=False)
class Partition(Row):
    """The partition of a convolution."""

    layout: ConvPartition
    times: int = 1

    scheme = Column["Partition", str](lambda cut: cut.layout.scheme.name)  # HEIGHT_SHARDED, BLOCK_SHARDED ..
    input_cores = Column["Partition", int](lambda cut: cut.layout.config.cores.num_cores())
    output_cores = Column["Partition", int](lambda cut: cut.layout.out_config.cores.num_cores())
    cores = Column["Partition", str](lambda cut: str(cut.layout.out_config.cores))  # Of the output, as ttnn prints them
    # Rows and channels of the input, and of the output, on one core
    input_shard = Column["Partition", tuple[int, int]](
        lambda cut: (cut.layout.shards.in_rows, cut.layout.shards.in_width)
    )
    output_shard = Column["Partition", tuple[int, int]](
        lambda cut: (cut.layout.shards.out_rows, cut.layout.shards.out_width)
    )
    # Height and width of an activation block, and of an output sub-block
    act_block_tiles = Column["Partition", tuple[int, int]](
        lambda cut: (cut.layout.blocks.act_h_tiles, cut.layout.blocks.act_w_tiles)
    )
    subblock_tiles = Column["Partition", tuple[int, int]](
        lambda cut: (cut.layout.blocks.subblock_h_tiles, cut.layout.blocks.subblock_w_tiles)
    )
    k_blocks = Column["Partition", int](lambda cut: cut.layout.blocks.k_blocks)  # Blocks of the inner dimension
    # Both data-movement processors read activations
    split_reader = Column["Partition", bool](lambda cut: cut.layout.split_reader)
    # Number of the call's convolutions (one per slice) with this partition
    convolutions = Column["Partition", int](lambda cut: cut.times)


@dataclass(frozen=True, eq=False, repr=False)
class OutputUse(Row, figures="shape padded_shape dtype layout memory_config place height width"):
    """The output tensor."""

    output: TensorSpec
    height: int  # Rows of one image
    width: int  # Columns of one image

    shape = Column["OutputUse", tuple[int, ...]](lambda use: use.output.shape)
    padded_shape = Column["OutputUse", tuple[int, ...]](lambda use: use.output.padded_shape)  # As stored
    dtype = Column["OutputUse", str](lambda use: use.output.data_format.name)
    layout = Column["OutputUse", str](lambda use: use.output.layout.name)  # "TILE" or "ROW_MAJOR"
    memory_config = Column["OutputUse", str](lambda use: str(use.output.memory_config))  # As ttnn prints it
    place = Column["OutputUse", str](lambda use: place_of(use.output.memory_config))  # The memory config in short


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A call of conv_transpose2d."""

    device: str
    output: OutputUse  # The output tensor
    partitions: tuple[Partition, ...]  # Partitions of the convolutions that ran, in order
    l1: L1Use  # L1 over the whole call
    operations: tuple[OperationUse, ...]  # The device operations in order
    accuracy: Accuracy | None = None  # Against float64; None without values
    cycles: CycleReport | None = None  # None if cycles are not estimated


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerResult:
    """The result of one layer that was run."""

    layer: Layer  # The requested layer
    summary: Summary | None = None  # None if the layer failed
    error: str | None = None  # Why it failed; None if it did not
    # The device operations of a failed layer, the failed one last
    reached: tuple[OperationUse, ...] = ()
    source: str = ""  # The call as Python; empty without valid arguments


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
    """All figures of one call; earlier events on the device count in peaks and headroom.

    `layouts` are the partitions of its convolutions, `output_size` the rows and columns of an output image.
    """
    operations = operation_uses(spec, before, events)
    partitions = Counter(map(Partition, layouts))
    return Summary(
        device=spec.name,
        output=OutputUse(output, *output_size),
        partitions=tuple(Partition(partition.layout, count) for partition, count in partitions.items()),
        l1=l1_use(spec, [*before, *events], operations),
        operations=operations,
        accuracy=accuracy,
        cycles=cycles,
    )


def place_of(memory: MemoryConfig) -> str:
    """The place of a tensor in a few words."""
    kind, shards = f"{memory.memory_layout.name} in {memory.buffer_type.name}", memory.shard_spec
    if shards is None:
        return kind
    rows, columns = shards.shape
    cores = counted(shards.grid.num_cores(), "core")
    return f"{kind}, shards {rows}x{columns} on {cores}, {shards.orientation.name}"


def l1_use(spec: DeviceSpec, events: Sequence[Event], operations: Sequence[OperationUse]) -> L1Use:
    """L1 of a core; `events` begin with the opening of the device."""
    tightest = min(operations, key=lambda operation: operation.headroom_bytes, default=None)
    return L1Use(spec.l1.usable_bytes, usage_per_core(events), tightest)


def operation_uses(spec: DeviceSpec, before: Sequence[Event], events: Sequence[Event]) -> tuple[OperationUse, ...]:
    """The device operations of a call, each with the memory contents at its end or at its failure."""
    live = living_after((), before)
    uses: list[OperationUse] = []
    circular: list[CircularBufferAllocated] = []
    running: str | None = None
    for event in events:
        if isinstance(event, CircularBufferAllocated):
            circular.append(event)
        elif isinstance(event, CircularBuffersFreed):
            circular = []
        elif isinstance(event, OperationBegin) and event.name.endswith(DEVICE_OPERATION):
            running, circular = event.name, []
        elif isinstance(event, OperationEnd) and event.name == running:
            uses.append(OperationUse(running, spec, tuple(circular), tuple(live.values())))
            running = None
        else:
            _follow(live, event)
    if running is not None:
        uses.append(OperationUse(running, spec, tuple(circular), tuple(live.values())))
    return tuple(uses)


def living_after(before: Iterable[BufferAllocated], events: Iterable[Event]) -> dict[int, BufferAllocated]:
    """The buffers that live after some events by number, oldest first; `before` lived at their start."""
    live = {event.number: event for event in before}
    for event in events:
        _follow(live, event)
    return live


def _follow(live: dict[int, BufferAllocated], event: Event) -> None:
    if isinstance(event, BufferAllocated):
        live[event.number] = event
    elif isinstance(event, BufferFreed):
        live.pop(event.number, None)


def fullest_core_bytes(local: Sequence[CircularBufferAllocated | CircularBuffer]) -> int:
    """Bytes of circular buffers on the fullest core; cores are compared only if their sets differ."""
    by_cores: Counter[CoreRangeSet] = Counter()
    for buffer in local:
        by_cores[buffer.cores] += buffer.size_bytes
    if len(by_cores) <= 1:
        return sum(by_cores.values())
    by_core: Counter[CoreCoord] = Counter()
    for cores, size in by_cores.items():
        by_core.update(dict.fromkeys(cores.cores(), size))
    return max(by_core.values())
