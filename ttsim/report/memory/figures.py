"""The figures of a report, as frozen values; `summary` computes them, writers lay them out.

A `LayerResult` is what reports are written about: a layer, and its figures or the reason why there are none.
"""

from dataclasses import dataclass

from device.time.stages import Lazy
from ttsim.report.cycles.report import CycleReport
from ttsim.report.memory.accuracy import Accuracy
from ttsim.report.memory.l1_map import Ranges
from ttsim.types.layer import Layer


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
