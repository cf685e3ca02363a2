"""Outputs of the fast reading at once where they are products of windows over an image, multiplied where pixels lie.

A K block of one kernel row meets pixels that are side by side, so that what an output is multiplied with begins some
channels behind what its neighbor is: BLAS takes that as a matrix, and no patches are gathered. Products are so small
that OpenBLAS does not copy what it multiplies. The step-by-step way gives the same bits.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from device.host.compiling import worth_loading
from device.host.depths import DEPTH
from device.host.products import UNPACKED, multiplies_in_place, sgemm_address
from device.matrix_unit.whole_runs import SUM_SECONDS, Trips, TripWords, first_of, stores, trip_words
from device.numbers.block_floats import to_read
from device.numbers.formats import Array
from device.numbers.integers import Integers, div_up, round_up

SUMS_TOGETHER: Final = 1 << 17  # outputs that are worked on at a time, so that sums and pixels stay in the cache
COLUMNS_TOGETHER: Final = 64
ALIKE_COLUMNS: Final = 16  # any of which OpenBLAS's kernels sum alike, where the matrix is small and where it is not


class WindowBlock(NamedTuple):
    """What the first output of a run meets of a K block.

    Attributes:
        row: Row of the image, from the run's first one on.
        column: Column of the first pixel.
        channel: First channel.
        channels: How many channels.
    """

    row: int
    column: int
    channel: int
    channels: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowWeights:
    """What windows are multiplied by.

    Attributes:
        matrix: float32 or bfloat16, contiguous rows of weights as they are held.
        rows: int64 [phases, depth of all K blocks], for each product of an output the row; none of them for zeros.
        columns: Which columns, for every phase; a multiple of `ALIKE_COLUMNS`.
    """

    matrix: Array
    rows: Integers
    columns: slice

    @property
    def width(self) -> int:
        """Columns of a phase."""
        return int(self.columns.stop - self.columns.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOperands:
    """What a run of outputs is made of.

    Attributes:
        pixels: float32 or bfloat16 [rows, columns, channels], contiguous.
        first: Row of the image that blocks count from.
        blocks: The K blocks; an output to the right meets pixels one further.
        taps: How many pixels side by side an output meets.
        down: Rows of the image from one row of outputs to the next.
        weights: The weights.
        bias: float32 [columns] as the matrix unit reads it, or None.
        packs_last: Whether the last product is packed, too: a bias follows, or blocks that the outputs do not meet.
    """

    pixels: Array
    first: int
    blocks: Sequence[WindowBlock]
    taps: int
    down: int
    weights: WindowWeights
    bias: Array | None
    packs_last: bool


WindowRun: TypeAlias = Callable[[WindowOperands, Array, Array], None]


def window_runs(trips: Trips, elements: int) -> WindowRun | None:
    """`run` for some trips, if its loops are there or worth loading; else who asks goes step by step.

    Args:
        trips: What happens.
        elements: Elements of all products of a call.
    """
    address = sgemm_address() if stores(trips) else None
    if address is None or not worth_loading("device.matrix_unit.window_loops", elements * SUM_SECONDS):
        return None
    return partial(run, importlib.import_module("device.matrix_unit.window_loops"), address, trip_words(trips))


def run(loops: Any, sgemm: int, words: TripWords, operands: WindowOperands, result: Array, place: Array) -> None:
    """Compute outputs.

    Args:
        loops: The compiled loops.
        sgemm: Where BLAS's product is.
        words: What happens on the way.
        operands: What is multiplied.
        result: The output buffer, contiguous, in storage of what is made.
        place: The part of it that is written: a view [rows, outputs of a row, phases, channels].
    """
    pixels, blocks, weights, bias, taps = (
        operands.pixels, operands.blocks, operands.weights, operands.bias, operands.taps,
    )  # fmt: skip
    (rows, outputs), columns = place.shape[:2], weights.width * len(weights.rows)
    step = min(rows, max(1, SUMS_TOGETHER // (outputs * columns)))
    tiles, deepest = _tiles(weights, place.shape[3]), taps * max(block.channels for block in blocks)
    wide = max(tile.columns for tile in tiles)
    lot = UNPACKED // (min(deepest, DEPTH) * wide) if multiplies_in_place() else outputs
    high = _even(div_up(outputs, taps), lot, 1)
    elements = _room(operands, (step - 1) * operands.down + 1, outputs), deepest * wide, high * wide
    down, apart, between = (stride // place.itemsize for stride in place.strides[:3])
    loops.run(
        sgemm,
        _flat(pixels[operands.first :]),
        (pixels.shape[1] * pixels.shape[2], pixels.shape[2]),
        np.array(blocks, np.int64),
        (taps, outputs, operands.down),
        _flat(weights.matrix),
        weights.rows,
        (weights.matrix.shape[1], words.weight_mask),
        np.array(tiles, np.int64),
        rows,
        tuple(np.empty(some, np.float32) for some in elements),
        np.empty((step, outputs * columns), np.float32),
        np.empty(0, np.float32) if bias is None else bias,
        words.how(packs_last=operands.packs_last),
        words.kinds,
        words.partials_mask,
        *words.sharings,
        result.reshape(-1).view(f"u{result.itemsize}"),
        first_of(place, result),
        (down, apart, between, result.itemsize == 2),
    )


class _Tile(NamedTuple):
    """Columns that are multiplied at a time.

    Attributes:
        phase: Their phase.
        weight: The first of them in the matrix.
        first: The first of them in the phase.
        columns: How many.
        stored: How many of them are stored.
    """

    phase: int
    weight: int
    first: int
    columns: int
    stored: int


def _tiles(weights: WindowWeights, stored: int) -> list[_Tile]:
    """All columns, of which so many of a phase are stored; OpenBLAS's kernels take four vectors of them at a time."""
    step = _even(weights.width, COLUMNS_TOGETHER, ALIKE_COLUMNS)
    return [
        _Tile(phase, weights.columns.start + first, first, min(step, weights.width - first), min(step, stored - first))
        for phase in range(len(weights.rows))
        for first in range(0, weights.width, step)
    ]


def _flat(values: Array) -> Array:
    """The integers that contiguous numbers are made of."""
    return to_read(values.reshape(-1).view(np.int32 if values.itemsize == 4 else np.uint16))


def _even(length: int, most: int, multiple: int) -> int:
    """About even parts of a length, of so much at most if that is no less than what they are a multiple of."""
    return round_up(div_up(length, div_up(length, max(most, multiple))), multiple)


def _room(operands: WindowOperands, rows: int, outputs: int) -> int:
    """Numbers of the pixels that so many rows of the image, and those between blocks, hold of a K block."""
    blocks = operands.blocks
    above = max(block.row for block in blocks) - min(block.row for block in blocks)
    across = max(block.column for block in blocks) - min(block.column for block in blocks) + operands.taps
    return (rows + above) * (across + outputs - 1) * max(block.channels for block in blocks)
