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
from device.host.products import UNPACKED, sgemm_address
from device.matrix_unit.whole_runs import SUM_SECONDS, Trips, addressed, how_of, kind_of, mask_of, place_of, stores
from device.numbers.formats import Array
from device.numbers.integers import div_up, round_up
from device.numbers.rounding import sharing

SUMS_TOGETHER: Final = 1 << 15  # outputs that are worked on at a time, so that sums and pixels stay in the cache
_COLUMNS_TOGETHER: Final = 128
ALIKE_COLUMNS: Final = 16  # any of which OpenBLAS's kernels sum alike, where the matrix is small and where it is not


class WindowBlock(NamedTuple):
    """What the first output of a run meets of a K block.

    Attributes:
        row: Row of the image.
        column: Column of the first pixel.
        channel: First channel.
        channels: How many channels.
        taps: How many pixels side by side.
        depth: Rows of the weights: one for each channel of these pixels, and others that are zero.
    """

    row: int
    column: int
    channel: int
    channels: int
    taps: int
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOperands:
    """What a run of outputs is made of.

    Attributes:
        pixels: float32 or bfloat16 [rows, columns, channels], contiguous.
        blocks: The K blocks; an output to the right meets pixels one further.
        down: Rows of the image from one row of outputs to the next.
        weights: float32 [depth of all K blocks, columns], contiguous rows; columns are a multiple of `ALIKE_COLUMNS`.
        bias: float32 [columns] as the matrix unit reads it, or None.
        packs_last: Whether the last product is packed, too: a bias follows, or blocks that the outputs do not meet.
    """

    pixels: Array
    blocks: Sequence[WindowBlock]
    down: int
    weights: Array
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
    return partial(run, importlib.import_module("device.matrix_unit.window_loops"), address, trips)


def run(loops: Any, sgemm: int, trips: Trips, operands: WindowOperands, result: Array, place: Array) -> None:
    """Compute outputs.

    Args:
        loops: The compiled loops.
        sgemm: Where BLAS's product is.
        trips: What happens on the way.
        operands: What is multiplied.
        result: The output buffer, contiguous, in storage of what is made.
        place: The part of it that is written: a view [rows, outputs of a row, phases, channels].
    """
    pixels, blocks, bias = operands.pixels, operands.blocks, operands.bias
    (rows, outputs), columns = place.shape[:2], operands.weights.shape[1]
    step = min(rows, max(1, SUMS_TOGETHER // (outputs * columns)))
    wide = _even(columns, _COLUMNS_TOGETHER, ALIKE_COLUMNS)
    depth = min(max(block.depth for block in blocks), DEPTH)
    high = _even(div_up(outputs, max(block.taps for block in blocks)), UNPACKED // (depth * wide), 1)
    loops.run(
        sgemm,
        pixels.reshape(-1).view(np.int32 if pixels.itemsize == 4 else np.uint16),
        (pixels.shape[1] * pixels.shape[2], pixels.shape[2]),
        np.array(blocks, np.int64),
        addressed(operands.weights),
        rows,
        operands.down,
        (high, wide),
        np.empty(_room(blocks, (step - 1) * operands.down + 1, outputs), np.float32),
        np.empty(high * wide, np.float32),
        np.empty((step, outputs, columns), np.float32),
        np.empty(0, np.float32) if bias is None else bias,
        how_of(trips, packs_last=operands.packs_last),
        tuple(kind_of(fmt, fp32_dest=trips.fp32_dest) for fmt in (trips.partials, trips.made)),
        np.int32(mask_of(trips)),
        sharing(trips.partials.mantissa_bits),
        sharing(trips.made.mantissa_bits),
        result.reshape(-1).view(f"u{result.itemsize}"),
        *place_of(place, result, columns),
    )


def _even(length: int, most: int, multiple: int) -> int:
    """About even parts of a length, of so much at most if that is no less than what they are a multiple of."""
    return round_up(div_up(length, div_up(length, max(most, multiple))), multiple)


def _room(blocks: Sequence[WindowBlock], rows: int, outputs: int) -> int:
    """Numbers of the pixels that so many rows of the image, and those between blocks, hold of a K block."""
    above = max(block.row for block in blocks) - min(block.row for block in blocks)
    across = max(block.column + block.taps for block in blocks) - min(block.column for block in blocks)
    return (rows + above) * (across + outputs - 1) * max(block.channels for block in blocks)
