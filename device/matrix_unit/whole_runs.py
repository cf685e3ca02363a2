"""Outputs of the fast reading at once, from the operands of all K blocks to what is stored.

The step-by-step way, function by function of `device.matrix_unit.fast`, gives the same bits. In one loop what is worked
on stays in the cache, and threads that work side by side do not wait for the interpreter after every step, which took
as long as the products themselves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from device.host.compiling import loops_of, worth_loading
from device.host.depths import DEPTH
from device.host.products import UNPACKED, multiplies_in_place, sgemm_address
from device.matrix_unit.fast import activation_mask, read_weight_mask
from device.numbers.block_floats import div_up, round_up, to_read
from device.numbers.formats import BFLOAT16, FLOAT32, Array, DataFormat
from device.numbers.rounding import sharing

CHUNK_ELEMENTS: Final = 1 << 14  # of sums that are worked on at a time, so that they stay in the cache
ROWS_OF_A_KERNEL: Final = 4  # of OpenBLAS, which takes as long for fewer
LEAST_ROWS: Final = 8  # of a product that is made where it lies
SUM_SECONDS: Final = 2.5e-9  # what numpy takes for an element of a product on its way, as measured for upconv1
_MOST_KEPT: Final = 64  # kinds of trips whose words are kept
_TF32: Final = -0x2000  # masks as signed numbers
_UPPER: Final = -0x10000
_WHOLE: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Trips:
    """What happens between products and outputs (docs/values.md, Partial sums, Bias, Packer)."""

    fidelity_phases: int  # Of the products; not 3, where a block is two of them
    fp32_dest: bool  # Whether Dst has 32 bits
    partials: DataFormat  # Format of partial sums
    accumulates: bool  # Whether the packer adds them in L1
    untilizes: bool  # Whether outputs make one more trip through partials and Dst
    relu: bool  # Whether negative outputs are packed as zeros
    made: DataFormat  # What outputs are packed to


@dataclass(frozen=True, slots=True, kw_only=True)
class TripWords:
    """Trips as compiled loops take them."""

    # What happens between products and outputs, in two parts: what `how` puts between them differs from run to run
    steps: tuple[tuple[bool, ...], tuple[bool, ...]]
    kinds: tuple[int, ...]  # How partial sums and outputs are packed
    activation_mask: np.int32  # Bits of activations that are multiplied
    weight_mask: np.int32  # Of weights as they are stored
    partials_mask: np.int32  # Bits of partial sums that the matrix unit reads
    sharings: tuple[Any, ...]  # How partial sums and outputs are rounded where they are block floats

    def how(self, *, packs_last: bool) -> tuple[bool, ...]:
        """What happens between products and outputs."""
        before, after = self.steps
        return *before, packs_last, *after


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOperands:
    """What a run of outputs is made of."""

    # float32 or bfloat16 [outputs, depth of all K blocks], elements of a row side by side; of bfloat16 the bits that
    # are multiplied are yet to be cut out, float32 is multiplied as it is
    activations: Array
    weights: Array  # float32 [depth of all K blocks, columns], likewise
    depths: Sequence[int]  # Of each K block
    bias: Array | None  # float32 [columns] as the matrix unit reads it, or None
    packs_last: bool  # Whether the last product is packed, too: a bias follows, or blocks that the outputs do not meet


WholeRun: TypeAlias = Callable[[RunOperands, Array, Array], None]


def whole_runs(trips: Trips, elements: int) -> WholeRun | None:
    """`run` for some trips, if its loops are there or worth loading; else who asks goes step by step.

    Args:
        trips: What happens.
        elements: Elements of all products of a call.
    """
    address = sgemm_address() if stores(trips) else None
    if address is None or not worth_loading("device.matrix_unit.fast_loops", elements * SUM_SECONDS):
        return None
    return partial(run, loops_of("device.matrix_unit.fast_loops"), address, trip_words(trips))


def run(loops: Any, sgemm: int, words: TripWords, operands: RunOperands, result: Array, place: Array) -> None:
    """Compute outputs.

    Args:
        loops: The compiled loops.
        sgemm: Where BLAS's product is.
        words: What happens on the way.
        operands: What is multiplied.
        result: The output buffer, contiguous, in storage of what is made.
        place: The part of it that is written: a view [rows, outputs of a row, phases, channels].
    """
    columns, dtype = operands.weights.shape[1], operands.activations.dtype
    rows, outputs = place.shape[:2]
    step = min(rows, max(1, CHUNK_ELEMENTS // (outputs * columns)))
    held = 0 if dtype == np.float32 else step * outputs
    loops.run(
        sgemm,
        _flat(operands.activations),
        (*_addressed(operands.weights), operands.activations.strides[0] // dtype.itemsize, outputs),
        _blocks(operands.depths, columns, step * outputs),
        np.empty((held, operands.activations.shape[1]), np.float32),
        rows,
        np.empty((2, step, outputs * columns), np.float32),
        np.empty(0, np.float32) if operands.bias is None else operands.bias,
        words.how(packs_last=operands.packs_last),
        words.kinds,
        (words.activation_mask, words.partials_mask),
        *words.sharings,
        result.reshape(-1).view(f"u{result.itemsize}"),
        first_of(place, result),
        (*_spans(place, columns // place.shape[2]), result.itemsize == 2),
    )


@lru_cache(_MOST_KEPT)
def trip_words(trips: Trips) -> TripWords:
    """Trips as compiled loops take them."""
    partials, fp32_dest = trips.partials, trips.fp32_dest
    return TripWords(
        steps=((not fp32_dest, trips.accumulates, partials != FLOAT32), (trips.untilizes, trips.relu)),
        kinds=tuple(_kind(fmt, fp32_dest=fp32_dest) for fmt in (partials, trips.made)),
        activation_mask=np.int32(activation_mask(trips.fidelity_phases)),
        weight_mask=np.int32(read_weight_mask(trips.fidelity_phases, fp32_dest=fp32_dest)),
        partials_mask=np.int32(_WHOLE if partials != FLOAT32 else _TF32 if fp32_dest else _UPPER),
        sharings=(sharing(partials.mantissa_bits), sharing(trips.made.mantissa_bits)),
    )


def stores(trips: Trips) -> bool:
    """Whether loops write what is made."""
    return trips.made.storage in (BFLOAT16.storage, FLOAT32.storage)


def first_of(place: Array, result: Array) -> int:
    """The element of a result that a view of it begins with."""
    return (_address(place) - _address(result)) // result.itemsize


def _blocks(depths: Sequence[int], columns: int, rows: int) -> Array:
    """How K blocks are multiplied, int64 [blocks, 2]."""
    of_depth = {depth: _block(depth, columns, rows) for depth in set(depths)}
    return np.array([of_depth[depth] for depth in depths], np.int64)


def _block(depth: int, columns: int, rows: int) -> tuple[int, int]:
    """How a K block is multiplied: its depth, and rows of a product, so that it is made where it lies if that goes."""
    most = UNPACKED // (min(depth, DEPTH) * columns) // ROWS_OF_A_KERNEL * ROWS_OF_A_KERNEL
    if most < LEAST_ROWS or not multiplies_in_place():
        return depth, rows
    return depth, round_up(div_up(rows, div_up(rows, most)), ROWS_OF_A_KERNEL)


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _addressed(matrix: Array) -> tuple[int, int]:
    """Where a matrix is, and the elements from one of its rows to the next."""
    return _address(matrix), matrix.strides[0] // matrix.itemsize


def _flat(matrix: Array) -> Array:
    """The integers that a matrix is made of, from its first element to its last, with what lies between its rows."""
    kind = np.int32 if matrix.itemsize == 4 else np.uint16
    if matrix.flags.c_contiguous:
        return to_read(matrix.reshape(-1).view(kind))
    length = (len(matrix) - 1) * (matrix.strides[0] // matrix.itemsize) + matrix.shape[1]
    return as_strided(matrix, (length,), (matrix.itemsize,), writeable=False).view(kind)


def _spans(place: Array, width: int) -> tuple[int, ...]:
    """Where rows of outputs go: what the loops take, in elements, with spans as long as can be.

    Args:
        place: [rows, columns, phases, channels], a view of the output buffer.
        width: Elements there are for the channels.
    """
    down, across, between = (stride // place.itemsize for stride in place.strides[:3])
    _, columns, phases, channels = place.shape
    if channels < width or (phases > 1 and between != channels):
        return down, columns, across, phases, between, width, channels
    span = phases * channels
    if columns > 1 and across != span:
        return down, columns, across, 1, 0, span, span
    return down, 1, 0, 1, 0, columns * span, columns * span


def _kind(fmt: DataFormat, *, fp32_dest: bool) -> int:
    """How the packer rounds: not at all, to bfloat16, or to a block float."""
    return 2 if fmt.is_block else int(fmt == BFLOAT16 and fp32_dest)
