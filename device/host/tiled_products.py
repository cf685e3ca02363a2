"""Products of matrices in compiled loops, of float32 numbers or of bfloat16 pairs (`device.host.vector_code`).

This module needs numba, also to be loaded. A change here is seen by loops of other files once these change, too
(`device.host.compiling`).
"""

from functools import partial
from typing import Any, TypeAlias

import numpy as np

from device.host.compiling import compiled
from device.host.pieces import depth_of_part
from device.host.vector_code import (
    BYTES,
    BYTES_OF_SIZE,
    LANES,
    ROWS,
    UPPER,
    VECTORS,
    pair_vector,
    tile_1,
    tile_2,
    tile_3,
    tile_4,
)

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

int32 = np.int32
apart = partial(compiled, fuses=False)
_depth_of_part: Any = compiled(depth_of_part)


@apart
def make_pairs(words: Array, first: int, mask: np.int32, target: Array, to: int, count: int) -> None:
    """Neighbors become pairs.

    Args:
        words: int32, flat, bfloat16 numbers as they lie in memory: two in a word, the first one below.
        mask: Bits of a pair that are kept, as `mask_of_pair` says.
        target: int32, flat.
        to: Where the first pair goes.
        count: How many pairs.
    """
    whole = count // LANES * LANES
    for i in range(0, whole, LANES):
        pair_vector(words, first + i, mask, target, to + i)
    for i in range(whole, count):
        word = words[first + i]
        target[to + i] = int32(int32(word << 16) | int32(int32(word >> 16) & int32(0xFFFF))) & mask


@apart
def mask_of_pair(mask: np.int32) -> np.int32:
    """A mask of float32 numbers for both bfloat16 numbers of a pair."""
    return int32(int32(mask & int32(UPPER)) | int32(int32(mask >> 16) & int32(0xFFFF)))


@apart
def _multiply_vectors(sizes: Any, left: Any, right: Any, paired: bool, adds: bool, rounds: bool, total: Any) -> None:
    """Some vectors of columns; arguments as of `product_in_tiles`, the depth in words."""
    rows, columns, words = sizes
    matrix, distance = (right[0], BYTES * right[1]), BYTES * total[1]
    for row in range(0, rows, ROWS):
        begins, place = left[1] + BYTES_OF_SIZE * row, (total[0] + row * distance, distance)
        if columns == 4 * LANES:
            tile_4(left[0], begins, matrix, place, words, paired, adds, rounds)
        elif columns == 3 * LANES:
            tile_3(left[0], begins, matrix, place, words, paired, adds, rounds)
        elif columns == 2 * LANES:
            tile_2(left[0], begins, matrix, place, words, paired, adds, rounds)
        else:
            tile_1(left[0], begins, matrix, place, words, paired, adds, rounds)


@apart
def product_in_tiles(sizes: Any, left: Any, right: Any, together: int, adds: bool, rounds: bool, total: Any) -> None:
    """A product, summed up in the parts of `device.host.pieces`, replaces what is there or is added to it.

    A word is a float32 number, or two neighbors of the depth as bits of bfloat16: the first one in its upper half, the
    second one in the lower half. Rows are computed six at a time: those behind the last are computed, too, if they are
    no six.

    Args:
        sizes: Rows, columns, a multiple of 16, and depth, an even number where words are pairs.
        left: The address that rows of the first operand are counted from, and that of how many bytes behind it each of
            them begins, int64, for those behind the last, too.
        right: The address of the second operand, and words from one of its rows of words to the next.
        together: Numbers of a word, one or two.
        adds: Whether it is added.
        rounds: Whether sums are rounded half up to bfloat16 in the end.
        total: The address of a float32 matrix with room for all rows, and elements from one of its rows to the next.
    """
    rows, columns, depth = sizes
    done = 0
    while done < depth:
        part, behind = _depth_of_part(depth - done), done // together
        for first in range(0, columns, VECTORS * LANES):
            _multiply_vectors(
                (rows, min(VECTORS * LANES, columns - first), part // together),
                (left[0] + BYTES * behind, left[1]),
                (right[0] + BYTES * (behind * right[1] + first), right[1]),
                together == 2,
                adds or done > 0,
                rounds and done + part == depth,
                (total[0] + BYTES * first, total[1]),
            )
        done += part
