"""The K blocks of a convolution in order: which activations meet which rows of the prepared weights."""

from dataclasses import dataclass

import numpy as np

from device.memory.tiles import TILE
from device.numbers.integers import Integers
from ops.programs.conv2d.blocks import Blocks, Shards
from ops.programs.conv2d.partition import BLOCK, HEIGHT, ParallelConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class KBlock:
    """One K block: the columns of the activation matrix that are multiplied between two trips through the packer.

    Columns run over kernel rows, kernel columns and channels, slowest first.

    Attributes:
        kernel_rows: Kernel rows in it.
        first_channel: Its first (padded) channel.
        channels: Channels of each tap.
        weight_row: Row of the prepared weight matrix that belongs to its first column.
        weight_stride: Distance between the weight rows of one tap and of the next.
        weight_channels: Weight rows that are read for each tap, packed tap after tap; as many as channels, but where a
            part of a WIDTH shard is no whole number of tiles.
    """

    kernel_rows: range
    first_channel: int
    channels: int
    weight_row: int
    weight_stride: int
    weight_channels: int

    def weight_rows(self, columns: Integers, taps: int) -> Integers:
        """The row of the prepared matrix that each of `columns` of the block meets; -1 for those that meet none.

        Args:
            columns: Columns of the block.
            taps: Taps of the block.
        """
        tap, channel = np.divmod(columns, self.weight_channels)
        rows: Integers = np.where(tap < taps, self.weight_row + tap * self.weight_stride + channel, -1)
        return rows


def k_block_order(
    config: ParallelConfig,
    shards: Shards,
    blocks: Blocks,
    kernel: tuple[int, int],
    *,
    full_inner_dim: bool,
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
    if config.scheme is HEIGHT:
        return tuple(
            KBlock(
                kernel_rows=range(i, i + 1),
                first_channel=0,
                channels=width,
                weight_row=i * height,
                weight_stride=width,
                weight_channels=width,
            )
            for i in range(kh)
        )
    if config.scheme is BLOCK:
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
