"""Weights as matrices, one for every tap, in one piece: transposed while what lies side by side is in the cache."""

from functools import partial
from typing import Final

import numpy as np

from device.host.compiling import loops_of, worth_loading
from device.numbers.formats import Array
from ops.programs.patch_matmul.gather import Each, copy_in_pieces, do

COPIED_ROWS: Final = 32  # of all taps, that are worth another piece
NUMPY_SECONDS: Final = 1.5e-9  # for a number of a transposed copy


def in_one_piece(weights: Array, each: Each) -> Array:
    """Weights float32 [parts, *taps, rows, columns], contiguous: themselves, or a copy [parts, taps, rows, columns].

    Args:
        weights: The weights, in any order of axes in memory.
        each: Carries out a function for each of several pieces.
    """
    if weights.flags.c_contiguous:
        return weights
    source = weights.reshape(len(weights), -1, *weights.shape[-2:])
    copied = np.empty(source.shape, np.float32)
    if worth_loading("ops.programs.patch_matmul.loops", source.size * NUMPY_SECONDS):
        source.flags.writeable = False  # always, so that the loop is compiled for one kind of argument
        copy = loops_of("ops.programs.patch_matmul.loops").copy_taps
        cuts = range(0, source.shape[-2], COPIED_ROWS)
        parts = zip(copied, source, strict=True)
        each(do, [partial(copy, target, part, first, first + COPIED_ROWS) for target, part in parts for first in cuts])
    else:
        copy_in_pieces(np.moveaxis(copied, -2, 0), np.moveaxis(source, -2, 0), each)
    return copied
