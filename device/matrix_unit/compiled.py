"""The matrix unit compiled by numba: the bits of ``device.matrix_unit.exact``, an order of magnitude faster than numpy.

Loaded by ``device.matrix_unit.blocks`` where the work is worth it (``device.host.compiling``). Without numba the
functions stay plain Python: right, and far too slow.

The layout is what makes it fast. Weights lie in blocks of ``LANES`` columns, [halves, 16 * LANES], so that every load
of an inner loop over columns has a constant distance from the first and the loop becomes vector instructions; all
integers are forced to 32 bits for the same reason. A block's tile of weights stays in the first-level cache while
``CHUNK_ROWS`` rows run over it. One step is described in ``device.matrix_unit.exact``.
"""

from typing import Any, Final, TypeAlias

import numpy as np

from device.host.compiling import compiled
from device.matrix_unit.exact import (
    ABSENT_EXPONENT,
    ACTIVATION_HIGH_MASK,
    ACTIVATION_MASK,
    ACTIVATION_STRETCH,
    ANCHOR_BITS,
)

__all__ = ["LANES", "multiply_column_block"]

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

LANES: Final = 64  # columns of a block
CHUNK_ROWS: Final = 32
_BIAS: Final = 127
_NOWHERE: Final = -64  # exponent of a group that counts for nothing: aligning it shifts every bit out
_SIGN: Final = -(1 << 31)
_HIGH: Final = ACTIVATION_HIGH_MASK - (1 << 32)  # masks as signed numbers
_ALL: Final = ACTIVATION_MASK - (1 << 32)
_MIDDLE: Final = 128  # exponents are judged relative to this, so that they fit 32-bit patterns on either side
_INFINITY: Final = (255 - _MIDDLE) << 23
_SMALLEST: Final = (1 - _MIDDLE) << 23
_MIDDLE_BITS: Final = _MIDDLE << 23


int32 = np.int32
int16 = np.int16
float32 = np.float32


@compiled
def _split_activations(bits: Array, row: int, half: int, parts: Array, exponents: Array, slot: int) -> int:
    """Parts of the 16 activations of a row's half; returns their largest exponent, 0 if all are zero."""
    largest = 0
    for k in range(16):
        value = bits[row, half, k]
        exponent = (value >> 23) & 0xFF
        largest = max(largest, exponent)
        if exponent == 0:
            value = int32(0)
            exponent = ABSENT_EXPONENT
        high = int32(value & _HIGH).view(np.float32)
        parts[0, slot, k] = high * float32(ACTIVATION_STRETCH)
        parts[1, slot, k] = (int32(value & _ALL).view(np.float32) - high) * float32(ACTIVATION_STRETCH)
        exponents[slot, k] = exponent
    return largest


@compiled
def _largest_sums(weights: Array, half: int, activations: Array, slot: int, largest: Array) -> None:
    """Largest sum of exponents of either group, for every column."""
    for n in range(LANES):
        first = int16(weights[half, n] + activations[slot, 0])
        second = int16(weights[half, 8 * LANES + n] + activations[slot, 8])
        for k in range(1, 8):
            first = max(first, int16(weights[half, k * LANES + n] + activations[slot, k]))
            second = max(second, int16(weights[half, (k + 8) * LANES + n] + activations[slot, k + 8]))
        largest[slot, n] = first
        largest[slot, LANES + n] = second


@compiled
def _shift_half_up(doubled: np.int32, shift: np.int32) -> np.int32:
    """``doubled / 2`` shifted right, rounded half up; shifts of 31 and more give 0."""
    return int32(int32(int32(doubled >> (min(shift, int32(31)) & 31)) + 1) >> 1)


@compiled
def _with_sign(magnitude: np.int32, sign: np.int32) -> np.int32:
    """``magnitude``, negated where ``sign`` is -1; its own inverse."""
    return int32(int32(magnitude ^ sign) - sign)


@compiled
def _significand(bits: np.int32, exponent: np.int32) -> np.int32:
    """24-bit significand of a bit pattern."""
    return int32(int32(bits & int32(0x7FFFFF)) | int32(0x800000)) if exponent > 0 else int32(0)


@compiled
def _finished(bits: np.int32, places: np.int32, total: np.int32) -> np.int32:
    """``bits`` moved by ``places`` powers of two, under- and overflow settled, with the sign of ``total``."""
    moved = min(int32(bits + int32(int32(places - _MIDDLE) << 23)), int32(_INFINITY))
    result = int32(int32(moved + int32(_MIDDLE_BITS)) | int32(total & int32(_SIGN)))
    return result if moved >= int32(_SMALLEST) and total != 0 else int32(0)


@compiled
def _group_exponent(largest: Array, slot: int, n: int, lowered: np.int32) -> np.int32:
    """Exponent of a group whose largest sum of exponents is ``largest[slot, n]``."""
    exponent = int32(largest[slot, n] - lowered)
    return exponent if exponent > 0 else int32(_NOWHERE)


@compiled
def _group_sum(
    weights: Array,
    part_a: int,
    half: int,
    activations: Array,
    part_b: int,
    slot: int,
    first: int,
    n: int,
    exponent: np.int32,
) -> np.int32:
    """Integer sum of eight products, of operands ``first`` and on (see ``device.matrix_unit.exact``)."""
    start = int32(int32(exponent << 23) + int32(ANCHOR_BITS))
    total = int32(start).view(np.float32)
    for k in range(8):
        total += weights[part_a, half, (first + k) * LANES + n] * activations[part_b, slot, first + k]
    return int32(float32(total).view(np.int32) - start)


@compiled
def _step_32(
    weights: Array,
    half: int,
    activations: Array,
    slot: int,
    largest: Array,
    phase: int,
    minus_one: int,
    dst: Array,
    row: int,
) -> None:
    """One step into a row of a 32-bit Dst; ``minus_one`` is the sum whose normalization goes wrong."""
    low_a = phase & 1
    low_b = phase >> 1
    lowered = int32(_BIAS + 5 * low_a + 7 * low_b)
    for n in range(LANES):
        exponent_0 = _group_exponent(largest, slot, n, lowered)
        exponent_1 = _group_exponent(largest, slot, LANES + n, lowered)
        group_0 = _group_sum(weights, low_a, half, activations, low_b, slot, 0, n, exponent_0)
        group_1 = _group_sum(weights, low_a, half, activations, low_b, slot, 8, n, exponent_1)
        old = dst[row, n]
        old_exponent = int32(int32(old >> 23) & int32(0xFF))
        exponent = max(max(exponent_0, exponent_1), old_exponent)
        doubled = int32(_significand(old, old_exponent) << 1)
        total = _with_sign(_shift_half_up(doubled, int32(exponent - old_exponent)), int32(old >> 31))
        total = int32(total + _shift_half_up(int32(group_0 << 14), int32(exponent - exponent_0)))
        total = int32(total + _shift_half_up(int32(group_1 << 14), int32(exponent - exponent_1)))
        magnitude = _with_sign(total, int32(total >> 31))
        doubled = int32(int32(magnitude << 1) + min(int32(magnitude >> 24), int32(1)))
        places = int32(exponent - 124) if total == minus_one else int32(exponent - 151)
        dst[row, n] = _finished(float32(doubled).view(np.int32), places, total)


@compiled
def _step_16(
    weights: Array, half: int, activations: Array, slot: int, largest: Array, phase: int, dst: Array, row: int
) -> None:
    """One step into a row of a 16-bit Dst."""
    low_a = phase & 1
    low_b = phase >> 1
    lowered = int32(_BIAS + 5 * low_a + 7 * low_b)
    for n in range(LANES):
        exponent_0 = _group_exponent(largest, slot, n, lowered)
        exponent_1 = _group_exponent(largest, slot, LANES + n, lowered)
        group_0 = _group_sum(weights, low_a, half, activations, low_b, slot, 0, n, exponent_0)
        group_1 = _group_sum(weights, low_a, half, activations, low_b, slot, 8, n, exponent_1)
        old = dst[row, n]
        old_exponent = int32(int32(old >> 23) & int32(0xFF))
        exponent = max(max(exponent_0, exponent_1), old_exponent)
        doubled = int32(_significand(old, old_exponent) >> 12)
        total = _with_sign(_shift_half_up(doubled, int32(exponent - old_exponent)), int32(old >> 31))
        aligned_0 = _shift_half_up(int32(group_0 << 14), int32(exponent - exponent_0))
        aligned_1 = _shift_half_up(int32(group_1 << 14), int32(exponent - exponent_1))
        total = int32(total + int32(int32(aligned_0 + int32(1 << 12)) >> 13))
        total = int32(total + int32(int32(aligned_1 + int32(1 << 12)) >> 13))
        bits = float32(_with_sign(total, int32(total >> 31))).view(np.int32)
        bits = int32(int32(bits + int32(0x8000)) & int32(-0x10000))
        dst[row, n] = _finished(bits, int32(exponent - 137), total)


@compiled
def multiply_column_block(
    weights: Array,
    weight_exponents: Array,
    activations: Array,
    dst: Array,
    tile_starts: Array,
    fidelity_phases: int,
    fp32_dest: bool,
    minus_one: int,
    max_activation_exponent: int,
) -> bool:
    """All steps of a block for ``LANES`` columns, into ``dst``.

    Args:
        weights: float32 [2, halves, 16 * LANES], high and low parts (``weight_parts``).
        weight_exponents: int16 [halves, 16 * LANES].
        activations: int32 bit patterns [rows, halves, 16].
        dst: int32 bit patterns [rows, LANES], without denormals, negative zeros and NaNs.
        tile_starts: First half of each K tile, and the number of halves at the end.
        fidelity_phases: Fidelity phases, 1 to 4.
        fp32_dest: Width of Dst.
        minus_one: The sum that is normalized wrongly: -1, or 0 for none.
        max_activation_exponent: Largest exponent field that may be computed in float32.

    Returns:
        False if an activation was out of range: ``dst`` is then worthless.
    """
    parts = np.empty((2, 2, 16), np.float32)
    exponents = np.empty((2, 16), np.int16)
    largest = np.empty((2, 2 * LANES), np.int32)
    present = np.zeros(2, np.int32)
    for first_row in range(0, len(dst), CHUNK_ROWS):
        for tile in range(len(tile_starts) - 1):
            start = tile_starts[tile]
            count = tile_starts[tile + 1] - start
            for row in range(first_row, min(first_row + CHUNK_ROWS, len(dst))):
                for slot in range(count):
                    present[slot] = _split_activations(activations, row, start + slot, parts, exponents, slot)
                    if present[slot] > max_activation_exponent:
                        return False
                    if present[slot]:
                        _largest_sums(weight_exponents, start + slot, exponents, slot, largest)
                for phase in range(fidelity_phases):
                    for slot in range(count):
                        if present[slot] and fp32_dest:
                            _step_32(weights, start + slot, parts, slot, largest, phase, minus_one, dst, row)
                        elif present[slot]:
                            _step_16(weights, start + slot, parts, slot, largest, phase, dst, row)
    return True
