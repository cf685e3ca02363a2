"""The matrix unit in numpy: the bits of ``device.matrix_unit.exact``, for many rows and columns at once.

A step is some 70 array operations over [rows, cols]; rows whose 16 activations are all zero are left out, which
changes nothing (a product with a zero never counts, and Dst holds no negative zero).
"""

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from device.matrix_unit.exact import (
    ANCHOR_BITS,
    GROUP_DEPTH,
    STEP_DEPTH,
    MatrixUnitMode,
    Parts,
    Phase,
    accumulate_step,
    activation_parts,
    in_range,
    largest_exponent,
    phase_of,
    weight_parts,
)

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

EXPONENT_BIAS: Final = 127
CHUNK_ELEMENTS: Final = 1 << 16  # of Dst handled at a time: temporaries stay in the cache, threads seldom take turns
MIN_CHUNK_ROWS: Final = 8
DENSE_SHARE: Final = 0.9  # with more rows than this that count, all are computed


class _Half(NamedTuple):
    """One 16-deep half of a K tile, for the rows that count."""

    rows: Array | None  # Indices of those rows, or None for all
    activations: Parts  # Parts [rows, 16]
    weights: Parts  # Parts [16, cols]
    largest: tuple[Array, Array]  # int32 [rows, cols] for each group: the largest sum of exponents


def multiply_rows(
    activations: Array, weights: Array, dst: Array, half_counts: tuple[int, ...], mode: MatrixUnitMode
) -> Array:
    """Dst after all steps of a block, uint32 [rows, cols].

    ``activations`` are uint32 [rows, halves * 16], ``weights`` uint32 [halves * 16, cols]. ``dst`` has no denormals,
    negative zeros and NaNs; ``half_counts`` are the halves of each K tile, 1 or 2.
    """
    result = dst.copy()
    rows, cols = dst.shape
    step = max(CHUNK_ELEMENTS // max(cols, 1), MIN_CHUNK_ROWS)
    for start in range(0, rows, step):
        chunk = slice(start, start + step)
        first = 0
        for count in half_counts:
            depth = slice(first * STEP_DEPTH, (first + count) * STEP_DEPTH)
            _multiply_tile(activations[chunk, depth], weights[depth], result[chunk], mode)
            first += count
    return result


def _multiply_tile(activations: Array, weights: Array, dst: Array, mode: MatrixUnitMode) -> None:
    """All fidelity phases of one K tile, into ``dst``: [rows, 16 or 32] and [16 or 32, cols]."""
    depths = [slice(start, start + STEP_DEPTH) for start in range(0, weights.shape[0], STEP_DEPTH)]
    if not in_range(largest_exponent(weights), largest_exponent(activations)):
        for number in range(mode.fidelity_phases):
            for depth in depths:
                dst[...] = accumulate_step(
                    activations[:, depth],
                    weights[depth],
                    dst,
                    phase=phase_of(number),
                    fp32_dest=mode.fp32_dest,
                    minus_one_quirk=mode.minus_one_quirk,
                )
        return
    halves = [half for depth in depths if (half := _half(activations[:, depth], weights[depth])) is not None]
    signed = dst.view(np.int32)
    for number in range(mode.fidelity_phases):
        for half in halves:
            _step(half, signed, phase_of(number), mode)


def _half(activations: Array, weights: Array) -> _Half | None:
    """The values that the fidelity phases of a half share; None if no row counts."""
    present = ((activations & np.uint32(0x7F800000)) != 0).any(axis=1)
    share = present.mean() if present.size else 0.0
    if share == 0.0:
        return None
    rows = None if share > DENSE_SHARE else np.flatnonzero(present)
    parts_b = activation_parts(activations if rows is None else activations[rows])
    parts_a = weight_parts(weights)
    first, second = (
        _largest_sums(parts_b.exponents[:, group], parts_a.exponents[group])
        for group in (slice(0, GROUP_DEPTH), slice(GROUP_DEPTH, STEP_DEPTH))
    )
    return _Half(rows, parts_b, parts_a, (first, second))


def _largest_sums(activation_exponents: Array, weight_exponents: Array) -> Array:
    """int32 [rows, cols]: the largest of eight sums of exponents."""
    largest: Array = activation_exponents[:, 0, None] + weight_exponents[0]
    sums = np.empty_like(largest)
    for k in range(1, GROUP_DEPTH):
        np.add(activation_exponents[:, k, None], weight_exponents[k], out=sums)
        np.maximum(largest, sums, out=largest)
    return largest.astype(np.int32)


def _step(half: _Half, dst: Array, phase: Phase, mode: MatrixUnitMode) -> None:
    """One step into ``dst``, int32 bit patterns [rows, cols]."""
    weights = half.weights.low if phase.low_weight else half.weights.high
    activations = half.activations.low if phase.low_activation else half.activations.high
    old = dst if half.rows is None else dst[half.rows]
    lowered = EXPONENT_BIAS + phase.lowered_by
    exponent_0, total_0 = _group(activations[:, :GROUP_DEPTH], weights[:GROUP_DEPTH], half.largest[0], lowered)
    exponent_1, total_1 = _group(activations[:, GROUP_DEPTH:], weights[GROUP_DEPTH:], half.largest[1], lowered)
    old_exponent = (old >> 23) & 0xFF
    exponent = np.maximum(np.maximum(exponent_0, exponent_1), old_exponent)
    total = _aligned_dst(old, old_exponent, exponent, mode.fp32_dest)
    total += _aligned_group(total_0, exponent, exponent_0, mode.fp32_dest)
    total += _aligned_group(total_1, exponent, exponent_1, mode.fp32_dest)
    new = _normalized_32(total, exponent, mode.minus_one_quirk) if mode.fp32_dest else _normalized_16(total, exponent)
    if half.rows is None:
        dst[...] = new
    else:
        dst[half.rows] = new


def _group(activations: Array, weights: Array, largest: Array, lowered: int) -> tuple[Array, Array]:
    """Exponent and integer sum of eight products (see ``device.matrix_unit.exact``), both int32 [rows, cols]."""
    exponent = largest - np.int32(lowered)
    np.maximum(exponent, 0, out=exponent)
    start = exponent << 23
    start += ANCHOR_BITS
    accumulator = start.view(np.float32).copy()
    product = np.empty_like(accumulator)
    for k in range(GROUP_DEPTH):
        np.multiply(activations[:, k, None], weights[k], out=product)
        accumulator += product
    total = accumulator.view(np.int32)
    total -= start
    total *= exponent > 0
    return exponent, total


def _shift_half_up(doubled: Array, shift: Array) -> Array:
    """``doubled / 2`` shifted right, rounded half up; shifts of 31 and more give 0."""
    np.minimum(shift, 31, out=shift)
    np.right_shift(doubled, shift, out=doubled)
    doubled += 1
    doubled >>= 1
    return doubled


def _aligned_group(total: Array, exponent: Array, own_exponent: Array, fp32_dest: bool) -> Array:
    """A group's sum in units of Dst's last place; for a 16-bit Dst in 2**-13 of these units, rounded half up twice."""
    total <<= 14
    shift = exponent - own_exponent
    if fp32_dest:
        return _shift_half_up(total, shift)
    np.minimum(shift, 31, out=shift)
    np.right_shift(total, shift, out=total)
    total += 1 + (1 << 13)  # both halves at once: (total + 1 >> 1) + (1 << 12) >> 13
    total >>= 14
    return total


def _aligned_dst(old: Array, own_exponent: Array, exponent: Array, fp32_dest: bool) -> Array:
    """The old Dst in the same units, rounded half up on the magnitude; a 16-bit Dst holds eight bits, so once."""
    present = own_exponent > 0
    significand = ((old & 0x7FFFFF) | 0x800000) * present
    doubled = significand << 1 if fp32_dest else significand >> 12
    magnitude = _shift_half_up(doubled, exponent - own_exponent)
    return np.where(old < 0, -magnitude, magnitude)


def _normalized_32(total: Array, exponent: Array, minus_one_quirk: bool) -> Array:
    """A sum as a bit pattern of 24 significant bits.

    The conversion to float32 rounds to nearest even. A one appended to sums that lose bits makes ties go up, and moves
    nothing else: twice the sum has room for it.
    """
    magnitude = np.abs(total)
    doubled = magnitude << 1
    doubled += magnitude > 0xFFFFFF
    bits = doubled.astype(np.float32).view(np.int32)
    places = exponent - 151
    if minus_one_quirk:
        places += np.where(total == -1, 27, 0).astype(np.int32)
    return _finished(bits, places, total)


def _normalized_16(total: Array, exponent: Array) -> Array:
    """A sum (in units of 2**13 last places) as a bit pattern of 8 significant bits, half up on the magnitude."""
    bits = np.abs(total).astype(np.float32).view(np.int32)
    bits += 0x8000
    bits &= -0x10000
    return _finished(bits, exponent - 137, total)


def _finished(bits: Array, places: Array, total: Array) -> Array:
    """``bits`` moved by ``places`` powers of two, under- and overflow settled, with the sign of ``total``."""
    exponent = (bits >> 23) + places
    result = (bits & 0x7FFFFF) | (exponent << 23)
    result = np.where(exponent >= 255, np.int32(255 << 23), result)
    result |= total & np.int32(-(1 << 31))
    result *= (exponent > 0) & (total != 0)
    return result
