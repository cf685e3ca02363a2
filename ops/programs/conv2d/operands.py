"""The weights that outputs are multiplied by: which rows of the prepared matrix, and how they become operands."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np

from device.numbers.integers import Integers
from ops.frame.axis import FrameAxis, output_phases
from ops.programs.conv2d.blocks import KBlock, weight_rows_of
from ops.programs.conv2d.gather import MetBlock, Strip, strips

MOST_KEPT: Final = 64  # convolutions whose strips are kept
WeightRows: TypeAlias = slice | Integers  # of a prepared matrix; -1 for none


@dataclass(frozen=True, slots=True, eq=False)
class WeightedStrip:
    """A strip and what it is multiplied by.

    Attributes:
        strip: The strip.
        rows: For each of its output phases of the columns, the row of the prepared matrix under each column of the
            gathered blocks (`rows_in_place`).
        depth: Columns of all blocks together.
    """

    strip: Strip
    rows: tuple[WeightRows, ...]
    depth: int


@lru_cache(MOST_KEPT)
def weighted_strips(
    blocks: tuple[KBlock, ...], rows: FrameAxis, columns: FrameAxis, corner: tuple[int, int], held: int
) -> tuple[WeightedStrip, ...]:
    """All outputs of a convolution, strip by strip; they hang on its geometry alone and are kept.

    Args:
        blocks: The K blocks.
        rows: The axis of rows.
        columns: Of columns.
        corner: Where the first input lies in the image.
        held: Rows of the prepared matrix.
    """
    kernel = rows.taps, columns.taps
    return tuple(
        WeightedStrip(
            strip,
            tuple(_weight_rows(blocks, met, kernel, held) for met in strip.met),
            sum(len(block.columns) for block in strip.blocks),
        )
        for down in output_phases(rows)
        for strip in strips(blocks, down, columns, corner)
    )


def _weight_rows(blocks: Sequence[KBlock], met: Sequence[MetBlock], kernel: tuple[int, int], held: int) -> WeightRows:
    """The rows under the columns of all blocks as one output phase meets them."""
    rows = rows_in_place(weight_rows_of(blocks, [one.columns for one in met], kernel), held)
    if not isinstance(rows, slice):
        rows.flags.writeable = False
    return rows


def rows_in_place(rows: Integers, end: int) -> WeightRows:
    """Rows as a slice where they follow each other in a matrix of ``end`` rows, else as they are."""
    follow = len(rows) > 0 and rows[0] >= 0 and rows[-1] < end and (np.diff(rows) == 1).all()
    return slice(int(rows[0]), int(rows[-1]) + 1) if follow else rows
