"""The weights that outputs are multiplied by: which rows of the prepared matrix, and how they become operands."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np

from device.numbers.integers import Integers
from ops.frame.axis import FrameAxis, output_phases
from ops.programs.conv2d.blocks import KBlock, weight_rows_of
from ops.programs.conv2d.gather import MetBlock, Strip, strips
from ops.programs.conv2d.windows import Windows, windows_of

MOST_KEPT: Final = 64  # convolutions whose strips are kept
WeightRows: TypeAlias = slice | Integers  # of a prepared matrix; -1 for none


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
    blocks: tuple[KBlock, ...], channels: int, rows: FrameAxis, columns: FrameAxis, corner: tuple[int, int], held: int
) -> tuple[WeightedStrip, ...]:
    """All outputs of a convolution, strip by strip; they hang on its geometry alone and are kept.

    Args:
        corner: Where the first input lies in the image.
        held: Rows of the prepared matrix.
    """
    kernel = rows.taps, columns.taps
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
