"""Compiled conversions between L1 and the matrix unit, with the bits of ``device.matrix_unit.packer``.

The loops work on int32 bit patterns, in integers as far as possible; all integers are forced to 32 bits, so that the
loops become vector instructions.
"""

from typing import Any, Final, TypeAlias

import numpy as np

from device.host.compiling import called_with, compiled, readonly
from device.numbers.formats import GROUP

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_SIGN: Final = -(1 << 31)
_MAGNITUDE: Final = 0x7FFFFFFF
_INFINITY: Final = 0x7F800000
_SMALLEST: Final = 1 << 23
_BIAS: Final = 127
_FRACTION_BITS: Final = 23
_OPERAND_FRACTION_BITS: Final = 10
_BLOCK_FRACTION_BITS: Final = 6
_LARGEST_MAGNITUDE: Final = 127

_GIVEN: Final = readonly("int32", 2)

int32 = np.int32
uint32 = np.uint32
float32 = np.float32


@compiled
def _flushed(bits: np.int32) -> np.int32:
    return bits if int32(bits & int32(_MAGNITUDE)) >= int32(_SMALLEST) else int32(0)


@compiled
def _without_nan(bits: np.int32) -> np.int32:
    return int32(int32(bits & int32(_SIGN)) | min(int32(bits & int32(_MAGNITUDE)), int32(_INFINITY)))


@called_with(f"({_GIVEN},)")
@compiled
def exponent_range(bits: Array) -> tuple[np.int32, np.int32]:
    """Smallest exponent field above 0 (255 if there is none) and largest of a matrix of int32 bit patterns."""
    smallest, largest = int32(_INFINITY), int32(0)
    for row in range(bits.shape[0]):
        for n in range(bits.shape[1]):
            field = int32(bits[row, n] & int32(_INFINITY))
            smallest = min(smallest, field if field else int32(_INFINITY))
            largest = max(largest, field)
    return int32(smallest >> 23), int32(largest >> 23)


@called_with(f"({_GIVEN}, int32[:,::1])")
@compiled
def begin(start: Array, dst: Array) -> np.int32:
    """Copies int32 bits to Dst: no denormals or negative zeros, NaN as infinity; returns all bits or'ed.

    ``start`` is [rows, cols], ``dst`` [rows, columns of whole blocks].
    """
    seen = int32(0)
    cols = start.shape[1]
    for row in range(start.shape[0]):
        for n in range(cols):
            value = start[row, n]
            seen = int32(seen | value)
            dst[row, n] = _flushed(_without_nan(value))
        for n in range(cols, dst.shape[1]):
            dst[row, n] = int32(0)
    return seen


@compiled
def _significand(bits: np.int32, exponent: np.int32) -> np.int32:
    return int32(int32(bits & int32(_SMALLEST - 1)) | int32(_SMALLEST)) if exponent > 0 else int32(0)


@compiled
def _shifted_half_up(significand: np.int32, shift: np.int32) -> np.int32:
    """``significand`` shifted right by at least one place, rounded half up."""
    return int32(int32(int32(significand >> (int32(min(uint32(shift - 1), uint32(31))) & 31)) + 1) >> 1)


@compiled
def _power_of_two(exponent: np.int32) -> np.float32:
    """2**exponent, of the exponents of float32's normal numbers."""
    return int32(int32(exponent + _BIAS) << 23).view(np.float32)


@compiled
def _scaled(number: np.int32, exponent: np.int32, places: np.int32) -> np.int32:
    """Bit pattern of ``number * 2**(exponent - places)``, by two factors: the power alone may be no normal number."""
    half, half_places = int32(exponent >> 1), int32(places >> 1)
    near = float32(number) * _power_of_two(int32(half - half_places))
    rest = int32(int32(exponent - half) - int32(places - half_places))
    return float32(near * _power_of_two(rest)).view(np.int32)


@called_with(*(f"({bits}, int32, int32[::1])" for bits in ("int32[::1]", readonly("int32", 1))))
@compiled
def cut(bits: Array, mask: np.int32, out: Array) -> None:
    """Writes int32 bits under a mask to ``out``, zeros and denormals as +0."""
    for n in range(len(bits)):
        out[n] = _flushed(int32(bits[n] & mask))


@called_with(f"({readonly('int32', 1)}, boolean, boolean, int32[::1])")
@compiled
def to_bfloat16(bits: Array, rounds: bool, relu: bool, out: Array) -> None:
    """Writes int32 bits as bfloat16 to ``out``, half up, NaN as infinity; zeros and denormals are +0.

    ``rounds`` says whether the numbers are wider than bfloat16, ``relu`` whether negative numbers become zero.
    """
    for n in range(len(bits)):
        value = _without_nan(bits[n])
        if rounds:
            value = int32(int32(value + int32(0x8000)) & int32(-0x10000))
        value = _flushed(value)
        out[n] = int32(0) if relu and value < 0 else value


@called_with(f"({_GIVEN}, boolean, int64, boolean, int32[:,::1])")
@compiled
def share_exponents(bits: Array, rounds_first: bool, dropped: int, relu: bool, out: Array) -> None:
    """Magnitudes of seven bits under the largest exponent of 16 neighbors, half up and limited, as float32.

    ``bits`` and ``out`` are int32 [groups, 16]. ``rounds_first`` rounds each number to seven significant bits, half up,
    NaN as infinity; ``dropped`` is the number of lowest magnitude bits that are cut; ``relu`` acts before the exponent
    is chosen.
    """
    for group in range(len(bits)):
        largest = int32(0)
        for n in range(GROUP):
            value = bits[group, n]
            if rounds_first:
                value = int32(int32(_flushed(_without_nan(value)) + int32(1 << 16)) & int32(-(1 << 17)))
            value = _flushed(value)
            if relu and value < 0:
                value = int32(0)
            out[group, n] = value
            largest = max(largest, int32(value & int32(_INFINITY)))
        shared = int32(largest >> 23)
        for n in range(GROUP):
            value = out[group, n]
            exponent = int32(int32(value >> 23) & int32(0xFF))
            shift = int32(int32(shared - exponent) + int32(_FRACTION_BITS - _BLOCK_FRACTION_BITS))
            magnitude = min(_shifted_half_up(_significand(value, exponent), shift), int32(_LARGEST_MAGNITUDE))
            magnitude = int32(int32(magnitude >> dropped) << dropped)
            packed = _scaled(magnitude, shared, int32(_BIAS + _BLOCK_FRACTION_BITS))
            positive = value >= 0 or magnitude == 0
            out[group, n] = packed if positive else int32(packed | int32(_SIGN))


@called_with(f"({_GIVEN}, {_GIVEN}, boolean, int32[:,::1])")
@compiled
def add(left: Array, right: Array, fp32_dest: bool, out: Array) -> None:
    """Both shifted to the scale of the larger one's 11-bit significand, half up, and added; see ``packer.add_bias``.

    All are int32 bit patterns [rows, cols]; ``right`` may be [1, cols]. Without ``fp32_dest`` the sum is rounded to
    bfloat16, half up.
    """
    for row in range(len(left)):
        other = row if len(right) > 1 else 0
        for n in range(left.shape[1]):
            bits_1, bits_2 = left[row, n], right[other, n]
            exponent_1, exponent_2 = int32(int32(bits_1 >> 23) & int32(0xFF)), int32(int32(bits_2 >> 23) & int32(0xFF))
            exponent = max(exponent_1, exponent_2)
            places = int32(_FRACTION_BITS - _OPERAND_FRACTION_BITS)
            number_1 = _shifted_half_up(_significand(bits_1, exponent_1), int32(int32(exponent - exponent_1) + places))
            number_2 = _shifted_half_up(_significand(bits_2, exponent_2), int32(int32(exponent - exponent_2) + places))
            total = int32((-number_1 if bits_1 < 0 else number_1) + (-number_2 if bits_2 < 0 else number_2))
            value = _scaled(total, exponent, int32(_BIAS + _OPERAND_FRACTION_BITS))
            if not fp32_dest:
                value = int32(int32(value + int32(0x8000)) & int32(-0x10000))
            out[row, n] = _flushed(value)
