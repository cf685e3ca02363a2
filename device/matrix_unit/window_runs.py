"""Outputs of the fast reading at once where they are products of windows over an image, multiplied where pixels lie.

A K block of one kernel row meets pixels that are side by side, so that what an output is multiplied with begins some
channels behind what its neighbor is: a loop multiplies them there, and no patches are gathered. The step-by-step way
gives the same bits where OpenBLAS sums alike in any product, as its kernels for AVX-512 do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from device.host.compiling import loops_of, worth_loading
from device.host.products import multiplies_numbers, multiplies_pairs
from device.matrix_unit.whole_runs import SUM_SECONDS, Trips, TripWords, first_of, stores, trip_words
from device.numbers.block_floats import Integers, div_up, round_up, to_read
from device.numbers.formats import Array

COLUMNS_TOGETHER: Final = 64
MOST_WORDS: Final = 1 << 18  # of the pixels that rows of outputs meet at a time, so that they stay in the cache
OUTPUTS_TOGETHER: Final = 96  # of these rows, worked on at a time, six by six, so that sums stay in the fastest cache
_MOST_KEPT: Final = 256  # geometries of runs
ALIKE_COLUMNS: Final = 16  # any of which OpenBLAS's kernels sum alike, where the matrix is small and where it is not


class WindowBlock(NamedTuple):
    """What the first output of a run meets of a K block."""

    row: int  # Row of the image, from the run's first one on
    column: int  # Column of the first pixel
    channel: int
    channels: int  # How many channels


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowWeights:
    """What windows are multiplied by."""

    matrix: Array  # float32 or bfloat16, contiguous rows of weights as they are held
    # int64 [phases, depth of all K blocks], for each product of an output the row; none of them for zeros
    rows: Integers
    columns: slice  # Which columns, for every phase; a multiple of `ALIKE_COLUMNS`

    @property
    def width(self) -> int:
        """Columns of a phase."""
        return int(self.columns.stop - self.columns.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOperands:
    """What a run of outputs is made of."""

    pixels: Array  # float32 or bfloat16 [rows, columns, channels], contiguous
    first: int  # Row of the image that blocks count from
    is_cut: bool  # Whether pixels have no bits but those that are multiplied
    blocks: Sequence[WindowBlock]  # The K blocks; an output to the right meets pixels one further
    taps: int  # How many pixels side by side an output meets
    down: int  # Rows of the image from one row of outputs to the next
    weights: WindowWeights
    bias: Array | None  # float32 [columns] as the matrix unit reads it, or None
    packs_last: bool  # Whether the last product is packed, too: a bias follows, or blocks that the outputs do not meet


WindowRun: TypeAlias = Callable[[WindowOperands, Array, Array], None]


def window_runs(trips: Trips, elements: int) -> WindowRun | None:
    """`run` for some trips, if its loops are there or worth loading; else who asks goes step by step.

    Args:
        trips: What happens.
        elements: Elements of all products of a call.
    """
    loads = stores(trips) and worth_loading("device.matrix_unit.window_loops", elements * SUM_SECONDS)
    if not loads or not multiplies_numbers():
        return None
    return partial(run, loops_of("device.matrix_unit.window_loops"), trip_words(trips))


def run(loops: Any, words: TripWords, operands: WindowOperands, result: Array, place: Array) -> None:
    """Compute outputs.

    Args:
        loops: The compiled loops.
        words: What happens on the way.
        operands: What is multiplied.
        result: The output buffer, contiguous, in storage of what is made.
        place: The part of it that is written: a view [rows, outputs of a row, phases, channels].
    """
    weights, pixels, outputs, blocks = operands.weights, operands.pixels, place.shape[1], tuple(operands.blocks)
    tiles, wide = _tiles(len(weights.rows), weights.columns.start, weights.width, place.shape[3])
    pitches = pixels.shape[1] * pixels.shape[2], pixels.shape[2]
    down, apart, between = (stride // place.itemsize for stride in place.strides[:3])
    multiplied = (
        (operands.taps, outputs, operands.down),
        _flat(weights.matrix),
        weights.rows,
        (weights.matrix.shape[1], words.weight_mask),
        tiles,
    )
    trips = (
        np.empty(0, np.float32) if operands.bias is None else operands.bias,
        words.how(packs_last=operands.packs_last),
        words.kinds,
        words.partials_mask,
        *words.sharings,
        result.reshape(-1).view(f"u{result.itemsize}"),
    )
    together = 2 if in_pairs(pixels, weights.matrix, blocks) else 1
    step = min(
        len(place), max(1, MOST_WORDS * together // _row_elements(blocks, operands.taps, operands.down, outputs))
    )
    rooms = (
        np.empty(_numbered(blocks, operands.taps, operands.down, step, outputs, together)[1], np.int32),
        np.empty(weights.rows.shape[1] // together * wide, np.int32),
    )
    sums = np.empty(OUTPUTS_TOGETHER * wide, np.float32), np.empty(OUTPUTS_TOGETHER * wide, np.float32)
    cut, first = np.int32(-1) if operands.is_cut else words.activation_mask, first_of(place, result)
    for begin in range(0, len(place), step):
        rows = min(step, len(place) - begin)
        numbered, _ = _numbered(blocks, operands.taps, operands.down, rows, outputs, together)
        image = _flat(pixels[operands.first + begin * operands.down :]), pitches, cut, numbered
        target = first + begin * down, (down, apart, between, result.itemsize == 2)
        loops.run(*image, *multiplied, rows, together, rooms, sums, *trips, *target)


@lru_cache(_MOST_KEPT)
def _tiles(phases: int, begin: int, width: int, stored: int) -> tuple[Integers, int]:
    """Columns that are multiplied at a time.

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
    """
    held = pixels.itemsize == matrix.itemsize == 2 and pixels.shape[-1] % 2 == 0
    return held and multiplies_pairs() and _are_even(tuple(blocks))


@lru_cache(_MOST_KEPT)
def _are_even(blocks: tuple[WindowBlock, ...]) -> bool:
    """Whether the channels of all blocks are two by two."""
    return all(block.channel % 2 == block.channels % 2 == 0 for block in blocks)


@lru_cache(_MOST_KEPT)
def _row_elements(blocks: tuple[WindowBlock, ...], taps: int, down: int, outputs: int) -> int:
    """Elements of the image that one more row of outputs meets."""
    channels = sum({block.channel: block.channels for block in blocks}.values())
    return down * _across(blocks, taps, outputs) * channels


def _across(blocks: tuple[WindowBlock, ...], taps: int, outputs: int) -> int:
    """Pixels that a row of outputs meets, and those between them."""
    return max(block.column for block in blocks) - min(block.column for block in blocks) + taps + outputs - 1


@lru_cache(_MOST_KEPT)
def _numbered(
    blocks: tuple[WindowBlock, ...], taps: int, down: int, rows: int, outputs: int, together: int
) -> tuple[Integers, int]:
    """The K blocks, each with where its pixels are among the words of all that so many rows of outputs meet.

    Blocks of the same channels share them. The second number says how many words there are.
    """
    above = max(block.row for block in blocks) - min(block.row for block in blocks)
    pixels = ((rows - 1) * down + 1 + above) * _across(blocks, taps, outputs)
    begins, end = dict[int, int](), 0
    for block in blocks:
        if block.channel not in begins:
            begins[block.channel] = end
            end += pixels * block.channels // together
    return np.array([(*block, begins[block.channel]) for block in blocks], np.int64), end
