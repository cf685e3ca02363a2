"""The K loop of a convolution as one compiled loop: it gathers, multiplies, rounds and packs some outputs at a time.

The loop exists where numba is installed and numpy's BLAS is OpenBLAS. It gives the bits that a program computes step by
step over `device.matrix_unit.fast`; no array of a whole block is written between two steps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

import numpy as np

from device.host.compiling import loops_of, worth_loading
from device.host.products import UNPACKED, multiplies_in_place, sgemm_address
from device.matrix_unit.exact import MatrixUnitMode
from device.matrix_unit.fast import operand_masks
from device.numbers.formats import BFLOAT16, FLOAT32, Array, DataFormat, Integers, to_read
from device.numbers.rounding import sharing

CHUNK_ELEMENTS: Final = 1 << 14  # of sums that are computed at a time, so that they stay in the cache
SUM_SECONDS: Final = 2.5e-9  # that numpy takes from a product to an output, for each, as measured for upconv1
EQUAL_SUM_COLUMNS: Final = 16  # any multiple of which OpenBLAS's kernels sum alike, in small matrices and in large ones
_CACHE_SIZE: Final = 64  # kinds of loops whose words are kept
_TF32: Final = -0x2000  # masks as signed numbers
_UPPER: Final = -0x10000


@dataclass(frozen=True, slots=True, kw_only=True)
class KLoop:
    """The steps between products and outputs (docs/reference/values.md, Partial sums, Bias, Packer)."""

    fidelity_phases: int  # Of the products; not 3, where a block is two of them
    fp32_dest: bool  # Whether Dst has 32 bits
    partials: DataFormat  # Format of partial sums
    accumulates: bool  # Whether the packer adds them in L1
    untilizes: bool  # Whether outputs make one more trip through partials and Dst
    relu: bool  # Whether negative outputs are packed as zeros
    out_format: DataFormat  # That outputs are packed to


@dataclass(frozen=True, slots=True, kw_only=True)
class MetPixels:
    """The pixels under the kernel for each output, and the K blocks of their channels.

    For each line of `taps`, output (row, column) of a run reads as many elements as the line says, from `first + row *
    down + column * across` plus the line's first number on.
    """

    first: int  # Element of the image
    down: int  # Elements of the image from one row of outputs to the next
    across: int  # Elements from one output of a row to the next
    taps: Integers  # int64 [taps, 3]: the first element, its column in the K block, and how many elements follow it
    blocks: Integers  # int64 [K blocks, 4]: depth, first tap, the tap behind the last, whether taps fill all columns


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOperands:
    """The operands of some rows of outputs."""

    image: Array  # float32 or bfloat16 [rows, columns, channels], contiguous
    is_cut: bool  # Whether the image has no bits but those that are multiplied
    met: MetPixels
    weights: Array  # float32 [depth of all K blocks, columns], cut to the bits that are multiplied
    bias: Array | None  # float32 [columns] as the matrix unit reads it, or None
    packs_last: bool  # Whether the last product is packed, too: a bias follows, or blocks that the outputs do not meet


FusedLoop: TypeAlias = Callable[[RunOperands, Array, Array], None]


def fused_loop(k_loop: KLoop, elements: int) -> FusedLoop | None:
    """`compute_run` for a K loop of so many product elements; None where it does not exist or is not worth loading."""
    address = sgemm_address() if k_loop.out_format.storage in (BFLOAT16.storage, FLOAT32.storage) else None
    if address is None or not worth_loading("device.matrix_unit.fused_loops", elements * SUM_SECONDS):
        return None
    return partial(compute_run, loops_of("device.matrix_unit.fused_loops"), address, _words(k_loop))


def compute_run(loops: Any, sgemm: int, words: tuple[Any, ...], run: RunOperands, result: Array, place: Array) -> None:
    """Computes some rows of outputs.

    Args:
        sgemm: Address of BLAS's product.
        words: The K loop as compiled loops take it.
        run: The operands.
        result: The output buffer, contiguous, in the storage type of the output format.
        place: The part of ``result`` that is written: a view [rows, outputs of a row, phases, channels].
    """
    columns, (rows, outputs), met = run.weights.shape[1], place.shape[:2], run.met
    step = min(rows, max(1, CHUNK_ELEMENTS // (outputs * columns)))
    how, kinds, (activation_mask, partials_mask), *sharings = words
    loops.run(
        (sgemm, UNPACKED if multiplies_in_place() else 0),
        to_read(run.image.reshape(-1).view(np.int32 if run.image.itemsize == 4 else np.uint16)),
        (met.first, met.down, met.across, outputs),
        met.taps,
        met.blocks,
        (_address(run.weights), run.weights.strides[0] // run.weights.itemsize),
        np.empty(step * outputs * int(met.blocks[:, 0].max()), np.float32),
        rows,
        np.empty((2, step, outputs * columns), np.float32),
        np.empty(0, np.float32) if run.bias is None else run.bias,
        run.packs_last,
        how,
        kinds,
        (np.int32(-1) if run.is_cut else activation_mask, partials_mask),
        *sharings,
        result.reshape(-1).view(f"u{result.itemsize}"),
        (_address(place) - _address(result)) // result.itemsize,
        (*_spans(place, columns // place.shape[2]), result.itemsize == 2),
    )


@lru_cache(_CACHE_SIZE)
def _words(k_loop: KLoop) -> tuple[Any, ...]:
    """A K loop as compiled loops take it: the steps, how partial sums and outputs are packed, masks, roundings."""
    partials, result, fp32_dest = k_loop.partials, k_loop.out_format, k_loop.fp32_dest
    mode = MatrixUnitMode(fidelity_phases=k_loop.fidelity_phases, fp32_dest=fp32_dest, minus_one_quirk=False)
    return (
        (not fp32_dest, k_loop.accumulates, partials != FLOAT32, k_loop.untilizes, k_loop.relu),
        tuple(2 if fmt.is_block else int(fmt == BFLOAT16 and fp32_dest) for fmt in (partials, result)),
        (
            np.int32(operand_masks(mode)[0]),
            np.int32(-1 if partials != FLOAT32 else _TF32 if fp32_dest else _UPPER),
        ),
        sharing(partials.mantissa_bits),
        sharing(result.mantissa_bits),
    )


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _spans(place: Array, width: int) -> tuple[int, ...]:
    """Where rows of outputs go, in elements as the loops take it, with spans as long as possible.

    ``place`` is [rows, columns, phases, channels], a view of the output buffer; ``width`` elements hold the channels.
    """
    down, across, between = (stride // place.itemsize for stride in place.strides[:3])
    _, columns, phases, channels = place.shape
    if channels < width or (phases > 1 and between != channels):
        return down, columns, across, phases, between, width, channels
    span = phases * channels
    if columns > 1 and across != span:
        return down, columns, across, 1, 0, span, span
    return down, 1, 0, 1, 0, columns * span, columns * span
