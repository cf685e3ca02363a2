"""float32 numbers rounded in place to what packers write: by machine code where it is worth loading, else by numpy.

Both give the same bits. Infinities and NaN, and denormals where no exponent is shared, differ from the device's.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

import numpy as np

from device.host.compiling import loops_of, worth_loading
from device.numbers.formats import (
    GROUP,
    Array,
    Integers,
    largest_exponents,
    spread,
    to_read,
)

_HALF: Final = np.uint32(0x8000)
_BFLOAT16: Final = np.uint32(0xFFFF0000)
_SEVEN_BITS: Final = np.uint32(0xFFFE0000)  # sign, exponent and a significand of seven bits
_FRACTION_BITS: Final = 6  # of those, behind the leading one
_STRETCH: Final = np.float32(1.0 + 2.0**-13)
_MAGIC: Final = np.float32(1.5 * 2.0 ** (23 - _FRACTION_BITS))
_EXPONENT_FIELD: Final = np.uint32(0x7F800000)
_SMALLEST: Final = np.int32(1 << 23)  # 2^-126, the smallest normal number: groups of zeros round by it
LARGEST_SHARED: Final = np.float32(2.0**110)  # with `_MAGIC` times a larger number float32 would overflow
_PASS_SECONDS: Final = 0.2e-9  # what numpy takes for a number, each time it goes over all of them
_WIDEN_SECONDS: Final = 1e-9
_PASSES_OF_SHARING: Final = 6


def round_half_up(values: Array) -> Array:
    """float32 numbers as bfloat16 ones, half up, in place."""
    loops = _loops(values, 2)
    if loops is not None:
        loops.round_half_up(values.view(np.int32).reshape(-1))
    else:
        bits = values.view(np.uint32)
        bits += _HALF
        bits &= _BFLOAT16
    return values


def add(values: Array, rows: Array, *, rounds: bool) -> Array:
    """Adds rows, float32 [..., m] or [m], in place; ``rounds`` rounds the sums half up to bfloat16."""
    loops = _loops(values, 4 if rounds else 1)
    if loops is not None and rows.flags.c_contiguous:
        sums = values.reshape(-1, values.shape[-1])
        loops.add(sums, to_read(rows.reshape(-1, values.shape[-1])), rounds)
        return values
    values += rows
    return round_half_up(values) if rounds else values


def share(values: Array, mantissa_bits: int) -> Array:
    """Groups of 16 neighbors under the exponent of their largest, in place, rounded twice as packers do.

    First every value to as many bits as a bfloat8_b magnitude has, half up; then, by adding and subtracting
    1.5 * 2**23 units, to a multiple of the unit. That addition rounds ties to even, so values are stretched a little
    beforehand, which makes ties go up and moves nothing else. Narrower magnitudes are then cut. Denormals are zero.

    Args:
        values: float32 of magnitudes up to `LARGEST_SHARED`, neighbors along the last axis.
        mantissa_bits: Width of a magnitude, 7 or less.
    """
    _, smallest, stretch, rounder, unit = sharing(mantissa_bits)
    groups = values.reshape(-1, GROUP)
    loops = _loops(values, _PASSES_OF_SHARING)
    if loops is not None:
        loops.share(groups.view(np.int32), smallest, stretch, rounder, unit)
        return values
    bits = values.view(np.uint32)
    bits[(bits & _EXPONENT_FIELD) == 0] = 0
    bits += np.uint32(1 << 16)
    bits &= _SEVEN_BITS
    binade = np.maximum(largest_exponents(bits), np.uint32(smallest)).view(np.float32)
    groups *= stretch
    magic = spread(binade * rounder)
    groups += magic
    groups -= magic
    if unit:
        units = spread(binade * unit)
        np.trunc(groups / units, out=groups)
        groups *= units
        groups += np.float32(0)  # no negative zero
    return groups.reshape(values.shape)


def sharing(mantissa_bits: int) -> tuple[int, np.int32, np.float32, np.float32, np.float32]:
    """The numbers that `share` rounds with, under the parameter names of `device.numbers.loops.share`."""
    unit = 2.0 ** (1 - mantissa_bits) if mantissa_bits <= _FRACTION_BITS else 0.0
    return GROUP, _SMALLEST, _STRETCH, _MAGIC, np.float32(unit)


def _loops(values: Array, passes: int) -> Any:
    """The compiled loops, if they are worth loading for the work of so many passes of numpy; else None."""
    if not values.flags.c_contiguous or not worth_loading("device.numbers.loops", passes * _PASS_SECONDS * values.size):
        return None
    return loops_of("device.numbers.loops")


def widen_rows(
    values: Array, columns: slice, width: int, rows_of: Sequence[slice | Integers], mask: int
) -> list[Array]:
    """Rows of numbers as float32, in parts of their columns, each with some rows side by side.

    Args:
        values: A matrix, bfloat16 or float32.
        width: Columns of a part; the last may have fewer.
        rows_of: Equally many rows for each place side by side; -1 or one behind the last for zeros.
        mask: Bits that are kept, as a signed number.

    Returns:
        float32 [rows, places side by side * columns] for each part.
    """
    numbers = np.array([np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows for rows in rows_of])
    several, count = numbers.shape
    out = np.empty(several * count * (columns.stop - columns.start), np.float32)
    firsts = range(columns.start, columns.stop, width)
    widths = [several * (min(first + width, columns.stop) - first) for first in firsts]
    edges = accumulate((count * wide for wide in widths), initial=0)
    widened = [out[begin:end].reshape(count, wide) for (begin, end), wide in zip(pairwise(edges), widths, strict=True)]
    fits = values.itemsize == 2 and values.flags.c_contiguous
    if fits and worth_loading("device.numbers.loops", _WIDEN_SECONDS * out.size):
        loops, halves = loops_of("device.numbers.loops"), to_read(values.view(np.uint16))
        loops.widen_rows(halves, columns.start, columns.stop, width, numbers, np.int32(mask), out.view(np.int32))
        return widened
    for first, columns_of in zip(firsts, widened, strict=True):
        for target, rows in zip(np.split(columns_of, several, axis=1), rows_of, strict=True):
            _copy_rows(values[:, first : min(first + width, columns.stop)], rows, target)
    if mask != -1:
        bits = out.view(np.int32)
        bits &= np.int32(mask)
    return widened


def _copy_rows(values: Array, rows: slice | Integers, target: Array) -> None:
    """Rows of a matrix, or zeros where there are none."""
    if isinstance(rows, slice):
        target[...] = values[rows]
        return
    there = (rows >= 0) & (rows < len(values))
    target[there] = values[rows[there]]
    target[~there] = 0
