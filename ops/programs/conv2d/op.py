"""The device operation of a conv2d program and its K blocks, as data for the passes over values and cycles."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np

from device.memory.memory_config import TILE
from device.numbers.formats import DataFormat, Integers
from device.plan import DeviceOp
from ops.programs.conv2d.buffers import ConvBuffers
from ops.programs.conv2d.partition import HEIGHT, WIDTH, ConvOptions, ConvPartition, ConvProblem, weight_rows

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
    """The K blocks, first to last (docs/planning.md, K blocks).

    act_block_w_div cuts the channels of a WIDTH shard into parts, but weights are read in whole tiles: for each tap as
    many tiles as fit a part, and each part begins that many tiles after the one before it. Where parts are no whole
    tiles, taps meet weights that are not theirs and the last columns meet none, so the real library's own results are
    wrong; with parts below a tile no weights are read at all, and there are no K blocks (recorded outputs are the bias
    alone). What is not read counts as zero, which a fresh device holds there.
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
    """Why the WIDTH program cannot walk through its blocks, in the real library's words and ours; None if it can.

    `given_width` is the channels of a shard of the input as it lies, `prepared_rows` the rows of the prepared weights;
    None stands for those of the partition.
    """
    if layout.scheme is not WIDTH:
        return None
    blocks, shards, cores = layout.blocks, layout.shards, layout.config.channel_cores
    block_rows, window = blocks.act_w_tiles * TILE, shards.in_channels * kernel[0] * kernel[1]
    if shards.out_row_tiles < blocks.act_h_tiles:
        return (
            f"Output block height (in # of tiles) ({shards.out_row_tiles}) should be greater than or equal to "
            f"activation block height (in # of tiles) ({blocks.act_h_tiles})\n"
            f"act_block_h_override: a core computes {shards.out_rows} rows; use 0"
        )
    if given_width not in (None, shards.in_width):
        return (
            f"{UNMATCHED}\ninput_tensor: its shards on {cores} cores are {given_width} channels wide, and the "
            f"weights are prepared for {shards.in_width}; give it such shards, or set reshard_if_not_optimal"
        )
    if window % block_rows:
        return (
            f"{UNMATCHED}\nact_block_w_div: windows of {window} padded channels can not be cut into whole blocks of "
            f"{block_rows}, so the weights are longer; use 1"
        )
    if prepared_rows not in (None, wanted := blocks.k_blocks * block_rows):
        return (
            f"{UNMATCHED}\nweight_tensor: it has {prepared_rows} rows, and the call reads {wanted}; prepare it for "
            "this call, or pass it on the host"
        )
    if shards.out_row_tiles % blocks.act_h_tiles:
        return (
            f"act_matrix_height_ntiles {shards.out_row_tiles} should be divisible by "
            f"act_block_h_ntiles {blocks.act_h_tiles}\n"
            f"act_block_h_override: {blocks.act_h_tiles * TILE} rows do not divide the {shards.out_row_tiles} tile "
            "rows that every core of a WIDTH_SHARDED convolution computes; use 0, or 32 times a divisor of them"
        )
    in_blocks = weight_rows(layout, kernel) // block_rows
    if in_blocks % cores:
        return (
            f"Number of Act Blocks along the Width {in_blocks} should be divisible by "
            f"the number of cores {cores}\n"
            f"act_block_w_div: a channel shard of {shards.in_width} channels under a {kernel[0]}x{kernel[1]} kernel "
            "can not be cut into whole tiles that way; use 1"
        )
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv2dOp(DeviceOp):
    """One conv2d program."""

    layout: ConvPartition  # Sizes, options, partition, shards and blocks
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

    @property
    def problem(self) -> ConvProblem:
        """Sizes and formats."""
        return self.layout.problem

    @property
    def options(self) -> ConvOptions:
        """The caller's choices."""
        return self.layout.options

    def with_problem(self, **changes: Any) -> "Conv2dOp":
        """The same program for other sizes or formats."""
        return replace(self, layout=replace(self.layout, problem=replace(self.problem, **changes)))

    @property
    def out_blocks(self) -> int:
        """Output blocks of a core, one after the other."""
        return self.layout.shards.out_row_tiles // self.layout.blocks.act_h_tiles

    @property
    def weight_readers(self) -> int:
        """Cores that read weights from DRAM: HEIGHT one for all, BLOCK one for each slice of channels, WIDTH all."""
        return 1 if self.layout.scheme is HEIGHT else self.layout.out_config.channel_cores

    @property
    def weight_passes(self) -> int:
        """How often a weight reader reads its part: once where all blocks stay in L1, else for every output block."""
        return 1 if self.layout.scheme is HEIGHT else self.out_blocks
