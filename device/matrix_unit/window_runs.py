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
from device.host.products import UNPACKED, multiplies_in_place, multiplies_pairs, sgemm_address
from device.matrix_unit.whole_runs import SUM_SECONDS, Trips, TripWords, first_of, stores, trip_words
from device.numbers.block_floats import to_read
from device.numbers.formats import Array
from device.numbers.integers import Integers, div_up, round_up

SUMS_TOGETHER: Final = 1 << 17  # outputs that are worked on at a time, so that sums and pixels stay in the cache
COLUMNS_TOGETHER: Final = 64
OUTPUTS_OF_PAIRS: Final = 96  # worked on at a time, six by six, so that sums stay in the fastest cache
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
    weights, pixels, outputs = operands.weights, operands.pixels, place.shape[1]
    tiles = _tiles(weights, place.shape[3])
    wide = max(tile.columns for tile in tiles)
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
        np.array(tiles, np.int64),
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
    if in_pairs(pixels, weights.matrix, operands.blocks):
        blocks, pairs = _placed(operands, len(place), outputs)
        rooms = np.empty(pairs, np.int32), np.empty(weights.rows.shape[1] // 2 * wide, np.int32)
        sums = tuple(np.empty(OUTPUTS_OF_PAIRS * wide, np.float32) for _ in range(2))
        loops.run_in_pairs(*image, blocks, *multiplied, rooms, sums, *trips)
    else:
        columns, deepest = weights.width * len(weights.rows), max(block.channels for block in operands.blocks)
        step = min(len(place), max(1, SUMS_TOGETHER // (outputs * columns)))
        lot = UNPACKED // (min(operands.taps * deepest, DEPTH) * wide) if multiplies_in_place() else outputs
        held = _pixels(operands, step, outputs) * deepest, operands.taps * deepest * wide
        made = _even(div_up(outputs, operands.taps), lot, 1) * wide
        room = tuple(np.empty(some, np.float32) for some in (*held, made))
        total = np.empty((step, outputs * columns), np.float32)
        loops.run(sgemm, *image, np.array(operands.blocks, np.int64), *multiplied, room, total, *trips)


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


def in_pairs(pixels: Array, matrix: Array, blocks: Sequence[WindowBlock]) -> bool:
    """Whether numbers are multiplied in pairs: bfloat16 where that is faster, of channels that are two by two.

    Args:
        pixels: The image, its last axis the channels.
        matrix: The weights.
        blocks: The K blocks.
    """
    even = pixels.shape[-1] % 2 == 0 and all(block.channel % 2 == block.channels % 2 == 0 for block in blocks)
    return pixels.itemsize == matrix.itemsize == 2 and even and multiplies_pairs()


def _pixels(operands: WindowOperands, rows: int, outputs: int) -> int:
    """Pixels that so many rows of outputs meet, and those between them."""
    blocks = operands.blocks
    above = max(block.row for block in blocks) - min(block.row for block in blocks)
    across = max(block.column for block in blocks) - min(block.column for block in blocks) + operands.taps
    return ((rows - 1) * operands.down + 1 + above) * (across + outputs - 1)


def _placed(operands: WindowOperands, rows: int, outputs: int) -> tuple[Integers, int]:
    """The K blocks, each with where its pixels are among the pairs of all of them, and how many pairs there are."""
    pixels, begins, end = _pixels(operands, rows, outputs), dict[int, int](), 0
    for block in operands.blocks:
        if block.channel not in begins:
            begins[block.channel] = end
            end += pixels * block.channels // 2
    return np.array([(*block, begins[block.channel]) for block in operands.blocks], np.int64), end
