"""Outputs of the fast reading at once where they are products of windows over an image, multiplied where pixels lie.

A K block of one kernel row meets pixels that are side by side, so that what an output is multiplied with begins some
channels behind what its neighbor is: BLAS takes that as a matrix, and no patches are gathered. Products are so small
that OpenBLAS does not copy what it multiplies. The step-by-step way gives the same bits where OpenBLAS sums alike in
any product, as its kernels for AVX-512 do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from device.host.compiling import loops_of, worth_loading
from device.host.depths import DEPTH
from device.host.products import UNPACKED, multiplies_in_place, multiplies_pairs, sgemm_address
from device.matrix_unit.whole_runs import SUM_SECONDS, Trips, TripWords, first_of, stores, trip_words
from device.numbers.block_floats import to_read
from device.numbers.formats import Array
from device.numbers.integers import Integers, div_up, round_up

SUMS_TOGETHER: Final = 1 << 17  # outputs that are worked on at a time, so that sums and pixels stay in the cache
COLUMNS_TOGETHER: Final = 64
OUTPUTS_OF_PAIRS: Final = 96  # worked on at a time, six by six, so that sums stay in the fastest cache
_MOST_KEPT: Final = 256  # geometries of runs
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
        is_cut: Whether pixels have no bits but those that are multiplied.
        blocks: The K blocks; an output to the right meets pixels one further.
        taps: How many pixels side by side an output meets.
        down: Rows of the image from one row of outputs to the next.
        weights: The weights.
        bias: float32 [columns] as the matrix unit reads it, or None.
        packs_last: Whether the last product is packed, too: a bias follows, or blocks that the outputs do not meet.
    """

    pixels: Array
    first: int
    is_cut: bool
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
    return partial(run, loops_of("device.matrix_unit.window_loops"), address, trip_words(trips))


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
    weights, pixels, outputs, blocks = operands.weights, operands.pixels, place.shape[1], tuple(operands.blocks)
    tiles, wide = _tiles(len(weights.rows), weights.columns.start, weights.width, place.shape[3])
    down, apart, between = (stride // place.itemsize for stride in place.strides[:3])
    image = (
        _flat(pixels[operands.first :]),
        (pixels.shape[1] * pixels.shape[2], pixels.shape[2]),
        np.int32(-1) if operands.is_cut else words.activation_mask,
    )
    multiplied = (
        (operands.taps, outputs, operands.down),
        _flat(weights.matrix),
        weights.rows,
        (weights.matrix.shape[1], words.weight_mask),
        tiles,
        len(place),
    )
    trips = (
        np.empty(0, np.float32) if operands.bias is None else operands.bias,
        words.how(packs_last=operands.packs_last),
        words.kinds,
        words.partials_mask,
        *words.sharings,
        result.reshape(-1).view(f"u{result.itemsize}"),
        first_of(place, result),
        (down, apart, between, result.itemsize == 2),
    )
    if in_pairs(pixels, weights.matrix, blocks):
        numbered, pairs = _numbered(blocks, _pixels(blocks, operands.taps, operands.down, len(place), outputs))
        rooms = np.empty(pairs, np.int32), np.empty(weights.rows.shape[1] // 2 * wide, np.int32)
        sums = np.empty(OUTPUTS_OF_PAIRS * wide, np.float32), np.empty(OUTPUTS_OF_PAIRS * wide, np.float32)
        loops.run_in_pairs(*image, numbered, *multiplied, rooms, sums, *trips)
    else:
        columns, deepest = weights.width * len(weights.rows), max(block.channels for block in blocks)
        step = min(len(place), max(1, SUMS_TOGETHER // (outputs * columns)))
        lot = UNPACKED // (min(operands.taps * deepest, DEPTH) * wide) if multiplies_in_place() else outputs
        met = _pixels(blocks, operands.taps, operands.down, step, outputs)
        made = _even(div_up(outputs, operands.taps), lot, 1) * wide
        room = tuple(np.empty(some, np.float32) for some in (met * deepest, operands.taps * deepest * wide, made))
        total = np.empty((step, outputs * columns), np.float32)
        loops.run(sgemm, *image, np.array(blocks, np.int64), *multiplied, room, total, *trips)


@lru_cache(_MOST_KEPT)
def _tiles(phases: int, begin: int, width: int, stored: int) -> tuple[Integers, int]:
    """Columns that are multiplied at a time; OpenBLAS's kernels take four vectors of them.

    Args:
        phases: How many there are.
        begin: The first column in the matrix.
        width: Columns of a phase.
        stored: How many of them are stored.

    Returns:
        int64 [tiles, 5], of each its phase, the first column in the matrix and in the phase, how many there are and how
        many of them are stored; and the most of them.
    """
    step = _even(width, COLUMNS_TOGETHER, ALIKE_COLUMNS)
    found = [
        (phase, begin + first, first, min(step, width - first), min(step, stored - first))
        for phase in range(phases)
        for first in range(0, width, step)
    ]
    return np.array(found, np.int64), min(step, width)


def _flat(values: Array) -> Array:
    """The integers that contiguous numbers are made of."""
    return to_read(values.reshape(-1).view(np.int32 if values.itemsize == 4 else np.uint16))


def _even(length: int, most: int, multiple: int) -> int:
    """About even parts of a length, of so much at most if that is no less than what they are a multiple of."""
    return round_up(div_up(length, div_up(length, max(most, multiple))), multiple)


def in_pairs(pixels: Array, matrix: Array, blocks: Sequence[WindowBlock]) -> bool:
    """Whether numbers are multiplied in pairs: bfloat16 where that is faster, of channels that are two by two.

    Args:
        pixels: The image, its last axis the channels.
        matrix: The weights.
        blocks: The K blocks.
    """
    held = pixels.itemsize == matrix.itemsize == 2 and pixels.shape[-1] % 2 == 0
    return held and multiplies_pairs() and _are_even(tuple(blocks))


@lru_cache(_MOST_KEPT)
def _are_even(blocks: tuple[WindowBlock, ...]) -> bool:
    """Whether the channels of all blocks are two by two."""
    return all(block.channel % 2 == block.channels % 2 == 0 for block in blocks)


@lru_cache(_MOST_KEPT)
def _pixels(blocks: tuple[WindowBlock, ...], taps: int, down: int, rows: int, outputs: int) -> int:
    """Pixels that so many rows of outputs meet, and those between them."""
    above = max(block.row for block in blocks) - min(block.row for block in blocks)
    across = max(block.column for block in blocks) - min(block.column for block in blocks) + taps
    return ((rows - 1) * down + 1 + above) * (across + outputs - 1)


@lru_cache(_MOST_KEPT)
def _numbered(blocks: tuple[WindowBlock, ...], pixels: int) -> tuple[Integers, int]:
    """The K blocks, each with where so many pixels are among the pairs of all, and how many pairs there are."""
    begins, end = dict[int, int](), 0
    for block in blocks:
        if block.channel not in begins:
            begins[block.channel] = end
            end += pixels * block.channels // 2
    return np.array([(*block, begins[block.channel]) for block in blocks], np.int64), end
