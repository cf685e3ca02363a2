"""Roundings of float32 numbers as machine code: the bits that ``device.numbers.rounding`` gives without numba.

Each loop goes over memory once, where numpy goes once for each operation. Multiplications and additions stay apart, as
they are in numpy. A loop sees one view of an array, as int32 bit patterns or as float32, and goes over many groups at a
time, so that it becomes vector instructions.
"""

from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from device.host.compiling import called_with, compiled, readonly
from device.numbers.sixteen import SIXTEEN, spread_exponents

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_HALF: Final = np.int32(0x8000)
_UPPER: Final = np.int32(-0x10000)
_HALF_OF_SEVEN: Final = np.int32(0x10000)
_SEVEN_BITS: Final = np.int32(-0x20000)
_FIELD: Final = np.int32(0x7F800000)
MOST_NARROW: Final = np.int32(230 << 23)  # above it `round_together` would be too large for float32
_AT_A_TIME: Final = 1024  # numbers that are rounded together, within the fastest cache

int32 = np.int32
float32 = np.float32
apart = partial(compiled, fuses=False)


@called_with("(int32[::1],)")
@apart
def round_half_up(bits: Array) -> None:
    """int32 bits [n] of float32 numbers become those of bfloat16."""
    for i in range(bits.size):
        bits[i] = int32(bits[i] + _HALF) & _UPPER


@called_with(f"(float32[:,::1], {readonly('float32', 2)}, boolean)")
@apart
def add(values: Array, rows: Array, rounds: bool) -> None:
    """Adds ``rows``, float32 [n, m] or [1, m], to ``values``; with ``rounds`` (a 16-bit Dst) half up to bfloat16."""
    for n in range(values.shape[0]):
        target, row = values[n], rows[min(n, rows.shape[0] - 1)]
        if rounds:
            for i in range(target.size):
                total = float32(target[i] + row[i]).view(np.int32)
                target[i] = int32(int32(total + _HALF) & _UPPER).view(np.float32)
        else:
            for i in range(target.size):
                target[i] += row[i]


@called_with("(int32[:,::1], int32, float32, float32, float32)")
@apart
def share(bits: Array, smallest: np.int32, stretch: np.float32, magic: np.float32, unit: np.float32) -> None:
    """Groups share an exponent, rounded twice as packers do; denormals become zero.

    Args:
        bits: int32 [groups, 16] of float32 numbers.
        smallest: Exponent field below which no group's exponent lies.
        stretch: What values are multiplied by, so that ties go up.
        magic: What is added and taken away again to round, for a largest number of one.
        unit: What numbers are cut to a multiple of in the end, again for one; 0 to leave them as they are.
    """
    flat, tops = bits.reshape(-1), np.empty(_AT_A_TIME, np.int32)
    for start in range(0, flat.size, _AT_A_TIME):
        chunk = flat[start : min(start + _AT_A_TIME, flat.size)]
        for first in range(0, chunk.size, SIXTEEN):
            spread_exponents(chunk, first, _HALF_OF_SEVEN, tops)
        for i in range(chunk.size):
            top = int32(max(tops[i], smallest)).view(np.float32)
            normal = chunk[i] if chunk[i] & _FIELD else int32(0)
            seven = int32(int32(normal + _HALF_OF_SEVEN) & _SEVEN_BITS).view(np.float32)
            added = float32(top * magic)
            chunk[i] = float32(float32(float32(seven * stretch) + added) - added).view(np.int32)
        if unit > 0:
            for i in range(chunk.size):
                multiple = float32(int32(max(tops[i], smallest)).view(np.float32) * unit)
                units = np.trunc(float32(int32(chunk[i]).view(np.float32) / multiple))
                chunk[i] = float32(float32(float32(units) * multiple) + float32(0)).view(np.int32)  # no negative zero


@apart
def round_together(bits: Array, mantissa_bits: int, tops: Array, out: Array) -> np.int32:
    """Groups as `round_even` rounds them, side by side; the largest exponent field of all, which says whether it could.

    ``bits`` are int32 [16 * groups] of float32 numbers, ``tops`` a work array as large, ``out`` bfloat16 bits as
    uint16.
    """
    step, most = 1 << 23, int32(0)
    above, below = int32((24 - mantissa_bits) * step + step // 2), int32(step - (1 << (24 - mantissa_bits)))
    for first in range(0, bits.size, SIXTEEN):
        spread_exponents(bits, first, int32(0), tops)
    for i in range(bits.size):
        most = max(most, tops[i])
        magic = int32(tops[i] + above).view(np.float32)
        limit = int32(tops[i] | below).view(np.float32)
        number = bits[i] if bits[i] & _FIELD else int32(0)
        rounded = float32(float32(int32(number).view(np.float32) + magic) - magic)
        rounded = limit if rounded > limit else rounded
        rounded = -limit if rounded < -limit else rounded
        out[i] = int32(float32(rounded).view(np.int32) >> 16)
    return int32(most)


@called_with(f"({readonly('int32', 2)}, int64, uint16[:,::1])")
@apart
def round_even(bits: Array, mantissa_bits: int, out: Array) -> bool:
    """Groups as the host rounds them, to nearest even; False where one is too large for float32.

    Denormals become zero: beside larger numbers they would be rounded to it, and otherwise they are dropped. ``bits``
    are int32 [groups, 16] of float32 numbers, ``out`` bfloat16 bits as uint16.
    """
    flat, result, tops = bits.reshape(-1), out.reshape(-1), np.empty(_AT_A_TIME, np.int32)
    for first in range(0, flat.size, _AT_A_TIME):
        last = min(first + _AT_A_TIME, flat.size)
        if round_together(flat[first:last], mantissa_bits, tops, result[first:last]) > MOST_NARROW:
            return False
    return True


@called_with(f"({readonly('uint16', 2)}, int64, int64, int64, int64[:,::1], int32, int32[::1])")
@apart
def widen_rows(halves: Array, column: int, end: int, width: int, rows: Array, mask: np.int32, out: Array) -> None:
    """Rows of bfloat16 numbers become float32, in parts of their columns, each with some rows side by side.

    A row is read as a whole: parts one after the other take more than twice as long.

    Args:
        halves: uint16 [rows, at least end], contiguous.
        column: First column that is read.
        end: Where they end.
        width: Columns of a part; the last may have fewer.
        rows: int64 [side by side, n], the row under each; none of them for zeros.
        mask: Bits that are kept.
        out: int32, flat, bit patterns: part after part [n, side by side, columns of the part].
    """
    flat, several = halves.reshape(-1), rows.shape[0]
    for n in range(rows.shape[1]):
        for k in range(several):
            row = rows[k, n]
            there = 0 <= row < halves.shape[0]
            for first in range(column, end, width):
                columns = min(width, end - first)
                to = (first - column) * several * rows.shape[1] + (n * several + k) * columns
                target = out[to : to + columns]
                if there:
                    begin = row * halves.shape[1] + first
                    source = flat[begin : begin + columns]
                    for i in range(columns):
                        target[i] = int32(source[i]) << 16 & mask
                else:
                    for i in range(columns):
                        target[i] = 0
