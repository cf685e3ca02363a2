"""Products of whole blocks through the matrix unit, bit for bit, in the hardware's order.

Operations call this module. Three engines give the same bits: "truth" (`exact`, step by step), "numpy" (here, for many
rows and columns at once) and "compiled" (``device.matrix_unit.compiled``, if numba can be imported).
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise, product
from math import inf
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from device.host.compiling import loops_of, worth_loading
from device.host.threads import free_threads, on_all_cores
from device.matrix_unit.exact import (
    ANCHOR_BITS,
    EXPONENT_BIAS,
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
from device.matrix_unit.packer import flushed, signed, without_nan
from device.numbers.formats import div_up

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Engine: TypeAlias = Literal["auto", "compiled", "numpy", "truth"]

STEP_SECONDS: Final = 160e-6  # that a step of numpy takes by itself, as measured
MULTIPLY_ADD_SECONDS: Final = 2.5e-9  # and each multiply-add of it
WORTH_THREADS: Final = 16_000_000  # multiply-adds from which a second core helps
UNIT_ROWS: Final = 512  # rows and blocks of columns one thread works on at a time
UNIT_BLOCKS: Final = 4
LARGEST_LOWERING: Final = phase_of(3).lowered_by
CANCELLED: Final = 23  # places that a sum may lose
GROWTH: Final = 12  # places that Dst may gain, but for one with each doubling of the steps
SMALLEST_NARROW: Final = 16  # exponent fields of numbers that are taken for narrow
LARGEST_NARROW: Final = 249
CHUNK_ELEMENTS: Final = 1 << 16  # of Dst that numpy handles at a time: temporaries stay in the cache
MIN_CHUNK_ROWS: Final = 8
DENSE_SHARE: Final = 0.9  # with more rows than this that count, all are computed
LOW_HALF: Final = np.uint32(0xFFFF)  # bits that a 16-bit Dst lacks


class _Work(NamedTuple):
    """A validated block product."""

    activations: Array  # uint32 [rows, halves * 16]
    weights: Array  # uint32 [halves * 16, cols]
    dst: Array | None  # uint32 [rows, cols]; None for zeros
    half_counts: tuple[int, ...]  # Halves of each K tile
    mode: MatrixUnitMode  # Set-up of the unit

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the result."""
        return len(self.activations), self.weights.shape[1]

    @property
    def multiply_adds(self) -> int:
        """In all fidelity phases."""
        rows, depth = self.activations.shape
        return int(rows * depth * self.weights.shape[1] * self.mode.fidelity_phases)

    @property
    def numpy_seconds(self) -> float:
        """The seconds that numpy would take: narrow operands have many short steps."""
        steps = sum(self.half_counts) * self.mode.fidelity_phases
        return steps * STEP_SECONDS + self.multiply_adds * MULTIPLY_ADD_SECONDS


class _Fields(NamedTuple):
    """The smallest exponent field above 0 (255 if there is none) and the largest one of some numbers."""

    smallest: int
    largest: int


def block_product(
    activations: Array,
    weights: Array,
    dst: Array | None = None,
    *,
    mode: MatrixUnitMode,
    half_counts: Sequence[int] | None = None,
    engine: Engine = "auto",
    threads: int | None = None,
) -> Array:
    """``dst + activations @ weights`` as the matrix unit computes it: float32 [rows, cols].

    K runs over tiles of 32, each of two halves of 16. For every tile in order, for every fidelity phase, for every
    half, one step rounds Dst. A half whose activations are zero in all rows changes nothing and may be left out of both
    operands: ``half_counts`` then tells how many halves of each tile are there.

    Args:
        activations: [rows, K], float32 or their bit patterns as uint32, already cut to what Src holds
            (``device.matrix_unit.packer.unpack``); K is 16 times the number of halves.
        weights: [K, cols], cut to what Src holds as well.
        dst: [rows, cols], where Dst starts; None: +0. Denormals read as zero, NaN as infinity.
        half_counts: Halves present in each K tile, 1 or 2 (0 for a tile that is left out); None: all tiles whole.
        engine: Who computes; "auto" takes the compiled engine when it can be loaded and the work is worth it.
        threads: Threads of the compiled engine; None: one for each core.

    Raises:
        ValueError: Shapes, ``half_counts``, the engine or the low bits of a 16-bit ``dst`` do not fit.
        ImportError: The compiled engine was asked for by name and numba cannot be loaded.
    """
    if engine not in get_args(Engine):
        raise ValueError(f"block_product: engine must be one of {', '.join(get_args(Engine))}, not {engine!r}")
    op = _checked(activations, weights, dst, half_counts, mode)
    compiled = _compiled_engine(op, engine)
    with np.errstate(all="ignore"):
        result = None if compiled is None else _multiply_compiled(op, compiled, threads)
        if result is None:  # nobody compiled, or operands too large for float32 arithmetic
            result = _multiply_rows(op, _begun(op), truth=engine == "truth")
    return result.view(np.float32)


def _checked(
    activations: Array, weights: Array, dst: Array | None, half_counts: Sequence[int] | None, mode: MatrixUnitMode
) -> _Work:
    activations, weights = _bits("activations", activations), _bits("weights", weights)
    (rows, depth), (weight_depth, cols) = activations.shape, weights.shape
    if depth != weight_depth or depth % STEP_DEPTH:
        raise ValueError(
            f"block_product: activations [rows, K] and weights [K, cols] must share a K that is a multiple of "
            f"{STEP_DEPTH}, not {list(activations.shape)} and {list(weights.shape)}"
        )
    halves = depth // STEP_DEPTH
    counts = (2,) * (halves // 2) if half_counts is None else tuple(int(count) for count in half_counts)
    if sum(counts) != halves or any(count not in (0, 1, 2) for count in counts):
        raise ValueError(
            f"block_product: half_counts must name 0, 1 or 2 halves for every K tile and {halves} in all "
            f"(K is {depth}), not {list(counts) if half_counts is not None else 'None, which means whole tiles'}"
        )
    start = None if dst is None else _bits("dst", dst)
    if start is not None and start.shape != (rows, cols):
        raise ValueError(f"block_product: dst must be [rows, cols] = {[rows, cols]}, not {list(start.shape)}")
    return _Work(activations, weights, start, tuple(count for count in counts if count), mode)


def _begun(op: _Work) -> Array:
    """Dst without denormals, negative zeros and NaNs, so that a step that adds nothing changes nothing: uint32."""
    if op.dst is None:
        return np.zeros(op.shape, np.uint32)
    if not op.mode.fp32_dest:
        _refuse_low_bits(np.bitwise_or.reduce(op.dst, axis=None))
    return without_nan(flushed(op.dst))


def _refuse_low_bits(seen: np.uint32) -> None:
    """Raises where the bits that occur in a 16-bit Dst are not those of bfloat16 values."""
    if seen & LOW_HALF:
        raise ValueError(
            "block_product: a 16-bit Dst holds bfloat16 values; cut dst first (device.matrix_unit.packer.unpack)"
        )


def _bits(name: str, array: Array) -> Array:
    if array.ndim != 2 or array.dtype not in (np.float32, np.uint32):
        raise ValueError(
            f"block_product: {name} must be a matrix of float32 or uint32 bit patterns, not {array.dtype} "
            f"{list(array.shape)}"
        )
    if not (array.flags.c_contiguous and array.flags.aligned):
        array = np.require(array, requirements=["C", "A"])
    return array.view(np.uint32)


def _compiled_engine(op: _Work, engine: Engine) -> Any:
    """The compiled engine if it is to compute; None if not."""
    if engine not in ("auto", "compiled"):
        return None
    seconds = op.numpy_seconds if engine == "auto" else inf
    multiplies = worth_loading("device.matrix_unit.compiled", seconds)
    if multiplies and worth_loading("device.matrix_unit.packing_loops", seconds):
        return loops_of("device.matrix_unit.compiled")
    if engine == "compiled":
        raise ImportError("block_product: the compiled engine needs numba; install it, or use engine='numpy'")
    return None


def _multiply_compiled(op: _Work, compiled: Any, threads: int | None) -> Array | None:
    """The result, uint32 [rows, cols]; None if an operand is too large for float32 arithmetic."""
    (rows, cols), halves = op.shape, sum(op.half_counts)
    packing = loops_of("device.matrix_unit.packing_loops")
    activations, weights = signed(op.activations), signed(op.weights)
    fields = _Fields(*packing.exponent_range(activations)), _Fields(*packing.exponent_range(weights))
    if not in_range(fields[1].largest, fields[0].largest):
        return None
    blocks = div_up(cols, compiled.LANES)
    dst = _begun_blocks(op, packing, blocks * compiled.LANES)
    began = None if op.dst is None else _Fields(*packing.exponent_range(signed(dst)))
    narrow = _are_narrow(*fields, began, halves * op.mode.fidelity_phases)
    in_blocks = dst.reshape(rows, blocks, compiled.LANES)
    activations = activations.reshape(rows, halves, STEP_DEPTH)
    tile_starts = np.array([0, *accumulate(op.half_counts)])

    def run(unit: tuple[tuple[int, int], ...]) -> None:
        compiled.multiply(
            activations,
            weights,
            in_blocks,
            *unit,
            tile_starts,
            op.mode.fidelity_phases,
            np.int32(-1 if op.mode.minus_one_quirk else 0),
            op.mode.fp32_dest or None,
            narrow or None,
        )

    workers = (threads or free_threads()) if op.multiply_adds >= WORTH_THREADS else 1
    heights, widths = (UNIT_ROWS, UNIT_BLOCKS) if workers > 1 else (max(rows, 1), max(blocks, 1))
    units = product(
        *(
            [(at, min(at + step, end)) for at in range(0, end, step)]
            for end, step in ((rows, heights), (blocks, widths))
        )
    )
    on_all_cores(run, units, workers)
    return np.ascontiguousarray(dst[:, :cols]).view(np.uint32)


def _are_narrow(activations: _Fields, weights: _Fields, dst: _Fields | None, steps: int) -> bool:
    """Whether numbers stay so far from both ends of the exponent that no step under- or overflows.

    A sum loses 23 places at most when its terms cancel each other. A step adds less than 2**6 times the largest
    product, and a sum of minus one unit, which may become 2**27 times as large, is one of terms that are no larger.
    """
    smallest = activations.smallest + weights.smallest - EXPONENT_BIAS - LARGEST_LOWERING
    largest = activations.largest + weights.largest - EXPONENT_BIAS
    if dst is not None:
        smallest, largest = min(smallest, dst.smallest + CANCELLED), max(largest, dst.largest)
    return smallest - CANCELLED >= SMALLEST_NARROW and largest + GROWTH + steps.bit_length() <= LARGEST_NARROW


def _begun_blocks(op: _Work, packing: Any, columns: int) -> Array:
    """`_begun` with zeros behind it: int32 [rows, columns]."""
    if op.dst is None:
        return np.zeros((op.shape[0], columns), np.int32)
    dst = np.empty((op.shape[0], columns), np.int32)
    seen = packing.begin(signed(op.dst), dst)
    if not op.mode.fp32_dest:
        _refuse_low_bits(np.uint32(seen & 0xFFFFFFFF))
    return dst


class _Half(NamedTuple):
    """One 16-deep half of a K tile, for the rows that count."""

    rows: Array | None  # Indices of those rows, or None for all
    activations: Parts  # Parts [rows, 16]
    weights: Parts  # Parts [16, cols]
    largest: tuple[Array, Array]  # int32 [rows, cols] for each group: the largest sum of exponents


def _multiply_rows(op: _Work, dst: Array, *, truth: bool) -> Array:
    """Dst after all steps of a block, in numpy, uint32 [rows, cols]; it is written over.

    A step is some 70 array operations over [rows, cols]; rows whose 16 activations are all zero are left out, which
    changes nothing (a product with a zero never counts, and Dst holds no negative zero). ``truth`` takes
    `accumulate_step` instead, as do operands that are too large for float32 arithmetic.
    """
    rows, cols = dst.shape
    chunk = max(CHUNK_ELEMENTS // max(cols, 1), MIN_CHUNK_ROWS)
    for start, (first, end) in product(range(0, rows, chunk), pairwise(accumulate(op.half_counts, initial=0))):
        some, depth = slice(start, start + chunk), slice(first * STEP_DEPTH, end * STEP_DEPTH)
        _multiply_tile(op.activations[some, depth], op.weights[depth], dst[some], op.mode, truth=truth)
    return dst


def _multiply_tile(activations: Array, weights: Array, dst: Array, mode: MatrixUnitMode, *, truth: bool) -> None:
    """All fidelity phases of one K tile, into ``dst``: [rows, 16 or 32] and [16 or 32, cols]."""
    depths = [slice(start, start + STEP_DEPTH) for start in range(0, weights.shape[0], STEP_DEPTH)]
    phases = [phase_of(number) for number in range(mode.fidelity_phases)]
    if truth or not in_range(largest_exponent(weights), largest_exponent(activations)):
        how = {"fp32_dest": mode.fp32_dest, "minus_one_quirk": mode.minus_one_quirk}
        for phase, depth in product(phases, depths):
            dst[...] = accumulate_step(activations[:, depth], weights[depth], dst, phase=phase, **how)
        return
    halves = [half for depth in depths if (half := _half(activations[:, depth], weights[depth])) is not None]
    for phase, half in product(phases, halves):
        _step(half, dst.view(np.int32), phase, mode)


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
    term = np.empty_like(accumulator)
    for k in range(GROUP_DEPTH):
        np.multiply(activations[:, k, None], weights[k], out=term)
        accumulator += term
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
