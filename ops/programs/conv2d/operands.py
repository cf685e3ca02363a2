"""What output phases are multiplied by: rows of the prepared matrix; and which of them are windows over the image."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np

from device.host.pieces import DEPTH
from device.host.threads import Shared
from device.matrix_unit.fast import WindowBlock
from device.numbers.formats import Array, Integers, round_up
from ops.programs.conv2d.blocks import KBlock, weight_rows_of
from ops.programs.conv2d.gather import MetBlock, Run, Strip, Tap, strips
from ops.window import PaddedAxis, output_phases

MOST_KEPT: Final = 64  # convolutions whose strips are kept

WeightRows: TypeAlias = slice | Integers  # of a prepared matrix; -1 for none


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """A strip as windows over the image."""

    blocks: tuple[WindowBlock, ...]  # The K blocks that it meets, of its first row
    taps: int  # How many pixels side by side an output meets
    # int64 [phases of the columns, depth of all blocks], the row of the prepared matrix for each product
    rows: Integers


@dataclass(frozen=True, slots=True, eq=False)
class WeightedStrip:
    """A strip and what it is multiplied by."""

    strip: Strip
    # For each of its output phases of the columns, the row of the prepared matrix under each column of the gathered
    # blocks (`rows_in_place`)
    rows: tuple[WeightRows, ...]
    depth: int  # Columns of all blocks together
    met: tuple[MetBlock, ...]  # Those of its K blocks that meet inputs
    as_one: MetBlock | None  # The same as one block, where they are channels of one tap, one after the other; else None
    windows: Windows | None  # The same as windows over the image, if it is that


@lru_cache(MOST_KEPT)
def weighted_strips(
    blocks: tuple[KBlock, ...], channels: int, rows: PaddedAxis, columns: PaddedAxis, corner: tuple[int, int], held: int
) -> tuple[WeightedStrip, ...]:
    """All outputs of a convolution, strip by strip; they hang on its geometry alone and are kept.

    Args:
        corner: Where the first input lies in the image.
        held: Rows of the prepared matrix.
    """
    kernel = rows.kernel, columns.kernel
    return tuple(
        _weighted(blocks, channels, strip, kernel, held)
        for down in output_phases(rows)
        for strip in strips(blocks, down, columns, corner)
    )


def _weighted(
    blocks: Sequence[KBlock], channels: int, strip: Strip, kernel: tuple[int, int], held: int
) -> WeightedStrip:
    """A strip with the rows under the columns of all blocks as each of its output phases meets them."""
    found = [weight_rows_of(blocks, [one.columns for one in met], kernel) for met in strip.met]
    for rows in found:
        rows.flags.writeable = False
    with_taps = tuple(block for block in strip.blocks if block.taps)
    return WeightedStrip(
        strip,
        tuple(rows_in_place(rows, held) for rows in found),
        sum(len(block.columns) for block in strip.blocks),
        with_taps,
        _as_one(with_taps),
        windows_of(strip, found, channels),
    )


def _as_one(blocks: Sequence[MetBlock]) -> MetBlock | None:
    """The block of all their channels, where blocks are channels of the same tap, one after the other."""
    follow = all(
        one.taps == other.taps and one.channels.stop == other.channels.start for one, other in pairwise(blocks)
    )
    if not blocks or not follow or not all(block.is_one_tap for block in blocks):
        return None
    return replace(blocks[0], channels=slice(blocks[0].channels.start, blocks[-1].channels.stop), half_counts=())


def rows_in_place(rows: Integers, end: int) -> WeightRows:
    """Rows as a slice where they follow each other in a matrix of ``end`` rows, else as they are."""
    follow = len(rows) > 0 and rows[0] >= 0 and rows[-1] < end and (np.diff(rows) == 1).all()
    return slice(int(rows[0]), int(rows[-1]) + 1) if follow else rows


def windows_of(strip: Strip, rows: Sequence[Integers], channels: int) -> Windows | None:
    """A strip as windows; None if some outputs meet pixels, or neighbors do, that do not lie side by side.

    Channels behind the input's are zeros, which are left out; an even number stays, to be multiplied in pairs.

    Args:
        rows: For each of its output phases of the columns, the row of the prepared matrix under each column of all K
            blocks.
    """
    met = [block for block in strip.blocks if block.taps]
    taps = len(met[0].taps) if met else 0
    if not taps or strip.across[0].axis.stride != 1 or not all(_is_window(block, taps) for block in met):
        return None
    blocks, columns, end = [], [], 0
    for block in met:
        held = block.channels.stop - block.channels.start
        deep = len(block.columns) > DEPTH
        some = held if deep else min(held, max(2, round_up(channels - block.channels.start, 2)))
        blocks.append(WindowBlock(block.taps[0].row, block.taps[0].column, block.channels.start, some))
        columns.append(end + (held * np.arange(taps)[:, None] + np.arange(some)).ravel())
        end += len(block.columns)
    found = np.ascontiguousarray(np.array(rows)[:, np.concatenate(columns)])
    found.flags.writeable = False
    return Windows(tuple(blocks), taps, found)


def _is_window(block: MetBlock, taps: int) -> bool:
    """Whether the taps of a block meet so many pixels from left to right, and are its first columns.

    They are all of them where there are so many that the sum of their products is split.
    """
    first, channels = block.taps[0], block.channels.stop - block.channels.start
    if len(block.columns) > max(DEPTH, taps * channels):
        return False
    return block.taps == tuple(Tap(first.row, first.column + n, n * channels) for n in range(taps))


@dataclass(frozen=True, slots=True)
class Piece:
    """Outputs that are computed together."""

    run: Run  # Rows of a strip
    strip: WeightedStrip  # The strip, with what it is multiplied by
    channels: slice
    operands: Shared[list[Array]]  # The weights of all K blocks for these channels and for others
    part: int  # Which of the operands is for these channels
    windows: Windows | None  # The run as windows over the image, where a loop computes it from the image
