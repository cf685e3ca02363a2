"""Products of whole blocks through the matrix unit, bit for bit, in the hardware's order.

This is what operations call. Three engines give the same bits: "truth" (`exact`, step by step), "numpy"
(``device.matrix_unit.vectorized``) and "compiled" (``device.matrix_unit.compiled``, if numba can be imported).
"""

import importlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from math import inf
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from device.host.compiling import worth_loading
from device.host.threads import cores
from device.matrix_unit.exact import (
    MAX_ACTIVATION_EXPONENT,
    MAX_EXPONENT_SUM,
    MAX_WEIGHT_EXPONENT,
    STEP_DEPTH,
    MatrixUnitMode,
    accumulate_step,
    largest_exponent,
    phase_of,
    weight_parts,
)
from device.matrix_unit.packer import flushed, without_nan
from device.matrix_unit.vectorized import multiply_rows

__all__ = ["Engine", "block_product"]

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Engine: TypeAlias = Literal["auto", "compiled", "numpy", "truth"]

STEP_SECONDS: Final = 160e-6  # that a step of numpy takes by itself, as measured
MULTIPLY_ADD_SECONDS: Final = 2.5e-9  # and each multiply-add of it
WORTH_THREADS: Final = 16_000_000  # multiply-adds from which a second core helps
UNIT_ROWS: Final = 1024  # rows one thread works on at a time


class _Work(NamedTuple):
    """A validated block product.

    Attributes:
        activations: uint32 [rows, halves * 16].
        weights: uint32 [halves * 16, cols].
        dst: uint32 [rows, cols], as steps leave it.
        half_counts: Halves of each K tile.
        mode: Set-up of the unit.
    """

    activations: Array
    weights: Array
    dst: Array
    half_counts: tuple[int, ...]
    mode: MatrixUnitMode

    @property
    def multiply_adds(self) -> int:
        """In all fidelity phases."""
        rows, depth = self.activations.shape
        return int(rows * depth * self.weights.shape[1] * self.mode.fidelity_phases)

    @property
    def numpy_seconds(self) -> float:
        """What numpy would take: narrow operands have many steps of a few."""
        steps = sum(self.half_counts) * self.mode.fidelity_phases
        return steps * STEP_SECONDS + self.multiply_adds * MULTIPLY_ADD_SECONDS


class _Unit(NamedTuple):
    """Rows and columns that one call of the compiled kernel computes."""

    rows: slice
    block: int


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
    """``dst + activations @ weights`` as the matrix unit computes it.

    K runs over tiles of 32, each of two halves of 16. For every tile in order, for every fidelity phase, for every
    half, one step rounds Dst. A half whose activations are zero in all rows changes nothing and may be left out of both
    operands: ``half_counts`` then tells how many halves of each tile are there.

    Args:
        activations: [rows, K], float32 or their bit patterns as uint32, already cut to what Src holds
            (``device.matrix_unit.packer.unpack``); K is 16 times the number of halves.
        weights: [K, cols], likewise.
        dst: [rows, cols], where Dst starts; None: +0. Denormals read as zero, NaN as infinity.
        mode: Set-up of the unit.
        half_counts: Halves present in each K tile, 1 or 2 (0 for a tile that is left out); None: all tiles whole.
        engine: Who computes; "auto" takes the compiled engine when it can be loaded and the work is worth it.
        threads: Threads of the compiled engine; None: as many as there are cores.

    Returns:
        float32 [rows, cols], the new Dst.

    Raises:
        ValueError: Shapes, ``half_counts``, the engine or the low bits of a 16-bit ``dst`` do not fit.
        ImportError: The compiled engine was asked for by name and numba cannot be loaded.
    """
    if engine not in get_args(Engine):
        raise ValueError(f"block_product: engine must be one of {', '.join(get_args(Engine))}, not {engine!r}")
    work = _checked(activations, weights, dst, half_counts, mode)
    compiled = _compiled_engine(work, engine)
    with np.errstate(all="ignore"):
        if compiled is not None:
            result = _multiply_compiled(work, compiled, threads or cores())
        elif engine == "truth":
            result = _multiply_truth(work)
        else:
            result = multiply_rows(work.activations, work.weights, work.dst, work.half_counts, work.mode)
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
    start = np.zeros((rows, cols), np.uint32) if dst is None else _bits("dst", dst)
    if start.shape != (rows, cols):
        raise ValueError(f"block_product: dst must be [rows, cols] = {[rows, cols]}, not {list(start.shape)}")
    if dst is not None:
        if not mode.fp32_dest and (start & np.uint32(0xFFFF)).any():
            raise ValueError(
                "block_product: a 16-bit Dst holds bfloat16 values; cut dst first (device.matrix_unit.packer.unpack)"
            )
        start = _as_steps_leave_it(start)
    return _Work(activations, weights, start, tuple(count for count in counts if count), mode)


def _as_steps_leave_it(dst: Array) -> Array:
    """Bit patterns without denormals, negative zeros and NaNs, so that a step that adds nothing changes nothing."""
    return without_nan(flushed(dst))


def _bits(name: str, array: Array) -> Array:
    """Bit patterns, contiguous and aligned."""
    if array.ndim != 2 or array.dtype not in (np.float32, np.uint32):
        raise ValueError(
            f"block_product: {name} must be a matrix of float32 or uint32 bit patterns, not {array.dtype} "
            f"{list(array.shape)}"
        )
    return np.require(array, requirements=["C", "A"]).view(np.uint32)


def _multiply_truth(work: _Work) -> Array:
    dst = work.dst
    first = 0
    for count in work.half_counts:
        for number in range(work.mode.fidelity_phases):
            for half in range(first, first + count):
                depth = slice(half * STEP_DEPTH, (half + 1) * STEP_DEPTH)
                dst = accumulate_step(
                    work.activations[:, depth],
                    work.weights[depth],
                    dst,
                    phase=phase_of(number),
                    fp32_dest=work.mode.fp32_dest,
                    minus_one_quirk=work.mode.minus_one_quirk,
                )
        first += count
    return dst


def _compiled_engine(work: _Work, engine: Engine) -> Any:
    """The compiled twin if it is to compute; None if not."""
    if engine not in ("auto", "compiled"):
        return None
    if worth_loading("device.matrix_unit.compiled", work.numpy_seconds if engine == "auto" else inf):
        return importlib.import_module("device.matrix_unit.compiled")
    if engine == "compiled":
        raise ImportError("block_product: the compiled engine needs numba; install it, or use engine='numpy'")
    return None


def _multiply_compiled(work: _Work, compiled: Any, threads: int) -> Array:
    weight_exponent = largest_exponent(work.weights)
    if weight_exponent > MAX_WEIGHT_EXPONENT or not work.weights.size or not work.dst.size:
        return multiply_rows(work.activations, work.weights, work.dst, work.half_counts, work.mode)
    result = np.empty_like(work.dst)
    run = _unit_runner(work, compiled.multiply_column_block, compiled.LANES, weight_exponent, result)
    units = list(_units(work.dst, compiled.LANES))
    if threads == 1 or len(units) == 1 or work.multiply_adds < WORTH_THREADS:
        for unit in units:
            run(unit)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(run, units))
    return result


def _units(dst: Array, lanes: int) -> Iterator[_Unit]:
    """Pieces of a result, in an order that changes no bit."""
    rows, cols = dst.shape
    for start in range(0, rows, UNIT_ROWS):
        for block in range(-(-cols // lanes)):
            yield _Unit(slice(start, min(start + UNIT_ROWS, rows)), block)


def _unit_runner(
    work: _Work, kernel: Callable[..., bool], lanes: int, weight_exponent: int, result: Array
) -> Callable[[_Unit], None]:
    """A function that computes one unit into ``result``; it may run in several threads."""
    halves, cols = work.weights.shape[0] // STEP_DEPTH, work.weights.shape[1]
    parts, exponents = _column_blocks(work.weights, lanes)
    activations = work.activations.view(np.int32).reshape(len(work.activations), halves, STEP_DEPTH)
    activations.flags.writeable = False  # always, so that the kernel is compiled for one kind of argument
    tile_starts = np.array([0, *accumulate(work.half_counts)])
    minus_one = np.int32(-1 if work.mode.minus_one_quirk else 0)
    max_activation_exponent = min(MAX_ACTIVATION_EXPONENT, MAX_EXPONENT_SUM - weight_exponent)

    def run(unit: _Unit) -> None:
        columns = slice(unit.block * lanes, min((unit.block + 1) * lanes, cols))
        width = columns.stop - columns.start
        dst = np.zeros((unit.rows.stop - unit.rows.start, lanes), np.int32)
        dst[:, :width] = work.dst[unit.rows, columns].view(np.int32)
        if kernel(
            parts[unit.block],
            exponents[unit.block],
            activations[unit.rows],
            dst,
            tile_starts,
            work.mode.fidelity_phases,
            work.mode.fp32_dest,
            minus_one,
            max_activation_exponent,
        ):
            result[unit.rows, columns] = dst[:, :width].view(np.uint32)
        else:  # an activation too large for float32 arithmetic
            result[unit.rows, columns] = multiply_rows(
                work.activations[unit.rows],
                work.weights[:, columns],
                work.dst[unit.rows, columns],
                work.half_counts,
                work.mode,
            )

    return run


def _column_blocks(weights: Array, lanes: int) -> tuple[Array, Array]:
    """Parts [blocks, 2, halves, 16 * lanes] and exponents [blocks, halves, 16 * lanes] of weights [K, cols]."""
    depth, cols = weights.shape
    halves, blocks = depth // STEP_DEPTH, -(-cols // lanes)
    parts = np.empty((blocks, 2, halves, STEP_DEPTH * lanes), np.float32)
    exponents = np.empty((blocks, halves, STEP_DEPTH * lanes), np.int16)
    padded = np.zeros((depth, lanes), np.uint32)
    for block in range(blocks):
        part = weights[:, block * lanes : (block + 1) * lanes]
        padded[:, : part.shape[1]] = part
        padded[:, part.shape[1] :] = 0
        found = weight_parts(padded.reshape(halves, STEP_DEPTH * lanes))
        parts[block, 0], parts[block, 1], exponents[block] = found.high, found.low, found.exponents
    return parts, exponents
