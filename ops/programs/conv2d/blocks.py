"""How a core's share of a convolution is cut into blocks, and the order of its K blocks (docs/planning.md, Blocks)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from device.errors import DeviceError
from device.memory.memory_config import TILE, TensorMemoryLayout
from device.numbers.formats import Integers, div_up, round_up
from ops.programs.conv2d.parallel_config import HEIGHT, WIDTH, ParallelConfig

# (height, width) of an output sub-block in tiles, in the order in which the real library tries them.
SUBBLOCKS = (
    (2, 4), (4, 2), (1, 8), (8, 1), (1, 7), (7, 1), (2, 3), (3, 2), (1, 6), (6, 1),
    (1, 5), (5, 1), (2, 2), (1, 4), (4, 1), (1, 3), (3, 1), (1, 2), (2, 1), (1, 1),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """Shapes of the input and the output on one core, in elements."""

    in_rows: int  # Rows of an input shard
    in_channels: int  # Padded channels of all input shards together (C_pad)
    in_width: int  # Channels of one input shard
    out_rows: int  # Rows of an output shard
    out_channels: int  # Padded channels of all output shards together (O_pad)
    out_width: int  # Channels of one output shard

    @property
    def out_row_tiles(self) -> int:
        """Height of an output shard in tiles."""
        return div_up(self.out_rows, TILE)

    @property
    def out_col_tiles(self) -> int:
        """Width of an output shard in tiles."""
        return div_up(self.out_width, TILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Block sizes in tiles."""

    act_h_tiles: int  # Height of an activation block, which is also the height of an output block
    act_w_tiles: int  # Width of an activation block (one K block)
    subblock_h_tiles: int  # Height of an output sub-block (what Dst holds)
    subblock_w_tiles: int  # Width of an output sub-block
    k_blocks: int  # K blocks of the whole inner dimension, over all channel cores


def plan_shards(
    config: ParallelConfig,
    out_config: ParallelConfig,
    *,
    in_rows: int,
    in_channels: int,
    out_rows: int,
    out_channels: int,
    alignment: int,
    row_major: bool,
) -> Shards:
    """Shard shapes for an input of [in_rows, in_channels] and an output of [out_rows, out_channels]."""
    in_shard = input_shard(config, rows=in_rows, channels=in_channels, alignment=alignment, row_major=row_major)
    out_padded = round_up(out_channels, out_config.channel_cores * TILE)
    if config.scheme is WIDTH:
        shard_out_rows = out_rows
    else:
        shard_out_rows = round_up(out_rows, out_config.nhw_cores * TILE) // out_config.nhw_cores
    return Shards(
        in_rows=in_shard[0],
        in_channels=in_shard[1] * config.channel_cores,
        in_width=in_shard[1],
        out_rows=shard_out_rows,
        out_channels=out_padded,
        out_width=out_padded // out_config.channel_cores,
    )


def input_shard(
    config: ParallelConfig, *, rows: int, channels: int, alignment: int, row_major: bool
) -> tuple[int, int]:
    """(rows, channels) of one shard of a matrix of rows and channels that is dealt to the cores of an input."""
    width = round_up(channels, config.channel_cores * alignment) // config.channel_cores
    if config.scheme is WIDTH:
        return rows if row_major else round_up(rows, TILE), width
    return round_up(rows, config.nhw_cores * TILE) // config.nhw_cores, width


def subblock(block_h_tiles: int, block_w_tiles: int, dst_tiles: int) -> tuple[int, int]:
    """The output sub-block (height, width) in tiles: the first of `SUBBLOCKS` that fits Dst and divides the block."""
    return next(
        (h, w)
        for h, w in SUBBLOCKS
        if h * w <= dst_tiles and block_h_tiles % h == 0 and block_w_tiles % w == 0 and (w == block_w_tiles or h == 1)
    )


def act_block_height(out_rows: int, override_rows: int) -> int:
    """Height of an activation block in tiles: the whole share of a core, or the override cut to a divisor of it.

    The real library divides the *full* tiles of the share, which for WIDTH (shares are not padded to tiles) can give
    a block that does not divide the share, or is larger than it; `width_refusal` says so in its words.
    """
    if not override_rows:
        return div_up(out_rows, TILE)
    full_tiles, wanted = out_rows // TILE, override_rows // TILE
    return next(h for h in range(wanted, 0, -1) if full_tiles % h == 0)


def k_block_tiles(
    scheme: TensorMemoryLayout,
    shards: Shards,
    kernel: tuple[int, int],
    *,
    act_block_w_div: int,
    channel_cores: int,
    full_inner_dim: bool,
) -> int:
    """Width of one K block in tiles: a kernel row (of one channel shard), or for WIDTH a channel shard's whole window.

    With full_inner_dim a HEIGHT or BLOCK core takes all kernel rows of its shard at once.

    Raises:
        DeviceError: The parts of a WIDTH shard's window are narrower than a tile.
    """
    if scheme is WIDTH:
        elements = shards.in_channels * kernel[0] * kernel[1]
        tiles = elements // (channel_cores * act_block_w_div) // TILE
        if not tiles:
            raise DeviceError(
                "The width of tensor a needs to match the height of tensor b\n"
                f"act_block_w_div: {elements} rows of weights on {channel_cores} cores can not be cut into "
                f"{act_block_w_div} parts of at least one tile; use 1"
            )
        return tiles
    width = shards.in_channels if scheme is HEIGHT else shards.in_width
    kernel_rows = kernel[0] if full_inner_dim else 1
    return div_up(width * kernel[1] * kernel_rows, TILE)


def plan_blocks(
    config: ParallelConfig,
    shards: Shards,
    *,
    kernel: tuple[int, int],
    act_block_h_override: int,
    act_block_w_div: int,
    full_inner_dim: bool,
    dst_tiles: int,
) -> Blocks:
    """Block sizes of the conv2d micro-op.

    Args:
        act_block_h_override: Rows, 0 for the whole share of a core.
        act_block_w_div: Parts of a K block (WIDTH only).
        full_inner_dim: A HEIGHT or BLOCK core takes all kernel rows of its shard as one K block.
    """
    act_h = act_block_height(shards.out_rows, act_block_h_override)
    act_w = k_block_tiles(
        config.scheme,
        shards,
        kernel,
        act_block_w_div=act_block_w_div,
        channel_cores=config.channel_cores,
        full_inner_dim=full_inner_dim,
    )
    sub_h, sub_w = subblock(act_h, shards.out_col_tiles, dst_tiles)
    if config.scheme is WIDTH:
        k_blocks = shards.in_channels * kernel[0] * kernel[1] // TILE // act_w
    else:
        k_blocks = (1 if full_inner_dim else kernel[0]) * config.channel_cores
    return Blocks(
        act_h_tiles=act_h, act_w_tiles=act_w, subblock_h_tiles=sub_h, subblock_w_tiles=sub_w, k_blocks=k_blocks
    )


def weight_rows(scheme: TensorMemoryLayout, blocks: Blocks, shards: Shards, kernel: tuple[int, int]) -> int:
    """Rows of the prepared weight matrix (docs/planning.md, Weights)."""
    if scheme is WIDTH:
        return round_up(shards.in_channels * kernel[0] * kernel[1], blocks.act_w_tiles * TILE)
    return blocks.act_w_tiles * TILE * blocks.k_blocks


def width_refusal(
    config: ParallelConfig,
    shards: Shards,
    blocks: Blocks,
    kernel: tuple[int, int],
    *,
    given_width: int | None = None,
    prepared_rows: int | None = None,
) -> str | None:
    """Why the WIDTH program cannot walk through these blocks, in the real library's words and ours; None if it can.

    Args:
        given_width: Channels of one shard of the input as it lies; None for those of ``shards``.
        prepared_rows: Rows of the prepared weights; None for those that the program reads.
    """
    if config.scheme is not WIDTH:
        return None
    if shards.out_row_tiles < blocks.act_h_tiles:
        return (
            f"Output block height (in # of tiles) ({shards.out_row_tiles}) should be greater than or equal to "
            f"activation block height (in # of tiles) ({blocks.act_h_tiles})\n"
            f"act_block_h_override: a core computes {shards.out_rows} rows; use 0"
        )
    if given_width not in (None, shards.in_width):
        return (
            "The width of tensor a needs to match the height of tensor b\n"
            f"input_tensor: its shards on {config.channel_cores} cores are {given_width} channels wide, and the "
            f"weights are prepared for {shards.in_width}; give it such shards, or set reshard_if_not_optimal"
        )
    window = shards.in_channels * kernel[0] * kernel[1]
    if window % (blocks.act_w_tiles * TILE):
        return (
            "The width of tensor a needs to match the height of tensor b\n"
            f"act_block_w_div: windows of {window} padded channels can not be cut into whole blocks of "
            f"{blocks.act_w_tiles * TILE}, so the weights are longer; use 1"
        )
    if prepared_rows not in (None, wanted := blocks.k_blocks * blocks.act_w_tiles * TILE):
        return (
            "The width of tensor a needs to match the height of tensor b\n"
            f"weight_tensor: it has {prepared_rows} rows, and the call reads {wanted}; prepare it for this call, or "
            "pass it on the host"
        )
    if shards.out_row_tiles % blocks.act_h_tiles:
        return (
            f"act_matrix_height_ntiles {shards.out_row_tiles} should be divisible by "
            f"act_block_h_ntiles {blocks.act_h_tiles}\n"
            f"act_block_h_override: {blocks.act_h_tiles * TILE} rows do not divide the {shards.out_row_tiles} tile "
            "rows that every core of a WIDTH_SHARDED convolution computes; use 0, or 32 times a divisor of them"
        )
    in_blocks = weight_rows(WIDTH, blocks, shards, kernel) // (blocks.act_w_tiles * TILE)
    if in_blocks % config.channel_cores:
        return (
            f"Number of Act Blocks along the Width {in_blocks} should be divisible by "
            f"the number of cores {config.channel_cores}\n"
            f"act_block_w_div: a channel shard of {shards.in_width} channels under a {kernel[0]}x{kernel[1]} kernel "
            "can not be cut into whole tiles that way; use 1"
        )
    return None


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


def weight_rows_of(blocks: Sequence[KBlock], columns: Sequence[Integers], kernel: tuple[int, int]) -> Integers:
    """The row of the prepared matrix that each column of some K blocks meets; -1 for those that meet none."""
    if not blocks:
        return np.empty(0, np.int64)
    facts = [(b.weight_channels, len(b.kernel_rows) * kernel[1], b.weight_row, b.weight_stride) for b in blocks]
    channels, taps, first, stride = np.repeat(np.array(facts), [len(some) for some in columns], axis=0).T
    tap, channel = np.divmod(np.concatenate(columns), channels)
    rows: Integers = np.where(tap < taps, first + tap * stride + channel, -1)
    return rows


def k_block_order(
    config: ParallelConfig, shards: Shards, blocks: Blocks, kernel: tuple[int, int], *, full_inner_dim: bool
) -> tuple[KBlock, ...]:
    """The K blocks, first to last (docs/planning.md, K blocks).

    act_block_w_div cuts the channels of a WIDTH shard into parts, but weights are read in whole tiles: for each tap as
    many tiles as fit a part, and each part begins that many tiles after the one before it. Where parts are no whole
    tiles, taps meet weights that are not theirs and the last columns meet none, so the real library's own results are
    wrong; with parts below a tile no weights are read at all, and there are no K blocks (recorded outputs are the bias
    alone). What is not read counts as zero, which a fresh device holds there.
    """
    kh, cores, height = kernel[0], config.channel_cores, blocks.act_w_tiles * TILE
    width = shards.in_width
    if config.scheme is not WIDTH:
        rows = [range(kh)] if full_inner_dim else [range(i, i + 1) for i in range(kh)]
        return tuple(
            KBlock(
                kernel_rows=r,
                first_channel=s * width,
                channels=width,
                weight_row=(s * len(rows) + n) * height,
                weight_stride=width,
                weight_channels=width,
            )
            for n, r in enumerate(rows)
            for s in range(cores)
        )
    parts = blocks.k_blocks // cores
    part, read = width // parts, width // TILE // parts * TILE
    if not read:
        return ()
    return tuple(
        KBlock(
            kernel_rows=range(kh),
            first_channel=s * width + p * part,
            channels=part,
            weight_row=(s * parts + p) * read,
            weight_stride=shards.in_channels,
            weight_channels=read,
        )
        for p in range(parts)
        for s in range(cores)
    )
