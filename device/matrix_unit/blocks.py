"""Products of whole blocks through the matrix unit, bit for bit, in the hardware's order.

Operations call this module. Three engines give the same bits: "truth" (`exact`, step by step), "numpy"
(``device.matrix_unit.vectorized``) and "compiled" (``device.matrix_unit.compiled``, if numba can be imported).
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import inf
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from device.host.compiling import loops_of, worth_loading
from device.host.threads import free_threads, on_all_cores
from device.matrix_unit.exact import (
    EXPONENT_BIAS,
    STEP_DEPTH,
    MatrixUnitMode,
    accumulate_step,
    in_range,
    phase_of,
)
from device.matrix_unit.packer import flushed, signed, without_nan
from device.matrix_unit.vectorized import multiply_rows
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


class _Unit(NamedTuple):
    """A rectangle of the result that one call of the compiled kernel computes."""

    rows: range
    blocks: range


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
            multiply = _multiply_truth if engine == "truth" else multiply_rows
            result = multiply(op.activations, op.weights, _begun(op), op.half_counts, mode)
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


def _multiply_truth(
    activations: Array, weights: Array, dst: Array, half_counts: tuple[int, ...], mode: MatrixUnitMode
) -> Array:
    """The product step by step; arguments as of ``multiply_rows``."""
    first = 0
    for count in half_counts:
        for number in range(mode.fidelity_phases):
            for half in range(first, first + count):
                depth = slice(half * STEP_DEPTH, (half + 1) * STEP_DEPTH)
                dst = accumulate_step(
                    activations[:, depth],
                    weights[depth],
                    dst,
                    phase=phase_of(number),
                    fp32_dest=mode.fp32_dest,
                    minus_one_quirk=mode.minus_one_quirk,
                )
        first += count
    return dst


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

    def run(unit: _Unit) -> None:
        compiled.multiply(
            activations,
            weights,
            in_blocks,
            (unit.rows.start, unit.rows.stop),
            (unit.blocks.start, unit.blocks.stop),
            tile_starts,
            op.mode.fidelity_phases,
            np.int32(-1 if op.mode.minus_one_quirk else 0),
            op.mode.fp32_dest or None,
            narrow or None,
        )

    workers = (threads or free_threads()) if op.multiply_adds >= WORTH_THREADS else 1
    on_all_cores(run, _units(rows, blocks) if workers > 1 else [_Unit(range(rows), range(blocks))], workers)
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


def _units(rows: int, blocks: int) -> Iterator[_Unit]:
    """Rectangles of a result, in an order that changes no bit."""
    for row in range(0, rows, UNIT_ROWS):
        for block in range(0, blocks, UNIT_BLOCKS):
            yield _Unit(range(row, min(row + UNIT_ROWS, rows)), range(block, min(block + UNIT_BLOCKS, blocks)))
