"""Compiled loops of the patch programs; loaded where they are worth it (`device.host.compiling`)."""

from typing import Any, Final

import numpy as np

from device.host.compiling import called_with, compiled, readonly

Array = np.ndarray[Any, np.dtype[Any]]
ROWS: Final = 16  # that are read and written in one go
COLUMNS: Final = 8  # a first cache has eight places for lines that lie a power of two apart, as columns mostly do


@called_with(*(f"(float32[:,:,::1], {readonly('float32', 3, lies)}, int64, int64)" for lies in "AF"))
@compiled
def copy_taps(target: Array, source: Array, first: int, last: int) -> None:
    """Copies rows from ``first`` to before ``last``, or the last row, of the matrices of all taps.

    Args:
        target: [taps, rows, columns].
        source: The same, in any order in memory.
        last: The row behind the last.
    """
    taps, rows, columns = source.shape
    for top in range(first, min(last, rows), ROWS):
        for begin in range(0, columns, COLUMNS):
            for tap in range(taps):
                for row in range(top, min(top + ROWS, last, rows)):
                    for column in range(begin, min(begin + COLUMNS, columns)):
                        target[tap, row, column] = source[tap, row, column]


def _add_up_elements(
    rows: Array, in_row: Array, image: Array, weights: Array, sums: Array, lies: tuple[int, int, int, int, int]
) -> None:
    """Adds products of single channels, row by row, tap by tap; each is rounded before it is added.

    Args:
        rows: Outputs, taps and inputs of all axes but the last, [several, 3].
        in_row: What taps of the last axis meet, two at a time: as `MetTogether`, [several, 6].
        image: float32 [inputs, C].
        weights: float32 [taps, C].
        sums: float32 [outputs, C].
        lies: Outputs, taps and inputs of the last axis, and how far outputs and inputs lie apart.
    """
    outputs, taps, inputs, apart, step = lies
    channels = image.shape[1]
    for row in range(len(rows)):
        first, of_row = rows[row, 1] * taps, rows[row, 2] * inputs
        for one in range(len(in_row)):
            into = rows[row, 0] * outputs + in_row[one, 0]
            source, source_2 = of_row + in_row[one, 3], of_row + in_row[one, 5]
            tap = np.uintp(first + in_row[one, 2])  # unsigned: nothing counts from behind
            if in_row[one, 4] < 0:
                for at in range(in_row[one, 1]):
                    output, pixel = np.uintp(into + at * apart), np.uintp(source + at * step)
                    for channel in range(channels):
                        sums[output, channel] += image[pixel, channel] * weights[tap, channel]
                continue
            tap_2 = np.uintp(first + in_row[one, 4])
            for at in range(in_row[one, 1]):
                output, pixel = np.uintp(into + at * apart), np.uintp(source + at * step)
                pixel_2 = np.uintp(source_2 + at * step)
                for channel in range(channels):
                    total = sums[output, channel] + image[pixel, channel] * weights[tap, channel]
                    sums[output, channel] = total + image[pixel_2, channel] * weights[tap_2, channel]


add_up_elements = called_with(
    f"(int64[:,::1], int64[:,::1], {readonly('float32', 2)}, float32[:,::1], float32[:,::1], UniTuple(int64, 5))"
)(compiled(_add_up_elements, fuses=False))


@called_with(
    f"({readonly('int64', 2)}, {readonly('int64', 1)}, float32[::1], UniTuple(int64, 2), float32[:,::1])",
)
@compiled
def add_up_products(places: Array, taps: Array, products: Array, apart: tuple[int, int], total: Array) -> None:
    """Adds products of positions and taps to the sums that they belong to, position by position.

    Args:
        places: Positions in the order of adding, and the sums of their tap 0: int64 [positions, 2].
        taps: How much further those of each tap are, int64 [taps].
        products: float32, flat; a position's are in one piece.
        apart: Elements from a tap to the next in there, and from a channel to the next.
        total: float32 [sums, O].
    """
    channels = total.shape[1]
    for one in range(len(places)):
        first = places[one, 0] * len(taps) * channels
        for tap in range(len(taps)):
            begin, into = first + tap * apart[0], places[one, 1] + taps[tap]
            for channel in range(channels):
                total[into, channel] += products[begin + channel * apart[1]]
