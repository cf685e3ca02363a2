"""The vector unit: its instructions on float32, and the elementary functions that kernels build from them.

A register holds a float32. A multiply-add rounds once, to nearest even, and flushes denormals to zero. A store into a
16-bit Dst drops the lower half unless the kernel rounds it first. The functions follow the kernels of tt-metal 0.81.1
for both architectures step by step, because every step rounds (docs/reference/values.md, Activation).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from device.numbers.formats import Array

SMALLEST_NORMAL: Final = np.float32(2.0**-126)
SIGN: Final = np.uint32(0x80000000)
FRACTION: Final = np.uint32(0x007FFFFF)
IMPLICIT_ONE: Final = np.uint32(0x00800000)
MINUS_ONE: Final = np.uint32(0xBF800000)
UPPER_HALF: Final = np.uint32(0xFFFF0000)
FRACTION_BITS: Final = 23
BIAS: Final = 127

LOG2_E: Final = 1.4426950216293335
TWO_TO_THE_FRACTION: Final = (1.0017248, 7.839635491371155e-08, 4.791750143340323e-15)  # 2**(n / 2**23), n < 2**23
EXPONENTIAL: Final = (1.0, 1.0, 4.99999851e-1, 1.66664720e-1, 4.16695364e-2, 8.37312452e-3, 1.37805939e-3)
LN_2_PARTS: Final = (-6.93145752e-1, -1.42860677e-6)
RECIPROCAL: Final = (2.121212482452392578125, 1.4545459747314453125, 0.3232325017452239990234375)  # of -x, 1 <= x < 2
LARGEST_INVERTED: Final = 2.0**126  # the table of reciprocals has none for more
SQUARE_ROOT_SEED: Final = 0x5F1110A0
SQUARE_ROOT: Final = (2.2825186, 2.2533049)


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorUnitMode:
    """How the vector unit is set up."""

    fp32_dest: bool  # Whether Dst keeps 32 bits of a number; otherwise 16 (bfloat16)
    reciprocal_table: bool  # Whether it has a table of reciprocals (a figure of the device)


def multiply_add(factor: Array, other: Array | float, addend: Array | float) -> Array:
    """``factor * other + addend``, rounded once; float32 of the same shape."""
    with np.errstate(over="ignore", invalid="ignore"):
        exact = factor.astype(np.float64) * np.asarray(other, np.float32).astype(np.float64)
        total = (exact + np.asarray(addend, np.float32).astype(np.float64)).astype(np.float32)
    return np.where(np.abs(total) < SMALLEST_NORMAL, np.float32(0), total)


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """A polynomial in Horner's form, from the constant on."""
    total = np.full(x.shape, coefficients[-1], np.float32)
    for coefficient in coefficients[-2::-1]:
        total = multiply_add(total, x, coefficient)
    return total


def rounded_to_bfloat16(x: Array) -> Array:
    """To the nearest bfloat16, a half away from zero."""
    return _floats((_bits(x) + np.uint32(0x8000)) & UPPER_HALF)


def rounded_to_even_bfloat16(x: Array) -> Array:
    """Rounded to the nearest bfloat16, ties to even."""
    bits = _bits(x)
    return _floats((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & UPPER_HALF)


def cut_to_bfloat16(x: Array) -> Array:
    """A float32 after a store into a 16-bit Dst."""
    return _floats(_bits(x) & UPPER_HALF)


def short_exponential(x: Array, *, scale: float = LOG2_E, constant: float = TWO_TO_THE_FRACTION[0]) -> Array:
    """E to the float32 x, right to some 21 bits: 2 to the ``x * scale`` with a parabola for the fraction."""
    shifted = np.clip(multiply_add(x, scale, BIAS), np.float32(0), np.float32(255))
    bits = _bits(shifted)
    places = (bits >> np.uint32(FRACTION_BITS)).astype(np.int64) - BIAS
    fixed = ((bits & FRACTION) | IMPLICIT_ONE).astype(np.int64)
    fixed = np.where(places >= 0, fixed << np.maximum(places, 0), fixed >> np.minimum(-places, 63))
    fraction = (fixed & int(FRACTION)).astype(np.float32)
    power = polynomial(fraction, (constant, *TWO_TO_THE_FRACTION[1:]))
    return _with_exponent(power, (fixed >> FRACTION_BITS) & 0xFF)


def long_exponential(x: Array) -> Array:
    """exp(x) within one unit in the last place, as kernels compute it with a 32-bit Dst."""
    ratio = multiply_add(x, 1.442695, 0.0)
    whole = np.copysign(np.floor(np.minimum(np.abs(ratio), np.float32(32767)) + np.float32(0.5)), ratio)
    rest = multiply_add(whole, LN_2_PARTS[1], multiply_add(whole, LN_2_PARTS[0], x))
    power = polynomial(rest, EXPONENTIAL)
    exponent = (_bits(power) >> np.uint32(FRACTION_BITS)).astype(np.int64) + whole.astype(np.int64)
    result = _with_exponent(power, np.clip(exponent, 0, 255))
    return np.where(exponent < 1, np.float32(0), np.where(exponent < 255, result, np.float32(np.inf)))


def reciprocal(x: Array, *, steps: int, from_table: bool) -> Array:
    """One over float32 x by ``steps`` of Newton's method, from the vector unit's table or from a parabola."""
    return _from_table(x, steps) if from_table else _from_parabola(x, steps)


def square_root(x: Array) -> Array:
    """The square root; NaN below zero."""
    start = _floats(np.uint32(SQUARE_ROOT_SEED) - (_bits(x) >> np.uint32(1)))
    product = multiply_add(x, start, 0.0)
    short = multiply_add(-start, product, 0.0)
    inner = multiply_add(short, 1.0, SQUARE_ROOT[1])
    inverse = multiply_add(start, multiply_add(short, inner, SQUARE_ROOT[0]), 0.0)
    product = multiply_add(x, inverse, 0.0)
    short = multiply_add(-inverse, product, 1.0)
    root = multiply_add(short, multiply_add(product, 0.5, 0.0), product)
    root = np.where(np.isinf(x), x, root)
    return np.where(x == 0, x, np.where(x < 0, np.float32(np.nan), root))


def _from_parabola(x: Array, steps: int) -> Array:
    bits = _bits(x)
    negative = _floats((bits & FRACTION) | MINUS_ONE)  # between -1 and -2
    inverse = polynomial(negative, RECIPROCAL)
    for _ in range(steps):
        inverse = multiply_add(inverse, multiply_add(negative, inverse, 1.0), inverse)
    scale = multiply_add(_floats(~bits & ~FRACTION), 0.5, 0.0)  # the exponent that brings it back
    return np.copysign(multiply_add(inverse, scale, 0.0), x)


def _from_table(x: Array, steps: int) -> Array:
    bits = _bits(np.abs(x))
    # The table's entry is the reciprocal of the middle of the 128th of [1, 2) that x lies in, in 7 bits.
    part = (bits >> np.uint32(16)) & np.uint32(0x7F)
    entry = np.floor(256 / (1 + (part + 0.5) / 128) - 128 + 0.5).astype(np.uint32)
    exponent = np.uint32(2 * BIAS - 1) - (bits >> np.uint32(FRACTION_BITS))
    inverse = _floats((exponent << np.uint32(FRACTION_BITS)) | (entry << np.uint32(16)))
    size = np.abs(x)
    inverse = np.where(size < SMALLEST_NORMAL, np.float32(np.inf), np.where(size < LARGEST_INVERTED, inverse, 0))
    inverse = np.copysign(inverse.astype(np.float32), x)
    error = multiply_add(x, inverse, -2.0)
    better = inverse
    for step in range(steps):
        better = multiply_add(better, -(error if step == 0 else multiply_add(x, better, -2.0)), 0.0)
    return np.where(error < 0, better, inverse)


def _with_exponent(x: Array, exponent: Array) -> Array:
    """Sign and fraction of x with another (biased) exponent; zero where x has no exponent."""
    bits = (_bits(x) & (SIGN | FRACTION)) | (exponent.astype(np.uint32) << np.uint32(FRACTION_BITS))
    return np.where(exponent == 0, np.float32(0), _floats(bits))


def _bits(x: Array) -> Array:
    return np.ascontiguousarray(x, np.float32).view(np.uint32)


def _floats(bits: Array) -> Array:
    return np.ascontiguousarray(bits, np.uint32).view(np.float32)
