"""Compiled loops of the patch programs; loaded where they are worth it (`device.host.compiling`)."""

from typing import Any, Final

import numpy as np

from device.host.compiling import compiled

Array = np.ndarray[Any, np.dtype[Any]]
BLOCK: Final = 16  # rows and columns that are read and written in one go


@compiled
def copy_taps(target: Array, source: Array, first: int, last: int) -> None:
    """Copies rows from ``first`` to before ``last``, or the last row, of the matrices of all taps.

    Args:
        target: [taps, rows, columns].
        source: The same, in any order in memory.
        first: The first row.
        last: The row behind the last.
    """
    taps, rows, columns = source.shape
    for top in range(first, min(last, rows), BLOCK):
        for begin in range(0, columns, BLOCK):
            for tap in range(taps):
                for row in range(top, min(top + BLOCK, last, rows)):
                    for column in range(begin, min(begin + BLOCK, columns)):
                        target[tap, row, column] = source[tap, row, column]
