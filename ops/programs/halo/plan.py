"""Plan of the halo operation: its output, its resident config tensors, and its circular buffers.

Input shards hold the image, output shards the part of the zero-filled frame that a core's windows read
(`transfers`), always row-major. Source of the sizes: tt-metal's halo program, compared with every recorded halo.
"""

from dataclasses import dataclass, field

import numpy as np

from device.cores import CoreCoord, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16, FLOAT32, UINT16, DataFormat, div_up, round_up
from device.plan import CircularBuffer, DeviceOp
from ops.programs.buffer_shapes import paged_buffer
from ops.programs.halo.config_tensors import WORD_BYTES, CoreOrder, config_words
from ops.programs.halo.transfers import StickRanges, ranges_between, stick_ranges
from ops.window import PaddedInput, dense_bounds

HEIGHT = TensorMemoryLayout.HEIGHT_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED
WIDTH = TensorMemoryLayout.WIDTH_SHARDED

CONFIG_NAMES = ("padding_0", "padding_1", "gather_0", "gather_1")  # in order of allocation
UNTILIZE_BUFFER_BLOCKS = 2  # double buffering


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloArguments:
    """What decides a halo."""

    frame: PaddedInput  # The full frame: image, zeros and windows
    scheme: TensorMemoryLayout  # HEIGHT_SHARDED, BLOCK_SHARDED or WIDTH_SHARDED
    orientation: ShardOrientation
    cores: CoreRangeSet  # Cores that run it and hold input, output and config tensors
    nhw_cores: int  # Cores that split the flattened rows; 1 for WIDTH
    channel_cores: int  # Cores that split the channels; 1 for HEIGHT
    input_rows: int  # Sticks of an input shard
    output_rows: int  # Rows of a shard of the *convolution's* output
    shard_width: int  # Channels of a shard, of input and output
    data_format: DataFormat
    stick_alignment_bytes: int  # Sticks lie this far apart, or a multiple: what the device pads pages in L1 to
    tiled: bool  # The input is in tiles
    config_tensors_in_dram: bool = False  # The config tensors live in DRAM, and are read into local circular buffers
    # Padded rows and columns of the whole input; None: whole shards on all cores
    input_matrix: tuple[int, int] | None = None
    # A frame with inserted zeros whose outputs the cores compute phase by phase, while ``frame`` is its
    # `ops.window.dense_frame`; None if the windows of ``frame`` are what they compute
    outputs_of: PaddedInput | None = None

    @property
    def matrix(self) -> tuple[int, int]:
        """Padded rows and columns of the whole input."""
        return self.input_matrix or (self.nhw_cores * self.input_rows, self.channel_cores * self.shard_width)


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloPlan:
    """A planned halo. Halos of equal arguments are equal, whatever their tensors are called."""

    arguments: HaloArguments  # What decided it
    ranges: StickRanges = field(compare=False)  # The frame sticks of each core that splits the rows
    order: CoreOrder = field(compare=False, repr=False)  # Where those cores lie
    max_sticks: int = field(compare=False)  # Height of an output shard
    output: TensorSpec = field(compare=False)
    # Name and spec of the config tensors, in order of allocation (after the output)
    resident: tuple[tuple[str, TensorSpec], ...] = field(compare=False)
    circular_buffers: tuple[CircularBuffer, ...] = field(compare=False)  # In order of allocation


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloOp(DeviceOp):
    """One halo program: sticks are copied into the frame, tiles are untilized on the way."""

    plan: HaloPlan  # The halo as it was planned; it is compared by its arguments, from which all else follows
    fp32_dest: bool  # Dst is 32 bits wide, which decides what untilizing leaves of a float32
    # Padding is not zero (a maximum pool's), so that every stick of it is copied by itself
    filled_by_stick: bool = False


def halo_format(data_format: DataFormat) -> DataFormat:
    """Format of the output of a halo: floats of other formats become bfloat16."""
    return data_format if data_format in (FLOAT32, UINT16) else BFLOAT16


def plan_halo(halo: HaloArguments, *, input_tensor: str, output_tensor: str) -> HaloPlan:
    """The plan of a halo; its config tensors are called ``<output>.padding_0`` and so on.

    Raises:
        DeviceError: The shards of the output do not fit the cores of the input.
    """
    ranges, order = _ranges(halo), core_order(halo)
    max_sticks = ranges.max_sticks
    output = halo_output(halo, max_sticks)
    counts = config_words(halo.frame, ranges, order, input_rows=halo.input_rows, tiled=halo.tiled)
    specs = {
        count: config_tensor_spec(halo, count) for count in set(counts)
    }  # both processors' counts are mostly equal
    resident = tuple(
        (f"{output_tensor}.{name}", specs[count]) for name, count in zip(CONFIG_NAMES, counts, strict=True)
    )
    return HaloPlan(
        arguments=halo,
        ranges=ranges,
        order=order,
        max_sticks=max_sticks,
        output=output,
        resident=resident,
        circular_buffers=_circular_buffers(halo, max_sticks, resident, input_tensor, output_tensor),
    )


def _ranges(halo: HaloArguments) -> StickRanges:
    """The sticks that every core needs."""
    if halo.outputs_of is None:
        return stick_ranges(halo.frame, output_rows=halo.output_rows, cores=halo.nhw_cores)
    bounds = dense_bounds(halo.outputs_of, output_rows=halo.output_rows, cores=halo.nhw_cores)
    return ranges_between(halo.frame, *bounds)


def core_order(halo: HaloArguments) -> CoreOrder:
    """Where the cores that split the rows lie.

    HEIGHT counts them along the rows of the grid. BLOCK addresses the first column (or row): every column of cores
    repeats the same transfers among themselves. WIDTH has one.
    """
    cores = np.arange(halo.nhw_cores, dtype=np.int64)
    if halo.scheme is BLOCK:
        still = np.zeros_like(cores)
        return CoreOrder(still, cores) if halo.orientation is ShardOrientation.ROW_MAJOR else CoreOrder(cores, still)
    row, column = np.divmod(cores, halo.cores.bounding_box().cols)
    return CoreOrder(column, row)


def walk_refusal(cores: CoreRangeSet, *, row_major: bool = True) -> str | None:
    """Why a sliding window can not address the cores of shards, in the library's words; None if it can.

    The library counts cores row by row from core (0, 0) on, as if they filled the rows of their bounding box.
    """
    columns = cores.bounding_box().end.x + 1
    for number, core in enumerate(cores.cores(row_major)):
        row, column = divmod(number, columns)
        if core != CoreCoord(column, row):
            return (
                f"Sliding-window shard grid core {number} is {core} but the origin-anchored row walk "
                f"addresses it as {column}-{row}. Only an origin-anchored, row-filled grid is supported; any other "
                "grid hangs max_pool2d/avg_pool2d or silently returns wrong conv2d results (#60513)."
            )
    return None


def halo_output(halo: HaloArguments, max_sticks: int) -> TensorSpec:
    """The output tensor: row-major, ``max_sticks`` sticks on every core; it is as wide as the input.

    So cores that hold no channels of the input hold none of it, but cores without rows have sticks.
    """
    shard = ShardSpec(halo.cores, (max_sticks, halo.shard_width), halo.orientation)
    return TensorSpec(
        (1, 1, halo.nhw_cores * max_sticks, round_up(halo.matrix[1], halo.shard_width)),
        halo_format(halo.data_format),
        Layout.ROW_MAJOR,
        MemoryConfig(halo.scheme, BufferType.L1, shard),
    )


def config_tensor_spec(halo: HaloArguments, words: int) -> TensorSpec:
    """A config tensor with a list of ``words`` for every core that splits the rows.

    In L1_SMALL every core holds its list, so that cores which share rows hold copies: the lists are dealt against the
    orientation of a BLOCK tensor. In DRAM there is one copy.
    """
    if halo.config_tensors_in_dram:
        return TensorSpec((halo.nhw_cores, words), UINT16, Layout.ROW_MAJOR)
    rows = halo.nhw_cores * (1 if halo.scheme is HEIGHT else halo.channel_cores)
    against = halo.scheme is BLOCK and halo.orientation is ShardOrientation.ROW_MAJOR
    orientation = ShardOrientation.COL_MAJOR if against else ShardOrientation.ROW_MAJOR
    config = MemoryConfig(HEIGHT, BufferType.L1_SMALL, ShardSpec(halo.cores, (1, words), orientation))
    return TensorSpec((rows, words), UINT16, Layout.ROW_MAJOR, config)


def _circular_buffers(
    halo: HaloArguments,
    max_sticks: int,
    resident: tuple[tuple[str, TensorSpec], ...],
    input_tensor: str,
    output_tensor: str,
) -> tuple[CircularBuffer, ...]:
    """Input, output, a padding stick for each processor, untilized blocks for each, and the config tensors."""
    out_format = halo_format(halo.data_format)
    stick_bytes = round_up(halo.shard_width * (out_format.element_bytes or 0), halo.stick_alignment_bytes)
    width_tiles = div_up(halo.shard_width, TILE)
    if halo.tiled:
        even_rows = div_up(halo.matrix[0], halo.nhw_cores)  # idle cores count, so that it may be less than a shard
        in_page, in_pages = halo.data_format.tile_bytes, width_tiles * div_up(even_rows, TILE)
    else:
        in_page, in_pages = stick_bytes, halo.input_rows

    def buffer(
        name: str, pages: int, page_bytes: int, data_format: DataFormat, view_of: str | None = None
    ) -> CircularBuffer:
        return paged_buffer(name, pages, page_bytes, data_format, halo.cores, view_of)

    buffers = [
        buffer("input", in_pages, in_page, halo.data_format, input_tensor),
        buffer("output", max_sticks, stick_bytes, out_format, output_tensor),
        buffer("padding_stick_0", 1, stick_bytes, out_format),
        buffer("padding_stick_1", 1, stick_bytes, out_format),
    ]
    if halo.tiled:
        pages = UNTILIZE_BUFFER_BLOCKS * width_tiles
        buffers += [buffer(f"untilized_{processor}", pages, out_format.tile_bytes, out_format) for processor in (0, 1)]
    for name, (tensor, spec) in zip(CONFIG_NAMES, resident, strict=True):
        buffers.append(
            buffer(name, 1, spec.shape[-1] * WORD_BYTES, UINT16, None if halo.config_tensors_in_dram else tensor)
        )
    return tuple(buffers)
