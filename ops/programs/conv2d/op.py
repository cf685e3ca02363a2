"""The conv2d program as data for the passes: its operation, K blocks, and circular buffers with the estimate of L1."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from device.errors import DeviceError
from device.memory.memory_config import TILE, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, FLOAT32, UINT16, DataFormat, Integers, div_up, round_up
from device.plan import CircularBuffer, Decision, DeviceOp
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.partition import (
    BLOCK,
    HEIGHT,
    WIDTH,
    ConvOptions,
    ConvPartition,
    ConvProblem,
    ParallelConfig,
    choose_cores,
    partition_conv,
    require_rates,
    scheme_alignment,
    weight_rows,
)
from ops.programs.halo.transfers import most_sticks
from ops.window import PaddedInput

OUTPUT_BUFFER: Final = "out"  # the circular buffer that is a view of the output
L1_ARRAY_BYTES: Final = 64  # scratch for semaphores and addresses; same in every recorded run
BYTES_PER_INDEX: Final = 2  # the estimate takes one uint16 for each output row
SCHEME_DECISION: Final = "shard_layout"  # under this name plans say which scheme was chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvBuffers:
    """The parameters of the circular buffers of a conv2d program; `of` sets those that estimates count differently."""

    layout: ConvPartition
    kernel: tuple[int, int]  # (kh, kw)
    multicast: bool  # Activations are sent between the cores of a row
    accumulation_blocks: int  # K blocks as the real library counts them to decide on L1 accumulation
    tap_channels: int  # Rows of weights of a tap; read where activations are reused
    reader_indices_bytes: int = 0  # Bytes of the reader indices of one core
    halo_bytes: int = 0  # Bytes of the halo output on one core

    @classmethod
    def of(cls, layout: ConvPartition, *, reader_indices_bytes: int = 0, halo_bytes: int = 0) -> "ConvBuffers":
        """The buffers' sizes for the program of a convolution."""
        kernel = layout.problem.kernel
        return cls(
            layout=layout,
            kernel=kernel,
            multicast=layout.multicasts_activations,
            accumulation_blocks=_exchanged_blocks(layout),
            tap_channels=weight_rows(layout, kernel) // prod(kernel) if layout.options.activation_reuse else 0,
            reader_indices_bytes=reader_indices_bytes,
            halo_bytes=halo_bytes,
        )

    @property
    def l1_accumulation(self) -> bool:
        """Whether packer_l1_acc has an effect: there must be something to accumulate that is not reloaded anyway."""
        blocks, layout = self.accumulation_blocks, self.layout
        return layout.options.packer_l1_acc and ((layout.problem.bias and blocks > 1) or blocks > 2)

    @property
    def partials_format(self) -> DataFormat:
        """Format of the partial sums between K blocks."""
        if self.l1_accumulation:
            return FLOAT32 if self.layout.options.fp32_dest else BFLOAT16
        return self.layout.problem.out_format


def _exchanged_blocks(layout: ConvPartition) -> int:
    """K blocks of a core, in BLOCK programs times the cores of the output channels."""
    return layout.blocks.k_blocks * (layout.out_config.channel_cores if layout.scheme is BLOCK else 1)


def buffer_requests(conv: ConvBuffers) -> list[CircularBuffer]:
    """The circular buffers of a conv2d program, in order of allocation (docs/reference/planning.md, Circular buffers).

    Views of a tensor's shard name the tensor: "output", "halo" or "reader_indices" (`placed_buffers`).
    """
    cores, sizes = conv.layout.program_cores, _buffer_sizes(conv)
    output_bytes = next(pages * page_bytes for name, pages, page_bytes, _, _ in sizes if name == OUTPUT_BUFFER)
    requests = []
    for name, pages, page_bytes, data_format, view_of in sizes:
        size_bytes = pages * page_bytes
        offset_bytes = output_bytes - size_bytes if view_of == "output" else 0  # such a view ends where the output does
        if size_bytes:
            requests.append(
                CircularBuffer(name, size_bytes, page_bytes, data_format, cores, view_of, offset_bytes=offset_bytes)
            )
    return requests


def _buffer_sizes(conv: ConvBuffers) -> tuple[tuple[str, int, int, DataFormat, str | None], ...]:
    """Name, pages, bytes per page, format and tensor of all buffers, in order; buffers without pages do not exist.

    Kept simple, because estimates sum sizes many times for each program.
    """
    layout, problem, options = conv.layout, conv.layout.problem, conv.layout.options
    scheme, blocks, shards = layout.scheme, layout.blocks, layout.shards
    act_format, out_format, weight_format = problem.act_format, problem.out_format, problem.weight_format
    act_h, act_w, out_w = blocks.act_h_tiles, blocks.act_w_tiles, shards.out_col_tiles
    weight_h, weight_blocks = act_w, 2 if options.weights_double_buffer else 1
    by_taps = problem.depthwise_row and blocks.k_blocks > 1
    if options.reuses_activations(scheme):
        weight_blocks = 1
    elif scheme is HEIGHT and shards.out_row_tiles // act_h > 1:
        weight_blocks = layout.blocks.k_blocks + 1 if by_taps else conv.kernel[0]

    # Partial sums share the end of the output if they have its format.
    partials_h, partials_format = shards.out_row_tiles if layout.whole_partials else act_h, conv.partials_format
    partials_view = "output" if not options.untilize_out and partials_format == out_format else None
    if problem.depthwise_row and scheme is not WIDTH:
        partials_h, weight_h = 0, depthwise_weight_tiles(layout)

    first_tiles, second_tiles = _gathered(conv)
    act_tiles, act_tiles_format, row_major_tiles = first_tiles, act_format, 0
    if scheme is not HEIGHT:
        act_tiles, act_tiles_format = first_tiles + second_tiles if conv.multicast else 0, out_format
        row_major_tiles = 2 * act_w if scheme is WIDTH else first_tiles
        if scheme is BLOCK and act_format == out_format and conv.multicast:
            row_major_tiles = second_tiles = 0  # activations that need no conversion are gathered where they are sent

    indices_view = None if options.config_tensors_in_dram else "reader_indices"
    act, out, weight = act_format.tile_bytes, out_format.tile_bytes, weight_format.tile_bytes
    return (
        ("weights", out_w * weight_h * weight_blocks, weight, weight_format, None),
        ("partials", partials_h * out_w, partials_format.tile_bytes, partials_format, partials_view),
        ("act", act_tiles, act_tiles_format.tile_bytes, act_tiles_format, None),
        ("act_second_reader", second_tiles, act, act_format, None),
        ("act_tilized", act_h * act_w, out, out_format, None),
        ("bias", out_w if problem.bias else 0, weight, weight_format, None),
        ("act_row_major", row_major_tiles, act, act_format, None),
        (OUTPUT_BUFFER, shards.out_row_tiles * out_w, out, out_format, "output"),
        ("reader_indices", 1, conv.reader_indices_bytes, UINT16, indices_view),
        ("l1_array", 1, L1_ARRAY_BYTES, UINT16, None),
        ("act_sharded", 1, conv.halo_bytes, act_format, "halo"),
    )


def depthwise_weight_tiles(layout: ConvPartition) -> int:
    """Tile rows of depthwise weights in L1: those of all taps that are read at once."""
    taps = layout.blocks.act_w_tiles // div_up(layout.shards.in_width, TILE) if layout.scheme is HEIGHT else 1
    return layout.blocks.act_h_tiles * taps


def _gathered(conv: ConvBuffers) -> tuple[int, int]:
    """Tiles that the first reader gathers, and tiles that the second reader gathers."""
    layout, width = conv.layout, conv.layout.blocks.act_w_tiles
    reuses = layout.options.activation_reuse and layout.split_reader
    first, second = (reuse_tiles(conv, height) if reuses else height * width for height in layout.reader_tile_rows)
    double = 2 if layout.options.act_double_buffer else 1
    return double * first, double * second


def reuse_tiles(conv: ConvBuffers, act_h_tiles: int) -> int:
    """Tiles of a reader that keeps a row of the image and the new part of further rows."""
    data_format, columns = conv.layout.problem.act_format, conv.layout.problem.frame.columns.outputs
    row_tiles = div_up(columns, TILE)
    windows = 1 + -columns % TILE * conv.kernel[0]
    added = conv.tap_channels * conv.kernel[1] * windows * (data_format.element_bytes or 0)
    kept = row_tiles * conv.layout.blocks.act_w_tiles
    return kept + div_up(div_up(act_h_tiles, row_tiles) * added, data_format.tile_bytes)


def reuse_refusal(config: ParallelConfig, frame: PaddedInput, *, split_reader: bool) -> str | None:
    """Why the program can not reuse activations, with the real library's text and ours; None if it can, or is WIDTH."""
    axes, way_out = (frame.rows, frame.columns), "conv_config.enable_activation_reuse: leave it out"
    if config.scheme is BLOCK:
        return f"Activation data reuse is not supported for block sharded\n{way_out}, or use HEIGHT_SHARDED"
    if config.scheme is not HEIGHT:
        return None
    for name in ("dilation", "stride"):
        if any(getattr(axis, name) != 1 for axis in axes):
            return f"Activation data reuse is not supported for {name} > 1\n{way_out}"
    if not split_reader:
        return f"Activation data reuse requires split reader to be on\n{way_out}, or leave force_split_reader out"
    return None


def placed_buffers(requests: Iterable[CircularBuffer], **tensors: str) -> tuple[CircularBuffer, ...]:
    """The circular buffers of a program on the tensors called ``output``, ``halo`` and ``reader_indices``."""
    return tuple(
        [
            request if request.view_of is None else request._replace(view_of=tensors[request.view_of])
            for request in requests
        ]
    )


def local_bytes(buffers: Iterable[CircularBuffer]) -> int:
    """Bytes of the buffers that take L1 of their own."""
    return sum([request.size_bytes for request in buffers if request.view_of is None])


class L1Estimate(NamedTuple):
    """Bytes on each core that a convolution takes, as the real library estimates them."""

    layout: ConvPartition  # The layout that was estimated
    halo_bytes: int
    output_bytes: int
    buffers_bytes: int  # Circular buffers that take L1 of their own

    @property
    def total_bytes(self) -> int:
        """The bytes that the choice of a scheme compares."""
        return self.buffers_bytes + self.output_bytes + self.halo_bytes

    @property
    def cores(self) -> int:
        """Cores of the larger side."""
        return max(self.layout.config.cores.num_cores(), self.layout.out_config.cores.num_cores())


def estimate_l1(
    problem: ConvProblem, options: ConvOptions, spec: DeviceSpec, scheme: TensorMemoryLayout, *, matmul: bool
) -> L1Estimate:
    """Estimate one scheme, with the library's choice of cores; `partition_conv` may refuse the blocks."""
    alignment = scheme_alignment(problem, scheme, matmul=matmul)
    free = options if options.core_grid is None else replace(options, core_grid=None)
    config = choose_cores(problem, free, spec, scheme, alignment=alignment, matmul=matmul)
    layout = partition_conv(problem, options, spec, config, alignment=alignment, matmul=matmul)
    require_rates(layout, spec.reader)
    return estimate_layout(layout, alignment, estimated_halo_bytes(problem, config.nhw_cores, layout.shards.in_width))


def estimated_halo_bytes(problem: ConvProblem, nhw_cores: int, shard_width: int) -> int:
    """Bytes of the halo output on one core."""
    rows = round_up(problem.frame.outputs, nhw_cores * TILE) // nhw_cores
    sticks = most_sticks(problem.frame, output_rows=rows, cores=nhw_cores)
    return sticks * shard_width * (problem.act_format.element_bytes or 0)


def estimate_layout(layout: ConvPartition, alignment: int | None, halo_bytes: int) -> L1Estimate:
    """Estimate a partition and its halo: all but HEIGHT multicast, every output row has a reader index.

    `alignment` is the alignment of channels before the weights are prepared; None if the estimate knows the prepared
    weights. Raises DeviceError for an activation block higher than a core's share of the output, and for readers that
    would reuse activations of a block float.
    """
    problem, options, shards, blocks = layout.problem, layout.options, layout.shards, layout.blocks
    if blocks.act_h_tiles > shards.out_row_tiles:
        raise DeviceError(
            f"Conv2d output block size {blocks.act_h_tiles * shards.out_col_tiles} exceeds the per-core output size "
            f"{shards.out_row_tiles * shards.out_col_tiles}\n"
            f"act_block_h_override={options.act_block_h_override} is more than a core's {shards.out_rows} output rows: "
            "leave it 0 or set shard_layout to a scheme with more rows for each core"
        )
    if options.activation_reuse and layout.split_reader and problem.in_format.is_block:
        raise DeviceError(
            "datum for bfp2, bfp4, bfp8 is invalid\n"
            f"conv_config.enable_activation_reuse: the buffers of an input in {problem.in_format} can not be estimated "
            "with it; leave it out, or use bfloat16"
        )
    channels, counted_blocks = shards.in_channels, _exchanged_blocks(layout)
    if alignment is not None:
        channels = round_up(problem.in_channels, alignment)
        columns = div_up(problem.out_channels, TILE) // shards.out_col_tiles if layout.scheme is BLOCK else 1
        counted_blocks = channels * prod(problem.kernel) // TILE // blocks.act_w_tiles * columns
    conv = ConvBuffers(
        layout=layout,
        kernel=problem.kernel,
        multicast=layout.scheme is not HEIGHT,
        accumulation_blocks=counted_blocks,
        tap_channels=channels,
        reader_indices_bytes=shards.out_row_tiles * TILE * BYTES_PER_INDEX,
    )
    output_bytes = own_bytes = 0
    for name, pages, page_bytes, _, view_of in _buffer_sizes(conv):
        output_bytes += pages * page_bytes if name == OUTPUT_BUFFER else 0
        own_bytes += pages * page_bytes if view_of is None else 0
    return L1Estimate(layout, halo_bytes, output_bytes, own_bytes)


CHOICES: Final = 64  # that are kept: the search for slices makes the one that the path through L1 then asks for


class SchemeChoice(NamedTuple):
    """A shard scheme that the library picked."""

    layout: ConvPartition  # The layout that was estimated
    decision: Decision  # The reason

    @property
    def scheme(self) -> TensorMemoryLayout:
        """The scheme."""
        return self.layout.scheme


class _Itself(NamedTuple):
    """A device that is equal to itself alone: comparing all figures takes as long as a choice."""

    spec: DeviceSpec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.spec is self.spec

    def __hash__(self) -> int:
        return id(self.spec)


def choose_scheme(problem: ConvProblem, options: ConvOptions, spec: DeviceSpec, *, matmul: bool) -> SchemeChoice:
    """The shard scheme the real library picks by default: least L1, if BLOCK has a grid row and WIDTH is no matmul."""
    return _choice(problem, options, _Itself(spec), matmul)


@lru_cache(CHOICES)
def _choice(problem: ConvProblem, options: ConvOptions, device: _Itself, matmul: bool) -> SchemeChoice:
    spec = device.spec
    if problem.depthwise_row:
        layout = estimate_l1(problem, options, spec, HEIGHT, matmul=matmul).layout
        text = "shard_layout is the library's choice, HEIGHT_SHARDED: a depthwise convolution of one row has no other"
        return SchemeChoice(layout, Decision(name=SCHEME_DECISION, value=HEIGHT.name, text=text))
    best, block, width = estimates = [
        estimate_l1(problem, options, spec, scheme, matmul=matmul) for scheme in (HEIGHT, BLOCK, WIDTH)
    ]
    if block.total_bytes < best.total_bytes and block.cores >= spec.grid.cols:
        best = block
    if width.total_bytes < best.total_bytes and not matmul:
        best = width
    taken, name = {estimate.layout.scheme.name: estimate for estimate in estimates}, best.layout.scheme.name
    text = ", ".join(
        f"{scheme} {estimate.total_bytes:,} B on {'one core' if estimate.cores == 1 else f'each of {estimate.cores}'}"
        for scheme, estimate in taken.items()
    )
    decision = Decision(
        name=SCHEME_DECISION,
        value=name,
        text=f"shard_layout is the library's choice, {name}: of the schemes that may run it has the least L1 by the "
        f"library's estimate ({text}), whatever it takes in time",
        limits=tuple((f"{scheme}_bytes", estimate.total_bytes) for scheme, estimate in taken.items()),
    )
    return SchemeChoice(best.layout, decision)


UNMATCHED: Final = "The width of tensor a needs to match the height of tensor b"


class KBlock(NamedTuple):
    """One K block: the columns of the activation matrix that are multiplied between two trips through the packer.

    Columns run over kernel rows, kernel columns and channels, slowest first.
    """

    kernel_rows: range
    first_channel: int  # Its first (padded) channel
    channels: int  # Channels of each tap
    weight_row: int  # Row of the prepared weight matrix that belongs to its first column
    weight_stride: int  # Distance between the weight rows of one tap and of the next
    # Weight rows that are read for each tap, packed tap after tap; as many as channels, but where a part of a WIDTH
    # shard is no whole number of tiles
    weight_channels: int


def k_block_order(layout: ConvPartition, kernel: tuple[int, int]) -> tuple[KBlock, ...]:
    """The K blocks, first to last (docs/reference/planning.md, K blocks).

    act_block_w_div splits the channels of a WIDTH shard into parts, but weights are read in whole tiles: for each tap
    the whole tiles that fit a part, and each part begins that many tiles after the previous part. If parts are not
    whole tiles, taps are multiplied by wrong weights and the last columns by none, so the real library's results are
    wrong; with parts narrower than a tile no weights are read, and there are no K blocks (recorded outputs are the
    bias). Unread weights count as zero, as on a fresh device.
    """
    kh, cores, width = kernel[0], layout.config.channel_cores, layout.shards.in_width
    if layout.scheme is WIDTH:
        parts = layout.blocks.k_blocks // cores
        channels, read, stride = width // parts, width // TILE // parts * TILE, layout.shards.in_channels
        pieces, distance = [(range(kh), part * channels) for part in range(parts)], read
    else:
        channels = read = stride = width
        rows = [range(kh)] if layout.joins_kernel_rows else [range(i, i + 1) for i in range(kh)]
        pieces, distance = [(kernel_rows, 0) for kernel_rows in rows], layout.blocks.act_w_tiles * TILE
    if not read:
        return ()
    return tuple(
        KBlock(kernel_rows, core * width + first, channels, (core * len(pieces) + number) * distance, stride, read)
        for number, (kernel_rows, first) in enumerate(pieces)
        for core in range(cores)
    )


def weight_rows_of(blocks: Sequence[KBlock], columns: Sequence[Integers], kernel: tuple[int, int]) -> Integers:
    """The row of the prepared matrix that each column of some K blocks meets; -1 for columns that meet none."""
    rows = [np.empty(0, np.int64)]
    for block, block_columns in zip(blocks, columns, strict=True):
        tap, channel = np.divmod(block_columns, block.weight_channels)
        row = block.weight_row + tap * block.weight_stride + channel
        rows.append(np.where(tap < len(block.kernel_rows) * kernel[1], row, -1))
    return np.concatenate(rows)


def width_refusal(
    layout: ConvPartition,
    kernel: tuple[int, int],
    *,
    given_width: int | None = None,
    prepared_rows: int | None = None,
) -> str | None:
    """Why the WIDTH program cannot walk through its blocks, with the real library's text and ours; None if it can.

    `given_width` is the shard width of the input in channels, `prepared_rows` the rows of the prepared weights; None
    means the values of the partition.
    """
    if layout.scheme is not WIDTH:
        return None
    blocks, shards, cores = layout.blocks, layout.shards, layout.config.channel_cores
    block_rows, window = blocks.act_w_tiles * TILE, shards.in_channels * prod(kernel)
    wanted_rows, in_blocks = blocks.k_blocks * block_rows, weight_rows(layout, kernel) // block_rows
    rows, height = shards.out_row_tiles, blocks.act_h_tiles
    refusals = (
        (
            rows < height,
            f"Output block height (in # of tiles) ({rows}) should be greater than or equal to activation block height "
            f"(in # of tiles) ({height})\nact_block_h_override: a core computes {shards.out_rows} rows; use 0",
        ),
        (
            given_width not in (None, shards.in_width),
            f"{UNMATCHED}\ninput_tensor: its shards on {cores} cores are {given_width} channels wide, and the "
            f"weights are prepared for {shards.in_width}; give it such shards, or set reshard_if_not_optimal",
        ),
        (
            window % block_rows,
            f"{UNMATCHED}\nact_block_w_div: windows of {window} padded channels can not be cut into whole blocks of "
            f"{block_rows}, so the weights are longer; use 1",
        ),
        (
            prepared_rows not in (None, wanted_rows),
            f"{UNMATCHED}\nweight_tensor: it has {prepared_rows} rows, and the call reads {wanted_rows}; prepare it "
            "for this call, or pass it on the host",
        ),
        (
            rows % height,
            f"act_matrix_height_ntiles {rows} should be divisible by act_block_h_ntiles {height}\n"
            f"act_block_h_override: {height * TILE} rows do not divide the {rows} tile rows that every core of a "
            "WIDTH_SHARDED convolution computes; use 0, or 32 times a divisor of them",
        ),
        (
            in_blocks % cores,
            f"Number of Act Blocks along the Width {in_blocks} should be divisible by the number of cores {cores}\n"
            f"act_block_w_div: a channel shard of {shards.in_width} channels under a {kernel[0]}x{kernel[1]} kernel "
            "can not be cut into whole tiles that way; use 1",
        ),
    )
    return next((text for refused, text in refusals if refused), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvOp(DeviceOp):
    """A program that computes a convolution."""

    layout: ConvPartition  # Sizes, options, partition, shards and blocks

    @property
    def problem(self) -> ConvProblem:
        """Sizes and formats."""
        return self.layout.problem

    @property
    def options(self) -> ConvOptions:
        """The caller's choices."""
        return self.layout.options


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2dOp(ConvOp):
    """One conv2d program."""

    # The K blocks, first to last; they follow from the layout, so that a hash need not look at them
    k_blocks: tuple[KBlock, ...] = field(hash=False)
    fidelity_phases: int  # Fidelity phases, 1 (LoFi) to 4 (HiFi4)
    partials_format: DataFormat  # What partial sums are packed to between K blocks
    l1_accumulation: bool  # Partial sums are added in L1
    # Fused activation: its name in lower case and its parameters; None without
    activation: tuple[str, tuple[float, ...]] | None = None

    @classmethod
    def of(
        cls,
        layout: ConvPartition,
        *,
        fidelity_phases: int,
        activation: tuple[str, tuple[float, ...]] | None = None,
        buffers: ConvBuffers | None = None,
        k_blocks: tuple[KBlock, ...] | None = None,
    ) -> "Conv2dOp":
        """The program of a convolution; without buffers or K blocks it has the usual ones."""
        buffers = buffers or ConvBuffers.of(layout)
        return cls(
            layout=layout,
            k_blocks=k_block_order(layout, layout.problem.kernel) if k_blocks is None else k_blocks,
            fidelity_phases=fidelity_phases,
            partials_format=buffers.partials_format,
            l1_accumulation=buffers.l1_accumulation,
            activation=activation,
        )

    def with_problem(self, **changes: Any) -> "Conv2dOp":
        """The same program for other sizes or formats."""
        return replace(self, layout=replace(self.layout, problem=replace(self.problem, **changes)))

    @property
    def out_blocks(self) -> int:
        """Number of output blocks of a core."""
        return self.layout.shards.out_row_tiles // self.layout.blocks.act_h_tiles

    @property
    def weight_readers(self) -> int:
        """Number of cores that read weights from DRAM: HEIGHT one, BLOCK one per slice of channels, WIDTH all."""
        return 1 if self.layout.scheme is HEIGHT else self.layout.out_config.channel_cores

    @property
    def weight_passes(self) -> int:
        """How often a weight reader reads its part: once where all blocks stay in L1, else for every output block."""
        return 1 if self.layout.scheme is HEIGHT else self.out_blocks
