"""The arithmetic of block floats on groups of 16 values: rounding, and to and from exponent and element codes.

``mantissa_bits`` is the width of an element's magnitude (7 or 3). Under the shared exponent E the magnitude m is worth
m * 2**(E + 1 - mantissa_bits - 127); 2**128 is infinity, anything above is NaN.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np

from device.numbers.integers import round_up

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

GROUP: Final = 16  # values that share an exponent
EXPONENT_BIAS: Final = 127
_CHUNK_GROUPS: Final = 1 << 12  # groups handled at a time, so that temporaries stay in the cache
_EXPONENT_FIELD: Final = np.uint32(0x7F800000)
_SMALLEST_NORMAL: Final = np.float32(2.0**-126)


def whole_groups(values: Array) -> Array:
    """Numbers [..., columns] as float32 with zeros behind, so that neighbors that share an exponent are all there."""
    columns = values.shape[-1]
    filled = np.zeros((*values.shape[:-1], round_up(columns, GROUP)), np.float32)
    filled[..., :columns] = values
    return filled


def round_groups(groups: Array, mantissa_bits: int, out: Array) -> None:
    """Round every group to what a block float holds.

    Args:
        groups: float32 [n, 16].
        mantissa_bits: Width of a magnitude.
        out: [n, 16] of a dtype that holds the results exactly (bfloat16, float32).
    """
    for chunk in _chunks(len(groups)):
        out[chunk] = _rounded(groups[chunk], mantissa_bits)


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


def _shared_exponents(groups: Array) -> Array:
    """Largest biased exponent of each row of float32 [n, 16], as uint32 [n]."""
    fields = np.bitwise_and(groups.view(np.uint32), _EXPONENT_FIELD).reshape(-1)
    exponents: Array = np.maximum.reduceat(fields, np.arange(0, fields.size, GROUP))  # faster than max(axis=1)
    exponents >>= 23
    return exponents


def _rounded(groups: Array, mantissa_bits: int) -> Array:
    """Rounded float32 [n, 16].

    Adding and subtracting 1.5 * 2**(fraction bits) units rounds to a multiple of the unit, ties to even, because the
    last bit of that sum is worth one unit.
    """
    exponents = _shared_exponents(groups)
    wide = bool(exponents.max() > 230)  # there the sum would overflow float32
    dtype, fraction_bits = (np.float64, 52) if wide else (np.float32, 23)
    unit = np.ldexp(1.0, _unit_exponents(exponents, mantissa_bits))
    unit[exponents == 0] = 1.0  # only zeros and denormals there: all become zero
    magic = (unit * (1.5 * 2.0**fraction_bits)).astype(dtype)[:, None]
    limit = (unit * ((1 << mantissa_bits) - 1)).astype(dtype)[:, None]
    small = (exponents > 0) & (exponents <= mantissa_bits + 1)
    if small.any():  # a denormal could still reach a magnitude of one there
        groups = np.where(small[:, None] & (np.abs(groups) < _SMALLEST_NORMAL), np.float32(0), groups)
    rounded: Array = groups + magic
    rounded -= magic
    np.minimum(rounded, limit, out=rounded)
    np.maximum(rounded, np.negative(limit), out=rounded)
    if wide:
        np.copyto(rounded, groups, where=~np.isfinite(groups))
        with np.errstate(over="ignore"):
            return rounded.astype(np.float32)
    return rounded


def _codes(groups: Array, mantissa_bits: int) -> tuple[Array, Array]:
    exponents = _shared_exponents(groups)
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
