"""The figures of a report, as frozen values; `summary` computes them, writers lay them out.

A `LayerResult` is what reports are written about: a layer, and its figures or the reason why there are none.
"""

from dataclasses import dataclass

from device.time.late import Late
from ttsim.report.cycles.report import CycleReport
from ttsim.report.memory.accuracy import Accuracy
from ttsim.report.memory.l1_map import Ranges
from ttsim.types.layer import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class CircularBufferUse:
    """A circular buffer of one device operation.

    Attributes:
        name: Its role.
        size_bytes: On each of its cores.
        address: On each of its cores.
        cores: Where, as ttnn prints it.
        core_count: How many cores.
        view: It lies on a tensor's shard and takes no L1 of its own.
        l1_share: Of the L1 a program can use, 0 to 1; 0 for a view.
        ranges: Its cores as rectangles: first column, first row, last column, last row.
    """

    name: str
    size_bytes: int
    address: int
    cores: str
    core_count: int
    view: bool
    l1_share: float
    ranges: Ranges = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferUse:
    """A buffer that is there while a device operation runs.

    Attributes:
        name: The tensor it belongs to.
        memory: "L1", "L1_SMALL" or "DRAM".
        memory_layout: How its pages are dealt to banks.
        size_bytes: All banks together, unaligned.
        bank_bytes: In the fullest bank, which for L1 is a core.
        address: In every bank.
        l1_share: Of the L1 a program can use, 0 to 1; 0 in DRAM.
    """

    name: str
    memory: str
    memory_layout: str
    size_bytes: int
    bank_bytes: int
    address: int
    l1_share: float


@dataclass(frozen=True, kw_only=True)
class OperationUse:
    """One device operation.

    Attributes:
        name: As a graph capture shows it.
        circular_buffers: In order of allocation; found out when asked for.
        buffers: What lies in L1 and DRAM when it ends, in order of allocation; likewise.
        circular_bytes: Circular buffers that are no views, on the fullest core.
        buffer_bytes: L1 and L1_SMALL buffers, on a core.
        used_share: Both together, of the L1 a program can use.
        headroom_bytes: Between the end of the circular buffers and the lowest L1 buffer.
    """

    name: str
    circular_buffers: Late[tuple[CircularBufferUse, ...]] = Late()  # noqa: RUF009 (a descriptor, not a default)
    buffers: Late[tuple[BufferUse, ...]] = Late()  # noqa: RUF009
    circular_bytes: int
    buffer_bytes: int
    used_share: float
    headroom_bytes: int

    @property
    def used_bytes(self) -> int:
        """Circular buffers and buffers together, on a core."""
        return self.circular_bytes + self.buffer_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class L1Use:
    """L1 of a core over the whole call, with what lay there before it.

    Attributes:
        usable_bytes: What a program can use, L1_SMALL included.
        peak_circular_bytes: Circular buffers, added up as ttnn's extract_resource_usage_per_core does.
        peak_buffer_bytes: L1 and L1_SMALL buffers, likewise.
        peak_total_bytes: Both at one moment, likewise.
        peak_share: The last of usable_bytes.
        headroom_bytes: At the tightest moment, between the circular buffers and the lowest L1 buffer.
        headroom_share: That of usable_bytes.
        tightest: The device operation with the least headroom; empty if there was none.
    """

    usable_bytes: int
    peak_circular_bytes: int
    peak_buffer_bytes: int
    peak_total_bytes: int
    peak_share: float
    headroom_bytes: int
    headroom_share: float
    tightest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """How a convolution was cut up.

    Attributes:
        scheme: HEIGHT_SHARDED, BLOCK_SHARDED or WIDTH_SHARDED.
        input_cores: Cores that hold input.
        output_cores: Cores that hold output.
        cores: Those of the output, as ttnn prints them.
        input_shard: Rows and channels of the input on one core.
        output_shard: Rows and channels of the output on one core.
        act_block_tiles: Height and width of an activation block.
        subblock_tiles: Height and width of an output sub-block.
        k_blocks: Blocks of the inner dimension.
        split_reader: Both data-movement processors read activations.
        convolutions: How many of the call's convolutions (one a slice) were cut up so.
    """

    scheme: str
    input_cores: int
    output_cores: int
    cores: str
    input_shard: tuple[int, int]
    output_shard: tuple[int, int]
    act_block_tiles: tuple[int, int]
    subblock_tiles: tuple[int, int]
    k_blocks: int
    split_reader: bool
    convolutions: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputUse:
    """The output tensor.

    Attributes:
        shape: Logical.
        padded_shape: As stored.
        dtype: Name of its data format.
        layout: "TILE" or "ROW_MAJOR".
        memory_config: As ttnn prints it.
        place: The same in short.
        height: Rows of one image.
        width: Columns of one image.
    """

    shape: tuple[int, ...]
    padded_shape: tuple[int, ...]
    dtype: str
    layout: str
    memory_config: str
    place: str
    height: int
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A call of conv_transpose2d.

    Attributes:
        device: Name of the device.
        output: What came out.
        partitions: The ways in which the convolutions that ran were cut up, in order.
        l1: L1 over the whole call.
        operations: The device operations in order.
        accuracy: Against float64; None where there are no values.
        cycles: What it took; None where cycles are not estimated.
    """

    device: str
    output: OutputUse
    partitions: tuple[Partition, ...]
    l1: L1Use
    operations: tuple[OperationUse, ...]
    accuracy: Accuracy | None = None
    cycles: CycleReport | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerResult:
    """One layer that was run.

    Attributes:
        layer: What was asked.
        summary: What it gave; None if it failed.
        error: Why it failed; None if it did not.
        reached: Of a failed layer, the device operations it came to, the one that failed last.
        source: The call as Python; empty if its arguments do not exist.
    """

    layer: Layer
    summary: Summary | None = None
    error: str | None = None
    reached: tuple[OperationUse, ...] = ()
    source: str = ""
