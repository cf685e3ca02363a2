"""The matrix unit compiled by numba: the bits of ``device.matrix_unit.exact``, an order of magnitude faster than numpy.

Loaded by ``device.matrix_unit.blocks`` where the work is worth it (``device.host.compiling``). Without numba the
functions stay plain Python: right, and far too slow.

The layout is what makes it fast. Weights lie in blocks of ``LANES`` columns, [halves, 16 * LANES], so that every load
of an inner loop over columns has a constant distance from the first and the loop becomes vector instructions; all
integers are forced to 32 bits for the same reason. A block's tile of weights stays in the first-level cache while
``CHUNK_ROWS`` rows run over it. One step is described in ``device.matrix_unit.exact``.

*Narrow* numbers stay away from both ends of the exponent, which ``device.matrix_unit.blocks`` finds out: no group is
too small to count, and no result over- or underflows, so that nothing has to be clamped.
"""

from typing import Any, Final, TypeAlias

import numpy as np

from device.host.compiling import called_with, compiled, readonly
from device.matrix_unit.exact import (
    ABSENT_EXPONENT,
    ACTIVATION_HIGH_MASK,
    ACTIVATION_MASK,
    ACTIVATION_STRETCH,
    ANCHOR_BITS,
    WEIGHT_HIGH_MASK,
    WEIGHT_MASK,
    WEIGHT_SCALE_EXPONENT,
)

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Operands: TypeAlias = tuple[Array, Array, Array, Array]  # parts of both, which rows have any, largest sums
Step: TypeAlias = tuple[int, int, int, int]  # half of the tile, phase, first row and the one behind the last

LANES: Final = 64  # columns of a block
_BIAS: Final = 127
_NOWHERE: Final = -64  # exponent of a group that counts for nothing: aligning it shifts every bit out
_SIGN: Final = -(1 << 31)
_MIDDLE: Final = 128  # exponents are judged relative to this, so that they fit 32-bit patterns on either side
_INFINITY: Final = (255 - _MIDDLE) << 23
_SMALLEST: Final = (1 - _MIDDLE) << 23
_MIDDLE_BITS: Final = _MIDDLE << 23
_MAGIC: Final = 1.5 * 2.0**23  # which rounds what is added to an integer, and holds it in its lowest bits
_MAGIC_BITS: Final = 0x4B400000
# 2**(137 - exponent) takes a 16-bit Dst to the units it is added in; stretched by 1 + 2**-13, so that halves go up.
_UNITS: Final = (264 << 23 | 1 << 10) - (1 << 32)
CHUNK_ROWS: Final = 32
_HIGH: Final = ACTIVATION_HIGH_MASK - (1 << 32)  # masks as signed numbers
_ALL: Final = ACTIVATION_MASK - (1 << 32)
_WEIGHT_HIGH: Final = WEIGHT_HIGH_MASK - (1 << 32)
_WEIGHT_ALL: Final = WEIGHT_MASK - (1 << 32)
_WEIGHT_SCALE: Final = 2.0**WEIGHT_SCALE_EXPONENT

_CALL: Final = (
    f"({readonly('int32', 3)}, {readonly('int32', 2)}, int32[:,:,::1], UniTuple(int64, 2), UniTuple(int64, 2), "
    "int64[::1], int64, int32, {}, {})"
)

int32 = np.int32
uint32 = np.uint32
int16 = np.int16
float32 = np.float32


@compiled
def _split_activations(
    bits: Array, rows: tuple[int, int], start: int, count: int, split: Array, exponents: Array, present: Array
) -> None:
    """Parts of the activations of a K tile, ``count`` halves from ``start``, and which halves have any."""
    for row in range(rows[1] - rows[0]):
        for slot in range(count):
            of_half = int32(0)
            for k in range(16):
                value = bits[rows[0] + row, start + slot, k]
                exponent = int32(int32(value >> 23) & int32(0xFF))
                of_half = max(of_half, exponent)
                value = value if exponent else int32(0)
                high = int32(value & int32(_HIGH)).view(np.float32)
                low = int32(value & int32(_ALL)).view(np.float32) - high
                split[0, slot, row, k] = high * float32(ACTIVATION_STRETCH)
                split[1, slot, row, k] = low * float32(ACTIVATION_STRETCH)
                exponents[slot, row, k] = exponent if exponent else int32(ABSENT_EXPONENT)
            present[slot, row] = of_half


@compiled
def _split_weights(bits: Array, start: int, count: int, block: int, split: Array, exponents: Array) -> None:
    """Parts of the weights of a K tile for a block of columns, zeros where there are no more."""
    width = min(LANES, bits.shape[1] - block * LANES)
    for slot in range(count):
        for k in range(16):
            row = 16 * (start + slot) + k
            for n in range(width):
                value = bits[row, np.uintp(block * LANES + n)]  # unsigned: nothing counts from behind
                exponent = int32(int32(value >> 23) & int32(0xFF))
                value = value if exponent else int32(0)
                high = int32(value & int32(_WEIGHT_HIGH)).view(np.float32)
                low = int32(value & int32(_WEIGHT_ALL)).view(np.float32) - high
                split[0, slot, k * LANES + n] = high * float32(_WEIGHT_SCALE)
                split[1, slot, k * LANES + n] = low * float32(_WEIGHT_SCALE)
                exponents[slot, k * LANES + n] = exponent if exponent else int32(ABSENT_EXPONENT)
            for n in range(width, LANES):
                split[0, slot, k * LANES + n] = float32(0)
                split[1, slot, k * LANES + n] = float32(0)
                exponents[slot, k * LANES + n] = int16(ABSENT_EXPONENT)


@compiled
def _largest_sums(
    weights: Array, activations: Array, present: Array, slot: int, first: int, last: int, largest: Array
) -> None:
    """Largest sum of exponents of either group, for every column and some rows."""
    for row in range(first, last):
        if present[slot, row]:
            for n in range(LANES):
                sum_0 = int16(weights[slot, n] + activations[slot, row, 0])
                sum_1 = int16(weights[slot, 8 * LANES + n] + activations[slot, row, 8])
                for k in range(1, 8):
                    sum_0 = max(sum_0, int16(weights[slot, k * LANES + n] + activations[slot, row, k]))
                    sum_1 = max(sum_1, int16(weights[slot, (k + 8) * LANES + n] + activations[slot, row, k + 8]))
                largest[slot, row - first, n] = sum_0
                largest[slot, row - first, LANES + n] = sum_1


@compiled
def _shifted(value: np.int32, shift: np.int32) -> np.int32:
    """``value`` shifted right; by 31 where that is less, which processors do by themselves."""
    return int32(value >> (int32(min(uint32(shift), uint32(31))) & 31))


@compiled
def _shift_half_up(doubled: np.int32, shift: np.int32) -> np.int32:
    """``doubled / 2`` shifted right, rounded half up; shifts of 31 and more give 0."""
    return int32(int32(_shifted(doubled, shift) + 1) >> 1)


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
def _of_what_counts(exponent: np.int32) -> np.int32:
    """Exponent of a group; `_NOWHERE` for a group of exponent 0, which counts for nothing."""
    return exponent if exponent > 0 else int32(_NOWHERE)


@compiled
def _group_sum(
    weights: Array,
    part_a: int,
    activations: Array,
    part_b: int,
    slot: int,
    row: int,
    first: int,
    n: int,
    exponent: np.int32,
) -> np.int32:
    """Integer sum of eight products, of operands ``first`` and on (see ``device.matrix_unit.exact``).

    Two sums of four, which add without rounding, so that the second does not wait for the first.
    """
    start = int32(int32(exponent << 23) + int32(ANCHOR_BITS))
    first_four = int32(start).view(np.float32)
    last_four = first_four
    for k in range(first, first + 4):
        first_four += weights[part_a, slot, k * LANES + n] * activations[part_b, slot, row, k]
        last_four += weights[part_a, slot, (k + 4) * LANES + n] * activations[part_b, slot, row, k + 4]
    return int32(int32(float32(first_four).view(np.int32) - start) + int32(float32(last_four).view(np.int32) - start))


@compiled
def _step(
    operands: Operands,
    step: Step,
    minus_one: int,
    wide: bool | None,
    narrow: bool | None,
    dst: Array,
    place: int,
    block: int,
) -> None:
    """One step into some rows of Dst; ``minus_one`` is the sum whose normalization goes wrong in 32 bits.

    Narrow numbers in a 16-bit Dst are rounded in floating point. A group is rounded twice, to 2**-13 units and to
    units: halves up, and what is 2**-14 below a half goes up, too.
    """
    weights, activations, present, largest = operands
    slot, phase, first, last = step
    low_a = phase & 1
    low_b = phase >> 1
    lowered = int32(_BIAS + 5 * low_a + 7 * low_b)
    for row in range(first, last):
        if present[slot, row]:
            for n in range(LANES):
                exponent_0 = int32(largest[slot, row - first, n] - lowered)
                exponent_1 = int32(largest[slot, row - first, LANES + n] - lowered)
                if narrow is None:
                    exponent_0, exponent_1 = _of_what_counts(exponent_0), _of_what_counts(exponent_1)
                group_0 = _group_sum(weights, low_a, activations, low_b, slot, row, 0, n, exponent_0)
                group_1 = _group_sum(weights, low_a, activations, low_b, slot, row, 8, n, exponent_1)
                old = dst[place + row, block, n]
                old_exponent = int32(int32(old >> 23) & int32(0xFF))
                exponent = max(max(exponent_0, exponent_1), old_exponent)
                shift_0, shift_1 = int32(exponent - exponent_0), int32(exponent - exponent_1)
                if wide is None and narrow is not None:
                    power = int32(exponent << 23)
                    units = int32(old).view(np.float32) * int32(_UNITS - power).view(np.float32) + float32(_MAGIC)
                    total = int32(float32(units).view(np.int32) - int32(_MAGIC_BITS))
                    aligned_0 = _shifted(int32(group_0 << 14), shift_0)
                    aligned_1 = _shifted(int32(group_1 << 14), shift_1)
                    total = int32(total + int32(int32(aligned_0 + int32((1 << 13) + 1)) >> 14))
                    total = int32(total + int32(int32(aligned_1 + int32((1 << 13) + 1)) >> 14))
                    bits = int32(int32(float32(total).view(np.int32) + int32(0x8000)) & int32(-0x10000))
                    dst[place + row, block, n] = int32(bits + int32(power - int32(137 << 23))) if total else int32(0)
                else:
                    significand = _significand(old, old_exponent)
                    doubled = int32(significand >> 12) if wide is None else int32(significand << 1)
                    total = _with_sign(_shift_half_up(doubled, int32(exponent - old_exponent)), int32(old >> 31))
                    aligned_0 = _shift_half_up(int32(group_0 << 14), shift_0)
                    aligned_1 = _shift_half_up(int32(group_1 << 14), shift_1)
                    if wide is None:
                        total = int32(total + int32(int32(aligned_0 + int32(1 << 12)) >> 13))
                        total = int32(total + int32(int32(aligned_1 + int32(1 << 12)) >> 13))
                        bits = float32(_with_sign(total, int32(total >> 31))).view(np.int32)
                        bits = int32(int32(bits + int32(0x8000)) & int32(-0x10000))
                        places = int32(exponent - 137)
                    else:
                        total = int32(int32(total + aligned_0) + aligned_1)
                        magnitude = _with_sign(total, int32(total >> 31))
                        doubled = int32(int32(magnitude << 1) + min(int32(magnitude >> 24), int32(1)))
                        places = int32(exponent - 124) if total == minus_one else int32(exponent - 151)
                        bits = float32(doubled).view(np.int32)
                    if narrow is None:
                        dst[place + row, block, n] = _finished(bits, places, total)
                    else:
                        signed = int32(int32(bits + int32(places << 23)) | int32(total & int32(_SIGN)))
                        dst[place + row, block, n] = signed if total else int32(0)


@called_with(*(_CALL.format(wide, narrow) for wide in ("boolean", "none") for narrow in ("none", "boolean")))
@compiled
def multiply(
    activations: Array,
    weights: Array,
    dst: Array,
    rows: tuple[int, int],
    blocks: tuple[int, int],
    tile_starts: Array,
    fidelity_phases: int,
    minus_one: int,
    wide: bool | None,
    narrow: bool | None,
) -> None:
    """All steps for a rectangle of ``dst``, in place.

    ``wide`` and ``narrow`` are True or None, which numba knows at compile time, so that unused branches take no time.

    Args:
        activations: int32 bit patterns [rows, halves, 16].
        weights: int32 bit patterns [halves * 16, cols], exponents at most ``MAX_WEIGHT_EXPONENT``.
        dst: int32 bit patterns [rows, blocks, LANES], as `begin` leaves it.
        rows: First row of the rectangle and the one after its last.
        blocks: First block of columns and the one after its last.
        tile_starts: First half of each K tile, and the number of halves at the end.
        fidelity_phases: 1 to 4.
        minus_one: The sum that is normalized wrongly: -1, or 0 for none.
        wide: Whether Dst has 32 bits.
        narrow: Whether all numbers are narrow.
    """
    height, place = rows[1] - rows[0], rows[0]
    parts_b = np.empty((2, 2, height, 16), np.float32)
    exponents_b = np.empty((2, height, 16), np.int16)
    present = np.empty((2, height), np.int32)
    parts_a = np.empty((2, 2, 16 * LANES), np.float32)
    exponents_a = np.empty((2, 16 * LANES), np.int16)
    largest = np.empty((2, CHUNK_ROWS, 2 * LANES), np.int16)
    operands = parts_a, parts_b, present, largest
    for tile in range(len(tile_starts) - 1):
        start = tile_starts[tile]
        count = tile_starts[tile + 1] - start
        _split_activations(activations, rows, start, count, parts_b, exponents_b, present)
        for block in range(blocks[0], blocks[1]):
            _split_weights(weights, start, count, block, parts_a, exponents_a)
            for first in range(0, height, CHUNK_ROWS):
                last = min(first + CHUNK_ROWS, height)
                for slot in range(count):
                    _largest_sums(exponents_a, exponents_b, present, slot, first, last, largest)
                for phase in range(fidelity_phases):
                    for slot in range(count):
                        _step(operands, (slot, phase, first, last), minus_one, wide, narrow, dst, place, block)
