"""Compiled loops of the patch programs; loaded where they are worth it (`device.host.compiling`)."""

from typing import Any

import numpy as np

from device.host.compiling import called_with, compiled, readonly

Array = np.ndarray[Any, np.dtype[Any]]


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
        for pair in range(len(in_row)):
            into = rows[row, 0] * outputs + in_row[pair, 0]
            source, source_2 = of_row + in_row[pair, 3], of_row + in_row[pair, 5]
            tap = np.uintp(first + in_row[pair, 2])  # unsigned: nothing counts from behind
            if in_row[pair, 4] < 0:
                for at in range(in_row[pair, 1]):
                    output, pixel = np.uintp(into + at * apart), np.uintp(source + at * step)
                    for channel in range(channels):
                        sums[output, channel] += image[pixel, channel] * weights[tap, channel]
                continue
            tap_2 = np.uintp(first + in_row[pair, 4])
            for at in range(in_row[pair, 1]):
                output, pixel = np.uintp(into + at * apart), np.uintp(source + at * step)
                pixel_2 = np.uintp(source_2 + at * step)
                for channel in range(channels):
                    total = sums[output, channel] + image[pixel, channel] * weights[tap, channel]
                    sums[output, channel] = total + image[pixel_2, channel] * weights[tap_2, channel]


add_up_elements = called_with(
    f"(int64[:,::1], int64[:,::1], {readonly('float32', 2)}, float32[:,::1], float32[:,::1], UniTuple(int64, 5))"
)(compiled(_add_up_elements, fuses=False))
