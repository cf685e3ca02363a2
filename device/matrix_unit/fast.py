"""Floating point in the place of the matrix unit's integers: BLAS over blocks, rounding where the packer rounds.

Operands are cut to the parts the fidelity multiplies; a 16-bit Dst is rounded once a block instead of once a step. So
results differ from the device's in the last places only; denormals, infinities and NaN are not treated as the device
does, but where block floats are packed. The functions mirror those of `blocks` and `packer`, and may write over a Dst
they are given.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from device.host.compiling import loops_of, worth_loading
from device.host.pieces import DEPTH, depth_of_part
from device.host.products import UNPACKED, multiplies_in_place, multiplies_numbers, multiplies_pairs, sgemm_address
from device.matrix_unit import packer
from device.matrix_unit.exact import MatrixUnitMode
from device.numbers.formats import BFLOAT16, FLOAT32, Array, DataFormat, Integers, div_up, round_up, to_read
from device.numbers.rounding import LARGEST_SHARED, add, round_half_up, share, sharing

_TF32: Final = 0xFFFFE000  # sign, exponent and the ten mantissa bits an operand has
_BFLOAT16: Final = 0xFFFF0000
_WEIGHT_HIGH: Final = 0xFFF80000  # the four bits that fidelity phases 0 and 2 multiply
_WEIGHT_BOTH: Final = 0xFFFFC000  # nine: the lowest of the ten is never used
_ACTIVATION_HIGH: Final = 0xFFFE0000  # the six that fidelity phases 0 and 1 multiply


def activation_mask(fidelity_phases: int) -> int:
    """The bits of an activation that so many fidelity phases multiply, as a signed number."""
    return _ACTIVATION_HIGH - (1 << 32) if fidelity_phases < 3 else -1


def read_weight_mask(fidelity_phases: int, *, fp32_dest: bool) -> int:
    """The bits of a weight that so many fidelity phases multiply of what the matrix unit reads, as a signed number."""
    return _multiplied(fidelity_phases) & ((_TF32 if fp32_dest else _BFLOAT16) - (1 << 32))


def activation_operand(values: Array, mode: MatrixUnitMode) -> Array:
    """Activations cut, in place, to what the fidelity phases multiply."""
    return _cut_in_place(values, activation_mask(mode.fidelity_phases))


def weight_mask(mode: MatrixUnitMode) -> int:
    """The bits of a weight that the fidelity phases multiply, as a signed number."""
    return _multiplied(mode.fidelity_phases)


def weight_operand(values: Array, mode: MatrixUnitMode) -> Array:
    """Weights cut, in place, to what the fidelity phases multiply."""
    return _cut_in_place(values, weight_mask(mode))


def _multiplied(fidelity_phases: int) -> int:
    """The bits of a weight that so many fidelity phases multiply, as a signed number."""
    return (_WEIGHT_HIGH if fidelity_phases == 1 else _WEIGHT_BOTH) - (1 << 32)


def product(
    activations: Array,
    weights: Array,
    dst: Array | None = None,
    *,
    mode: MatrixUnitMode,
    half_counts: Sequence[int] | None = None,
) -> Array:
    """`dst + activations @ weights` in float32.

    Args:
        activations: float32 [rows, depth], of `activation_operand`.
        weights: float32 [depth, columns], of `weight_operand`.
        dst: float32 [rows, columns]; None for zeros.
        mode: Fidelity phases and width of Dst.
        half_counts: Not needed here: the order of steps makes no difference.

    Returns:
        float32 [rows, columns]; bfloat16 values when Dst is 16 bits wide.
    """
    if mode.fidelity_phases == 3:
        high = _cut(activations, _ACTIVATION_HIGH)
        result = _sum_of_products(high, weights)
        result += _sum_of_products(activations - high, _cut(weights, _WEIGHT_HIGH))
    else:
        result = _sum_of_products(activations, weights)
    if dst is not None:
        return add(result, dst, rounds=not mode.fp32_dest)
    return result if mode.fp32_dest else round_half_up(result)


def _sum_of_products(left: Array, right: Array) -> Array:
    """BLAS's product, summed up in parts that do not depend on how large the matrices are."""
    done = depth_of_part(left.shape[1])
    result: Array = left[:, :done] @ right[:done]
    while done < left.shape[1]:
        end = done + depth_of_part(left.shape[1] - done)
        result += left[:, done:end] @ right[done:end]
        done = end
    return result


def unpack(values: Array, fmt: DataFormat, *, fp32_dest: bool) -> Array:
    """float32 buffers are cut to what an operand holds; other formats fit."""
    if fmt == FLOAT32:
        return _cut(values, _TF32 if fp32_dest else _BFLOAT16)
    return values


def pack(dst: Array, fmt: DataFormat, *, fp32_dest: bool, relu: bool = False) -> Array:
    """Dst rounded to the format, in place; block floats that `share` can not round, by the exact packer."""
    if fmt.is_block and not _is_shared(dst):
        return packer.pack(dst, fmt, fp32_dest=fp32_dest, relu=relu)
    if relu:
        dst = np.maximum(dst, np.float32(0), out=dst)
    if fmt == BFLOAT16 and fp32_dest:
        round_half_up(dst)
    elif fmt.is_block:
        dst = share(dst, fmt.mantissa_bits)
    return dst


def _is_shared(values: Array) -> bool:
    """Whether `share` rounds the numbers as the packer does: neither very large ones nor infinities or NaN."""
    if not values.size:
        return True
    return bool(values.max() <= LARGEST_SHARED and values.min() >= -LARGEST_SHARED)


def tilize(values: Array, source: DataFormat, target: DataFormat, *, fp32_dest: bool, keeps_tf32: bool) -> Array:
    """Values rounded to the format of the tiles."""
    if source == FLOAT32:
        values = unpack(values, source, fp32_dest=fp32_dest and (target == FLOAT32 or keeps_tf32))
    if target == FLOAT32 or (target == BFLOAT16 and source != FLOAT32):
        return values
    return pack(values, target, fp32_dest=True)


def accumulate_l1(stored: Array, packed: Array, fmt: DataFormat) -> Array:
    """The sum, rounded half up where L1 rounds to even."""
    return add(stored, packed, rounds=fmt != FLOAT32)


def add_bias(dst: Array, bias: Array, *, fp32_dest: bool) -> Array:
    """The sum, in place."""
    return add(dst, bias, rounds=not fp32_dest)


def _cut(values: Array, mask: int) -> Array:
    return (values.view(np.uint32) & np.uint32(mask)).view(np.float32)


def _cut_in_place(values: Array, mask: int) -> Array:
    if mask != -1:
        bits = values.view(np.int32)
        bits &= np.int32(mask)
    return values


CHUNK_ELEMENTS: Final = 1 << 14  # of sums that are worked on at a time, so that they stay in the cache
ROWS_OF_A_KERNEL: Final = 4  # of OpenBLAS, which takes as long for fewer
LEAST_ROWS: Final = 8  # of a product that is made where it lies
SUM_SECONDS: Final = 2.5e-9  # what numpy takes for an element of a product on its way, as measured for upconv1
_MOST_KEPT: Final = 64  # kinds of trips whose words are kept
_RUN_TF32: Final = -0x2000  # masks as signed numbers
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
    """`compute_whole_run` for some trips, if its loops are there or worth loading; else who asks goes step by step.

    Args:
        trips: What happens.
        elements: Elements of all products of a call.
    """
    address = sgemm_address() if stores(trips) else None
    if address is None or not worth_loading("device.matrix_unit.fast_loops", elements * SUM_SECONDS):
        return None
    return partial(compute_whole_run, loops_of("device.matrix_unit.fast_loops"), address, trip_words(trips))


def compute_whole_run(
    loops: Any, sgemm: int, words: TripWords, operands: RunOperands, result: Array, place: Array
) -> None:
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
        partials_mask=np.int32(_WHOLE if partials != FLOAT32 else _RUN_TF32 if fp32_dest else _UPPER),
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


COLUMNS_TOGETHER: Final = 64
MOST_WORDS: Final = 1 << 18  # of the pixels that rows of outputs meet at a time, so that they stay in the cache
OUTPUTS_TOGETHER: Final = 96  # of these rows, worked on at a time, six by six, so that sums stay in the fastest cache
_MOST_WINDOWS_KEPT: Final = 256  # geometries of runs
ALIKE_COLUMNS: Final = 16  # any of which OpenBLAS's kernels sum alike, where the matrix is small and where it is not


class WindowBlock(NamedTuple):
    """What the first output of a run meets of a K block."""

    row: int  # Row of the image, from the run's first one on
    column: int  # Column of the first pixel
    channel: int
    channels: int  # How many channels


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowWeights:
    """What windows are multiplied by."""

    matrix: Array  # float32 or bfloat16, contiguous rows of weights as they are held
    # int64 [phases, depth of all K blocks], for each product of an output the row; none of them for zeros
    rows: Integers
    columns: slice  # Which columns, for every phase; a multiple of `ALIKE_COLUMNS`

    @property
    def width(self) -> int:
        """Columns of a phase."""
        return int(self.columns.stop - self.columns.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOperands:
    """What a run of outputs is made of."""

    pixels: Array  # float32 or bfloat16 [rows, columns, channels], contiguous
    first: int  # Row of the image that blocks count from
    is_cut: bool  # Whether pixels have no bits but those that are multiplied
    blocks: Sequence[WindowBlock]  # The K blocks; an output to the right meets pixels one further
    taps: int  # How many pixels side by side an output meets
    down: int  # Rows of the image from one row of outputs to the next
    weights: WindowWeights
    bias: Array | None  # float32 [columns] as the matrix unit reads it, or None
    packs_last: bool  # Whether the last product is packed, too: a bias follows, or blocks that the outputs do not meet


WindowRun: TypeAlias = Callable[[WindowOperands, Array, Array], None]


def window_runs(trips: Trips, elements: int) -> WindowRun | None:
    """`compute_window_run` for some trips, if its loops are there or worth loading; else who asks goes step by step.

    Args:
        trips: What happens.
        elements: Elements of all products of a call.
    """
    loads = stores(trips) and worth_loading("device.matrix_unit.window_loops", elements * SUM_SECONDS)
    if not loads or not multiplies_numbers():
        return None
    return partial(compute_window_run, loops_of("device.matrix_unit.window_loops"), trip_words(trips))


def compute_window_run(loops: Any, words: TripWords, operands: WindowOperands, result: Array, place: Array) -> None:
    """Compute outputs.

    Args:
        loops: The compiled loops.
        words: What happens on the way.
        operands: What is multiplied.
        result: The output buffer, contiguous, in storage of what is made.
        place: The part of it that is written: a view [rows, outputs of a row, phases, channels].
    """
    weights, pixels, outputs, blocks = operands.weights, operands.pixels, place.shape[1], tuple(operands.blocks)
    tiles, wide = _tiles(len(weights.rows), weights.columns.start, weights.width, place.shape[3])
    pitches = pixels.shape[1] * pixels.shape[2], pixels.shape[2]
    down, apart, between = (stride // place.itemsize for stride in place.strides[:3])
    multiplied = (
        (operands.taps, outputs, operands.down),
        _flat_windows(weights.matrix),
        weights.rows,
        (weights.matrix.shape[1], words.weight_mask),
        tiles,
    )
    trips = (
        np.empty(0, np.float32) if operands.bias is None else operands.bias,
        words.how(packs_last=operands.packs_last),
        words.kinds,
        words.partials_mask,
        *words.sharings,
        result.reshape(-1).view(f"u{result.itemsize}"),
    )
    together = 2 if in_pairs(pixels, weights.matrix, blocks) else 1
    step = min(
        len(place), max(1, MOST_WORDS * together // _row_elements(blocks, operands.taps, operands.down, outputs))
    )
    rooms = (
        np.empty(_numbered(blocks, operands.taps, operands.down, step, outputs, together)[1], np.int32),
        np.empty(weights.rows.shape[1] // together * wide, np.int32),
    )
    sums = np.empty(OUTPUTS_TOGETHER * wide, np.float32), np.empty(OUTPUTS_TOGETHER * wide, np.float32)
    cut, first = np.int32(-1) if operands.is_cut else words.activation_mask, first_of(place, result)
    for begin in range(0, len(place), step):
        rows = min(step, len(place) - begin)
        numbered, _ = _numbered(blocks, operands.taps, operands.down, rows, outputs, together)
        image = _flat_windows(pixels[operands.first + begin * operands.down :]), pitches, cut, numbered
        target = first + begin * down, (down, apart, between, result.itemsize == 2)
        loops.run(*image, *multiplied, rows, together, rooms, sums, *trips, *target)


@lru_cache(_MOST_WINDOWS_KEPT)
def _tiles(phases: int, begin: int, width: int, stored: int) -> tuple[Integers, int]:
    """Columns that are multiplied at a time.

    Args:
        phases: How many there are.
        begin: The first column in the matrix.
        width: Columns of a phase.
        stored: How many of them are stored.

    Returns:
        int64 [tiles, 5], of each its phase, the first column in the matrix and in the phase, how many there are and how
        many of them are stored; and the most of them.
    """
    step = _even(width, COLUMNS_TOGETHER, ALIKE_COLUMNS)
    found = [
        (phase, begin + first, first, min(step, width - first), min(step, stored - first))
        for phase in range(phases)
        for first in range(0, width, step)
    ]
    return np.array(found, np.int64), min(step, width)


def _flat_windows(values: Array) -> Array:
    """The integers that contiguous numbers are made of."""
    return to_read(values.reshape(-1).view(np.int32 if values.itemsize == 4 else np.uint16))


def _even(length: int, most: int, multiple: int) -> int:
    """About even parts of a length, of so much at most if that is no less than what they are a multiple of."""
    return round_up(div_up(length, div_up(length, max(most, multiple))), multiple)


def in_pairs(pixels: Array, matrix: Array, blocks: Sequence[WindowBlock]) -> bool:
    """Whether numbers are multiplied in pairs: bfloat16 where that is faster, of channels that are two by two.

    Args:
        pixels: The image, its last axis the channels.
    """
    held = pixels.itemsize == matrix.itemsize == 2 and pixels.shape[-1] % 2 == 0
    return held and multiplies_pairs() and _are_even(tuple(blocks))


@lru_cache(_MOST_WINDOWS_KEPT)
def _are_even(blocks: tuple[WindowBlock, ...]) -> bool:
    """Whether the channels of all blocks are two by two."""
    return all(block.channel % 2 == block.channels % 2 == 0 for block in blocks)


@lru_cache(_MOST_WINDOWS_KEPT)
def _row_elements(blocks: tuple[WindowBlock, ...], taps: int, down: int, outputs: int) -> int:
    """Elements of the image that one more row of outputs meets."""
    channels = sum({block.channel: block.channels for block in blocks}.values())
    return down * _across(blocks, taps, outputs) * channels


def _across(blocks: tuple[WindowBlock, ...], taps: int, outputs: int) -> int:
    """Pixels that a row of outputs meets, and those between them."""
    return max(block.column for block in blocks) - min(block.column for block in blocks) + taps + outputs - 1


@lru_cache(_MOST_WINDOWS_KEPT)
def _numbered(
    blocks: tuple[WindowBlock, ...], taps: int, down: int, rows: int, outputs: int, together: int
) -> tuple[Integers, int]:
    """The K blocks, each with where its pixels are among the words of all that so many rows of outputs meet.

    Blocks of the same channels share them. The second number says how many words there are.
    """
    above = max(block.row for block in blocks) - min(block.row for block in blocks)
    pixels = ((rows - 1) * down + 1 + above) * _across(blocks, taps, outputs)
    begins, end = dict[int, int](), 0
    for block in blocks:
        if block.channel not in begins:
            begins[block.channel] = end
            end += pixels * block.channels // together
    return np.array([(*block, begins[block.channel]) for block in blocks], np.int64), end


class FusedRuns(NamedTuple):
    """Loops that compute runs of outputs, from products to what is packed."""

    gathered: WholeRun | None  # From gathered activations; None without such a loop
    windows: WindowRun | None  # From the image; None likewise


def fused_runs(trips: Trips, elements: int) -> FusedRuns:
    """The loops for some trips, as far as they exist and are worth loading for so many elements of all products."""
    return FusedRuns(whole_runs(trips, elements), window_runs(trips, elements))
