"""The arithmetic of block floats on groups of 16 values: rounding, and to and from exponent and element codes.

``mantissa_bits`` is the width of an element's magnitude (7 or 3). Under the shared exponent E the magnitude m is worth
m * 2**(E + 1 - mantissa_bits - 127); 2**128 is infinity, anything above is NaN.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.host.compiling import loops_of, worth_loading

Integers: TypeAlias = NDArray[np.int64]


def div_up(value: int, divisor: int) -> int:
    """Smallest integer that is not less than ``value / divisor``; ``divisor`` is positive."""
    return -(-value // divisor)


def round_up(value: int, multiple: int) -> int:
    """Smallest multiple of ``multiple`` (positive) that is not less than ``value``."""
    return -(-value // multiple) * multiple


Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

GROUP: Final = 16  # values that share an exponent
EXPONENT_BIAS: Final = 127
_CHUNK_GROUPS: Final = 1 << 12  # groups handled at a time, so that temporaries stay in the cache
_ROUND_SECONDS: Final = 2e-9  # what numpy takes for a number
_EXPONENT_FIELD: Final = np.uint32(0x7F800000)
_FRACTION_BITS: Final = 23
_MOST_NARROW_FIELD: Final = 230 << _FRACTION_BITS
_MAGIC_OF_ONE: Final = np.float32(1.5 * 2.0**_FRACTION_BITS).view(np.uint32)
_SMALLEST_NORMAL: Final = np.float32(2.0**-126)


def whole_groups(values: Array) -> Array:
    """Numbers [..., columns] as float32 with zeros behind, so that neighbors that share an exponent are all there."""
    columns = values.shape[-1]
    filled = np.zeros((*values.shape[:-1], round_up(columns, GROUP)), np.float32)
    filled[..., :columns] = values
    return filled


def largest_exponents(bits: Array) -> Array:
    """The largest exponent field of every 16 neighbors.

    Maxima of ever more neighbors slide over all numbers, although one in sixteen is kept: a loop over all is vector
    instructions, one over sixteen is not.

    Args:
        bits: uint32 bit patterns of float32 numbers, a multiple of 16, in any shape.

    Returns:
        uint32 [groups], the fields in their place: bit patterns of powers of two.
    """
    fields = np.bitwise_and(bits, _EXPONENT_FIELD).reshape(-1)
    for distance in (8, 4, 2, 1):
        fields = np.maximum(fields[:-distance], fields[distance:])
    return fields[::GROUP]


def spread(values: Array) -> Array:
    """Each value for all 16 members of its group: [groups, 16] of [groups]."""
    return np.repeat(values, GROUP).reshape(-1, GROUP)


def to_read(values: Array) -> Array:
    """A view that is not written to: loops are compiled anew for arrays that are."""
    seen = values[...]
    seen.flags.writeable = False
    return seen


def round_groups(groups: Array, mantissa_bits: int, out: Array) -> None:
    """Round every group to what a block float holds.

    Args:
        groups: [n, 16], float32 or of a dtype that fits it, which is widened chunk by chunk.
        mantissa_bits: Width of a magnitude.
        out: [n, 16] of a dtype that holds the results exactly (bfloat16, float32).
    """
    if _round_compiled(groups, mantissa_bits, out):
        return
    for chunk in _chunks(len(groups)):
        _round_into(out[chunk], groups[chunk].astype(np.float32, copy=False), mantissa_bits)


def _round_compiled(groups: Array, mantissa_bits: int, out: Array) -> bool:
    """Whether compiled loops rounded float32 groups: they are worth it, and no group is too large for them."""
    fits = groups.dtype == np.float32 and out.dtype.itemsize == 2 and groups.flags.c_contiguous
    if not fits or not worth_loading("device.numbers.loops", groups.size * _ROUND_SECONDS):
        return False
    loops = loops_of("device.numbers.loops")
    done: bool = loops.round_even(to_read(groups.view(np.int32)), mantissa_bits, out.view(np.uint16))
    return done


def encode_groups(groups: Array, mantissa_bits: int) -> tuple[Array, Array]:
    """Shared exponents [n] and sign-and-magnitude codes [n, 16], both uint8.

    Args:
        groups: [n, 16] as ``round_groups`` leaves them.
        mantissa_bits: Width of a magnitude; the sign stands above it.
    """
    exponents = np.empty(len(groups), np.uint8)
    codes = np.empty(groups.shape, np.uint8)
    for chunk in _chunks(len(groups)):
        exponents[chunk], codes[chunk] = _codes(groups[chunk].astype(np.float32), mantissa_bits)
    return exponents, codes


def decode_groups(exponents: Array, codes: Array, mantissa_bits: int, out: Array) -> None:
    """The inverse of ``encode_groups``.

    Args:
        exponents: uint8 [n].
        codes: uint8 [n, 16].
        mantissa_bits: Width of a magnitude.
        out: [n, 16] of a dtype that holds the values exactly.
    """
    for chunk in _chunks(len(codes)):
        out[chunk] = _values(exponents[chunk], codes[chunk], mantissa_bits)


def _chunks(groups: int) -> Iterator[slice]:
    return (slice(start, start + _CHUNK_GROUPS) for start in range(0, groups, _CHUNK_GROUPS))


def _unit_exponents(exponents: Array, mantissa_bits: int) -> Array:
    """Exponent of the value of magnitude one."""
    units: Array = exponents.astype(np.int32) + (1 - mantissa_bits - EXPONENT_BIAS)
    return units


def _round_into(out: Array, groups: Array, mantissa_bits: int) -> None:
    """Rounds float32 [n, 16].

    Adding and subtracting 1.5 * 2**(fraction bits) units rounds to a multiple of the unit, ties to even, because the
    last bit of that sum is worth one unit.
    """
    fields = largest_exponents(groups.view(np.uint32))
    if fields.max() > _MOST_NARROW_FIELD:  # the sum would overflow float32
        out[...] = _rounded_wide(groups, fields >> np.uint32(_FRACTION_BITS), mantissa_bits)
        return
    small = (fields > 0) & (fields <= (mantissa_bits + 1) << _FRACTION_BITS)
    if small.any():  # a denormal could still reach a magnitude of one there
        groups = np.where(small[:, None] & (np.abs(groups) < _SMALLEST_NORMAL), np.float32(0), groups)
    magic = fields + np.uint32((_FRACTION_BITS + 1 - mantissa_bits << _FRACTION_BITS) + (1 << _FRACTION_BITS - 1))
    magic[fields == 0] = _MAGIC_OF_ONE  # only zeros and denormals there: all become zero
    limit = fields | np.uint32((1 << _FRACTION_BITS) - (1 << _FRACTION_BITS + 1 - mantissa_bits))
    magic, limit = spread(magic.view(np.float32)), spread(limit.view(np.float32))
    rounded = groups + magic
    rounded -= magic
    np.minimum(rounded, limit, out=rounded)
    np.maximum(rounded, np.negative(limit, out=limit), out=rounded)
    if out.dtype.itemsize == 2:
        out.view(np.uint16)[...] = rounded.view(np.uint16)[:, 1::2]  # the upper halves: bfloat16 as it is
    else:
        out[...] = rounded


def _rounded_wide(groups: Array, exponents: Array, mantissa_bits: int) -> Array:
    """Rounded float32 [n, 16] of any magnitude, infinities and NaN among them."""
    unit = np.ldexp(1.0, _unit_exponents(exponents, mantissa_bits))
    unit[exponents == 0] = 1.0
    small = (exponents > 0) & (exponents <= mantissa_bits + 1)
    kept = np.where(small[:, None] & (np.abs(groups) < _SMALLEST_NORMAL), np.float32(0), groups)
    magic = (unit * (1.5 * 2.0**52))[:, None]
    limit = (unit * ((1 << mantissa_bits) - 1))[:, None]
    rounded = np.clip(kept + magic - magic, -limit, limit)
    np.copyto(rounded, kept, where=~np.isfinite(kept))
    with np.errstate(over="ignore"):
        return rounded.astype(np.float32)


def _codes(groups: Array, mantissa_bits: int) -> tuple[Array, Array]:
    exponents = largest_exponents(groups.view(np.uint32)) >> np.uint32(_FRACTION_BITS)
    magnitudes = np.abs(groups) * np.ldexp(1.0, -_unit_exponents(exponents, mantissa_bits))[:, None]
    if exponents.max() == 255:
        top_bit = 1 << (mantissa_bits - 1)
        magnitudes[np.isinf(groups)] = top_bit
        magnitudes[np.isnan(groups)] = top_bit + top_bit // 2  # quiet, without payload
    signs = groups.view(np.uint32) >> 31 << mantissa_bits
    return exponents, magnitudes.astype(np.uint8) | signs.astype(np.uint8)


def _values(exponents: Array, codes: Array, mantissa_bits: int) -> Array:
    """Float32 [n, 16]."""
    magnitudes = np.arange(1 << mantissa_bits, dtype=np.float32)
    scale = np.ldexp(np.float32(1), _unit_exponents(exponents, mantissa_bits))
    with np.errstate(over="ignore"):
        values: Array = np.concatenate([magnitudes, -magnitudes])[codes] * scale[:, None]
    if exponents.max() == 255:
        beyond = (codes & ((1 << mantissa_bits) - 1)) > 1 << (mantissa_bits - 1)
        values[beyond & (exponents == 255)[:, None]] = np.nan
    return values
