"""L1 of a core: buffers at each device operation, a map over operations, and the report on a call."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
from ttsim.report.rows import Column, Derived, Row
from ttsim.runtime.types.layer import Layer

IN_L1: Final = (BufferType.L1, BufferType.L1_SMALL)
DEVICE_OPERATION: Final = "DeviceOperation"  # the end of operation names, left out to save room
CIRCULAR: Final = "circular buffer"


@dataclass(frozen=True, slots=True)
class Occupant:
    """A buffer in L1 during a device operation."""

    name: str
    kind: str  # "circular buffer", "L1" or "L1_SMALL"
    address: int  # On every core that has it
    size_bytes: int  # On the core that has most of it
    cores: str = ""  # The cores of a circular buffer, as ttnn prints them; empty for other buffers
    ranges: Ranges = ()  # `cores` as rectangles
    made: str = ""  # Who made it, in words; empty if it is not known

    @classmethod
    def of(cls, buffer: CircularBuffer | CircularBufferAllocated, address: int) -> "Occupant":
        """A circular buffer at its address."""
        return cls(buffer.name, CIRCULAR, address, buffer.size_bytes, str(buffer.cores), ranges_of(buffer.cores))


class L1Block(Row, figures="held first last"):
    """A buffer over a range of device operations; shares are positions in a picture, time right, addresses up."""

    held: Occupant
    first: int  # Number of the first device operation that has the buffer
    last: int  # Number of the last one
    operations: int  # How many there are
    end_bytes: int  # Where L1 ends

    # Start and lifetime; all operations are equally wide
    left_share = Column[float](lambda block: block.first / block.operations)
    width_share = Column[float](lambda block: (block.last - block.first + 1) / block.operations)
    # Distance from the top of L1
    top_share = Column[float](lambda block: 1 - (block.held.address + block.held.size_bytes) / block.end_bytes)
    height_share = Column[float](lambda block: block.held.size_bytes / block.end_bytes)


@dataclass(frozen=True, slots=True)
class L1Map:
    """L1 of a core over device operations."""

    base_bytes: int  # Start of the L1 that a program can use
    end_bytes: int  # Where L1 ends
    base_share: float  # The former of the latter
    operations: int  # How many there are
    blocks: tuple[L1Block, ...]  # Buffers, in the order of their first operations


def l1_map(moments: Sequence[Sequence[Occupant]], spec: DeviceSpec) -> L1Map:
    """The map over device operations in sequence, from the L1 buffers during each of them.

    A circular buffer belongs to one operation; any other buffer spans the consecutive operations that have it.
    """
    spans: list[tuple[Occupant, list[int]]] = []
    alive: dict[Occupant, list[int]] = {}
    for number, moment in enumerate(moments):
        spanned: dict[Occupant, list[int]] = {}
        for buffer in moment:
            span = alive.get(buffer) if buffer.kind != CIRCULAR else None
            if span is None:
                span = [number, number]
                spans.append((buffer, span))
            span[1] = number
            spanned[buffer] = span
        alive = spanned
    base, end = spec.l1.base_bytes, spec.l1.bytes
    blocks = tuple(L1Block(buffer, first, last, len(moments), end) for buffer, (first, last) in spans)
    return L1Map(base, end, base / end, len(moments), blocks)


class CircularBufferUse(Row):
    """A circular buffer of one device operation."""

    event: CircularBufferAllocated
    usable_bytes: int

    name = Column[str](lambda use: use.event.name)
    size_bytes = Column[int](lambda use: use.event.size_bytes)  # On each of its cores
    address = Column[int](lambda use: use.event.address)  # On each of its cores
    cores = Column[str](lambda use: str(use.event.cores))  # As ttnn prints them
    core_count = Column[int](lambda use: use.event.cores.num_cores())
    view = Column[bool](lambda use: use.event.view)  # A view on a tensor's shard, without L1 of its own
    l1_share = Column[float](lambda use: 0.0 if use.view else use.size_bytes / use.usable_bytes)  # Of the usable L1
    ranges = Column[Ranges](lambda use: ranges_of(use.event.cores))
    core_bytes = Derived[int](lambda use: use.size_bytes)


class BufferUse(Row):
    """A buffer that exists while a device operation runs."""

    event: BufferAllocated
    usable_bytes: int

    name = Column[str](lambda use: use.event.name)  # The tensor it belongs to
    memory = Column[str](lambda use: use.event.buffer.buffer_type.name)  # "L1", "L1_SMALL" or "DRAM"
    memory_layout = Column[str](lambda use: use.event.buffer.memory_layout.name)
    size_bytes = Column[int](lambda use: use.event.buffer.size_bytes)  # All banks together, unaligned
    bank_bytes = Column[int](lambda use: use.event.buffer.bank_bytes)  # In the fullest bank: a core of L1
    address = Column[int](lambda use: use.event.address)  # In every bank
    l1_share = Column[float](  # Of the usable L1; 0 in DRAM
        lambda use: use.bank_bytes / use.usable_bytes if use.event.buffer.buffer_type in IN_L1 else 0.0
    )
    core_bytes = Derived[int](lambda use: use.bank_bytes)
    view = Derived[bool](lambda use: False)


AnyBufferUse = CircularBufferUse | BufferUse


class OperationUse(Row, figures="name"):
    """One device operation, its circular buffers, and the buffers at its end."""

    name: str  # As a graph capture shows it
    spec: DeviceSpec
    circular: tuple[CircularBufferAllocated, ...]
    live: tuple[BufferAllocated, ...]

    circular_buffers = Column[tuple[CircularBufferUse, ...]](  # In order of allocation
        lambda op: tuple(CircularBufferUse(event, op.spec.l1.usable_bytes) for event in op.circular)
    )
    buffers = Column[tuple[BufferUse, ...]](  # In L1 and DRAM, in order of allocation
        lambda op: tuple(BufferUse(event, op.spec.l1.usable_bytes) for event in op.live)
    )
    # Circular buffers that are no views, on the fullest core; L1 and L1_SMALL buffers, on a core
    circular_bytes = Column[int](lambda op: fullest_core_bytes(op.local))
    buffer_bytes = Column[int](lambda op: sum(event.buffer.bank_bytes for event in op.in_l1))
    used_share = Column[float](lambda op: op.used_bytes / op.spec.l1.usable_bytes)
    headroom_bytes = Column[int](  # Between the end of the circular buffers and the lowest L1 buffer
        lambda op: (
            min((event.address for event in op.in_l1), default=op.spec.l1.bytes)
            - max((event.address + event.size_bytes for event in op.local), default=op.spec.l1.base_bytes)
        )
    )
    used_bytes = Derived[int](lambda op: op.circular_bytes + op.buffer_bytes)
    local = Derived[list[CircularBufferAllocated]](lambda op: [event for event in op.circular if not event.view])
    in_l1 = Derived[list[BufferAllocated]](lambda op: [event for event in op.live if event.buffer.buffer_type in IN_L1])

    @property
    def held(self) -> list[Occupant]:
        """The contents of L1: circular buffers, then other buffers."""
        circular = (Occupant.of(event, event.address) for event in self.local)
        buffers = ((event, event.buffer) for event in self.in_l1)
        return [
            *circular,
            *(Occupant(event.name, spec.buffer_type.name, event.address, spec.bank_bytes) for event, spec in buffers),
        ]


class L1Use(Row, figures="usable_bytes"):
    """L1 of a core over the whole call, including buffers from before the call."""

    usable_bytes: int  # Usable L1, L1_SMALL included
    usage: UsagePerCore  # Added up as ttnn's extract_resource_usage_per_core does
    tight: OperationUse | None  # The device operation with the least headroom; None if there was none

    peak_circular_bytes = Column[int](lambda use: use.usage.peak_cb)  # Circular buffers
    peak_buffer_bytes = Column[int](lambda use: use.usage.peak_l1)  # L1 and L1_SMALL buffers
    peak_total_bytes = Column[int](lambda use: use.usage.peak_total)  # Both at one moment
    peak_share = Column[float](lambda use: use.peak_total_bytes / use.usable_bytes)
    # At the tightest moment, between the circular buffers and the lowest buffer
    headroom_bytes = Column[int](lambda use: use.tight.headroom_bytes if use.tight else use.usable_bytes)
    headroom_share = Column[float](lambda use: use.headroom_bytes / use.usable_bytes)
    tightest = Column[str](lambda use: use.tight.name if use.tight else "")


class Partition(Row):
    """The partition of a convolution; sizes are rows and channels on a core, or height and width in tiles."""

    layout: ConvPartition
    times: int = 1

    scheme = Column[str](lambda cut: cut.layout.scheme.name)  # HEIGHT_SHARDED, BLOCK_SHARDED ..
    input_cores = Column[int](lambda cut: cut.layout.config.cores.num_cores())
    output_cores = Column[int](lambda cut: cut.layout.out_config.cores.num_cores())
    cores = Column[str](lambda cut: str(cut.layout.out_config.cores))  # Of the output, as ttnn prints them
    input_shard = Column[tuple[int, int]](lambda cut: (cut.layout.shards.in_rows, cut.layout.shards.in_width))
    output_shard = Column[tuple[int, int]](lambda cut: (cut.layout.shards.out_rows, cut.layout.shards.out_width))
    act_block_tiles = Column[tuple[int, int]](
        lambda cut: (cut.layout.blocks.act_h_tiles, cut.layout.blocks.act_w_tiles)
    )
    subblock_tiles = Column[tuple[int, int]](
        lambda cut: (cut.layout.blocks.subblock_h_tiles, cut.layout.blocks.subblock_w_tiles)
    )
    k_blocks = Column[int](lambda cut: cut.layout.blocks.k_blocks)  # Blocks of the inner dimension
    split_reader = Column[bool](lambda cut: cut.layout.split_reader)  # Both processors read activations
    convolutions = Column[int](lambda cut: cut.times)  # Of the call's convolutions (one per slice), how many


class OutputUse(Row, figures="shape padded_shape dtype layout memory_config place height width"):
    """The output tensor."""

    output: TensorSpec
    height: int  # Rows of one image
    width: int  # Columns of one image

    shape = Column[tuple[int, ...]](lambda use: use.output.shape)
    padded_shape = Column[tuple[int, ...]](lambda use: use.output.padded_shape)  # As stored
    dtype = Column[str](lambda use: use.output.data_format.name)
    layout = Column[str](lambda use: use.output.layout.name)  # "TILE" or "ROW_MAJOR"
    memory_config = Column[str](lambda use: str(use.output.memory_config))  # As ttnn prints it
    place = Column[str](lambda use: place_of(use.output.memory_config))  # The memory config in short


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
    mistake: bool = False  # Whether it failed because arguments are wrong, not because it does not fit
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
    """All figures of one call; peaks and headroom include earlier events on the device.

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
    """The memory of a tensor as a short text."""
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
    uses: list[OperationUse] = []
    circular: list[CircularBufferAllocated] = []
    running = ""
    for event, live in living(living_after((), before).values(), (*events, None)):
        if isinstance(event, CircularBufferAllocated):
            circular.append(event)
        elif isinstance(event, CircularBuffersFreed):
            circular = []
        elif isinstance(event, OperationBegin) and event.name.endswith(DEVICE_OPERATION):
            running, circular = event.name, []
        elif running and (event is None or (isinstance(event, OperationEnd) and event.name == running)):
            uses.append(OperationUse(running, spec, tuple(circular), tuple(live.values())))
            running = ""
    return tuple(uses)


def living(
    before: Iterable[BufferAllocated], events: Iterable[Event | None]
) -> Iterator[tuple[Event | None, dict[int, BufferAllocated]]]:
    """Each event with the live buffers after it by number, oldest first; `before` are live at the start."""
    live = {event.number: event for event in before}
    for event in events:
        if isinstance(event, BufferAllocated):
            live[event.number] = event
        elif isinstance(event, BufferFreed):
            live.pop(event.number, None)
        yield event, live


def living_after(before: Iterable[BufferAllocated], events: Iterable[Event]) -> dict[int, BufferAllocated]:
    """The live buffers after some events by number, oldest first."""
    *_, (_, live) = living(before, (None, *events))
    return live


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
