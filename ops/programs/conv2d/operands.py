"""What output phases are multiplied by: rows of the prepared matrix; and the pixels that they meet."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np

from device.host.threads import Shared
from device.numbers.formats import Array, Integers, to_read
from ops.programs.conv2d.blocks import KBlock, weight_rows_of
from ops.programs.conv2d.gather import MetBlock, Run, Strip, strips
from ops.window import PaddedAxis, output_phases

MOST_KEPT: Final = 64  # convolutions whose strips are kept

WeightRows: TypeAlias = slice | Integers  # of a prepared matrix; -1 for none


@dataclass(frozen=True, slots=True, eq=False)
class WeightedStrip:
    """A strip and the weights it is multiplied by."""

    strip: Strip
    # For each of its output phases of the columns, the row of the prepared matrix under each column of the gathered
    # blocks (`rows_in_place`)
    rows: tuple[WeightRows, ...]
    depth: int  # Columns of all blocks together
    met: tuple[MetBlock, ...]  # Those of its K blocks that meet inputs


@lru_cache(MOST_KEPT)
def met_pixels(strip: WeightedStrip, row: int, pixel: int) -> tuple[Integers, Integers]:
    """Taps and blocks of `MetPixels` in an image with `row` elements in a row and `pixel` elements in a pixel.

    Taps that are neighbors both in the image and in the K block are joined.
    """
    taps, blocks = list[list[int]](), list[tuple[int, ...]]()
    for block in strip.met:
        first, channels = len(taps), block.channels.stop - block.channels.start
        for tap in block.taps:
            source = tap.row * row + tap.column * pixel + block.channels.start
            last = taps[-1] if len(taps) > first else [0, 0, 0]
            if last[2] and (last[0] + last[2], last[1] + last[2]) == (source, tap.target):
                last[2] += channels
            else:
                taps.append([source, tap.target, channels])
        blocks.append((len(block.columns), first, len(taps), channels * len(block.taps) == len(block.columns)))
    return to_read(np.array(taps, np.int64)), to_read(np.array(blocks, np.int64))


@lru_cache(MOST_KEPT)
def weighted_strips(
    blocks: tuple[KBlock, ...], rows: PaddedAxis, columns: PaddedAxis, corner: tuple[int, int], matrix_rows: int
) -> tuple[WeightedStrip, ...]:
    """All outputs of a convolution, strip by strip; they depend on its geometry alone and are cached.

    `corner` is the place of the first input in the image, `matrix_rows` the rows of the prepared weights.
    """
    kernel = rows.kernel, columns.kernel
    return tuple(
        _weighted(blocks, strip, kernel, matrix_rows)
        for down in output_phases(rows)
        for strip in strips(blocks, down, columns, corner)
    )


def _weighted(blocks: Sequence[KBlock], strip: Strip, kernel: tuple[int, int], matrix_rows: int) -> WeightedStrip:
    """A strip with the weight rows under the columns of all blocks, as each of its output phases meets them."""
    phase_rows = [weight_rows_of(blocks, [met_block.columns for met_block in met], kernel) for met in strip.met]
    for rows in phase_rows:
        rows.flags.writeable = False
    return WeightedStrip(
        strip,
        tuple(rows_in_place(rows, matrix_rows) for rows in phase_rows),
        sum(len(block.columns) for block in strip.blocks),
        tuple(block for block in strip.blocks if block.taps),
    )


def rows_in_place(rows: Integers, end: int) -> WeightRows:
    """A slice if the rows follow each other in a matrix of ``end`` rows, else the rows as they are."""
    follow = len(rows) > 0 and rows[0] >= 0 and rows[-1] < end and (np.diff(rows) == 1).all()
    return slice(int(rows[0]), int(rows[-1]) + 1) if follow else rows


@dataclass(frozen=True, slots=True)
class Piece:
    """Outputs that are computed together."""

    run: Run  # Rows of a strip
    strip: WeightedStrip  # The strip, with what it is multiplied by
    channels: slice
    operands: Shared[list[Array]]  # The weights of all K blocks for these channels and for others
    part: int  # Which of the operands is for these channels
