"""The values of the patch programs: slice by slice in the machine's order or, for speed, whole with BLAS.

Positions are computed by output phases, so inserted zeros cost nothing; skipping halves of tiles with only zeros
changes no bit. Every K block except the first adds to the complete float32 partial sums, so the split into blocks does
not affect the values.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from device.host.threads import side_by_side
from device.matrix_unit.arithmetic import cut
from device.matrix_unit.exact import MatrixUnitMode
from device.memory.memory_config import TILE
from device.numbers.formats import Array, DataFormat, round_up
from ops.op_model import ValuesContext, given
from ops.programs.patch_matmul import fast, gather
from ops.programs.patch_matmul.op import (
    HALF,
    IN0_BITS,
    IN1_BITS,
    FillRows,
    Patches,
    PatchMatmul,
    PixelMatmul,
    PrepareBias,
    PrepareSticks,
    PrepareTaps,
    Slicing,
    SumSections,
    grid_exponent,
    multiplied_whole,
    slices,
)
from ops.window import OutputPhase, index_of

SLICED_ROWS = 2048  # patches multiplied at a time
STACKED_ELEMENTS = 1 << 22  # of the operands of several passes that are multiplied in one call


def rounded(values: Array, data_format: DataFormat) -> Array:
    """float32 rounded once, to the nearest even, as the vector unit does before packing."""
    with np.errstate(over="ignore"):
        return values.astype(data_format.storage, copy=False)


def fill_rows(op: FillRows, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
    """The result with its untouched positions filled; inputs are the bias, if any, and the target."""
    *bias, target = inputs
    result = _target(op, op.batch, target)
    result[gather.places(op.axes)] = rounded(given(bias[0]).astype(np.float32), op.out_format) if bias else 0
    return result


def _target(op: FillRows | PatchMatmul, batch: int, target: Array | None) -> Array:
    """The result [N, *out_shape, O] that programs write into; a new one before the first."""
    shape = (batch, *op.out_shape, op.out_channels)
    return np.empty(shape, op.out_format.storage) if target is None else target


def patch_matmul(op: PatchMatmul, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
    """The result [N, *out_shape, O] of one patch matmul, in storage of the output format.

    Inputs are the image [N, *spatial, C] in any shape, the weights, float32 [groups, *taps, C / groups, O / groups],
    the bias, float32 [O], if any, and the target: programs of one result share it; it is None before the first.
    """
    *operands, target = inputs
    image, weights, *several = map(given, operands)
    bias, patches = several[0] if several else None, op.patches
    image = image.reshape(patches.batch, *(axis.input_length for axis in patches.axes), patches.channels)
    result = _target(op, patches.batch, target)
    if not context.arithmetic.slice_by_slice:
        pixels = multiplied_whole(np.ascontiguousarray(image, np.float32), op.slicing, weights_side=False)
        matrices = multiplied_whole(weights, op.slicing, weights_side=True)
        fast.patch_matmul(op, pixels, matrices, bias, result, context.arithmetic.each)
        return result
    pixels = image.astype(np.float32)
    exponents = (grid_exponent(pixels), grid_exponent(weights))
    for phase in gather.by_phases(patches.axes, pixels, weights, bias, result):
        _sliced_phase(op, phase, exponents, bias, context)
    return result


def _sliced_phase(
    op: PatchMatmul,
    operands: gather.PhaseOperands,
    exponents: tuple[int, int],
    bias: Array | None,
    context: ValuesContext,
) -> None:
    """One output phase through the matrix unit, into its part of the result."""
    patches, (phases, view, weights, place) = op.patches, operands
    dense = gather.dense_bundles(weights, patches.bundles)
    dense = dense.reshape(len(dense), -1, *dense.shape[-2:])
    (ins, outs), halves = dense.shape[-2:], _half_counts(patches, phases)
    for bundle, taps in enumerate(dense):
        of_result = slice(bundle * outs, (bundle + 1) * outs)
        matrix = np.pad(taps, ((0, 0), (0, patches.tap_columns - ins), (0, 0))).reshape(-1, outs)
        for box in gather.runs(place.shape[:-1], SLICED_ROWS):
            gathered = _rows(view[box][..., bundle * ins : (bundle + 1) * ins], place.ndim - 1, patches.tap_columns)
            values = _passes((gathered, matrix), exponents, op.slicing, halves, context)
            to = place[box][..., of_result]
            gather.put((values if bias is None else values + bias[of_result]).reshape(to.shape), to)


def _half_counts(patches: Patches, combination: tuple[OutputPhase, ...]) -> tuple[int, ...]:
    """Halves present in each K tile when only the taps of some output phases are there."""
    each = patches.tap_columns // HALF
    numbers = np.arange(patches.tap_count).reshape(patches.taps)[np.ix_(*(list(phase.taps) for phase in combination))]
    tiles = (numbers.reshape(-1, 1) * each + np.arange(each)).reshape(-1) // (TILE // HALF)
    return tuple(int(count) for count in np.bincount(tiles) if count)


def _rows(view: Array, axes: int, columns: int) -> Array:
    """Patches [*positions, *taps, C] of ``axes`` leading axes as a matrix, every tap padded to ``columns``."""
    rows, channels = prod(view.shape[:axes]), view.shape[-1]
    gathered = np.zeros((rows, prod(view.shape[axes:-1]), columns), np.float32)
    gathered[..., :channels] = view.reshape(rows, -1, channels)
    return gathered.reshape(rows, -1)


def pixel_matmul(op: PixelMatmul, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
    """The sums of all bands [sections, groups, *taps, I / groups, O / groups]; multiplied whole, there is one sum.

    The channels of the first input [N, *positions, I] become rows, the patches of the second [N, *spatial, O] columns.
    Sums are float32, or have storage of the output format if there is one band.
    """
    (image, other), patches = map(given, inputs), op.patches
    if not context.arithmetic.slice_by_slice:
        rows = multiplied_whole(np.ascontiguousarray(image, np.float32), op.slicing, weights_side=False)
        columns = multiplied_whole(np.ascontiguousarray(other, np.float32), op.slicing, weights_side=True)
        sums = fast.pixel_matmul(patches, rows, columns, context.arithmetic.each)[None]
    else:
        view = gather.patches_of(*gather.padded(other, [[axis] for axis in patches.axes]), patches.axes)
        pixels = image.astype(np.float32).reshape(-1, op.channels)
        sums = _sliced_sums(op, pixels, view.reshape(len(pixels), patches.tap_count, patches.channels), context)
    return rounded(sums, op.out_format) if op.sections == 1 else sums


def _sliced_sums(op: PixelMatmul, pixels: Array, taps: Array, context: ValuesContext) -> Array:
    """float32 [sections, groups, *taps, I / groups, O / groups] of [positions, I] and [positions, taps, O]."""
    patches, bundles, size = op.patches, op.patches.bundles, op.patches.groups // op.patches.bundles
    ins, outs = op.channels // bundles, patches.channels // bundles
    band = op.matmul.problem.k_tiles // len(op.slicing.passes) * TILE
    exponents = (grid_exponent(pixels), grid_exponent(taps))
    sums = np.zeros((op.sections, bundles, size, patches.tap_count, ins // size, outs // size), np.float32)
    for section, bundle in product(range(op.sections), range(bundles)):
        positions = slice(section * band, (section + 1) * band)
        left = pixels[positions, bundle * ins : (bundle + 1) * ins]
        right = taps[positions, :, bundle * outs : (bundle + 1) * outs]
        if not len(left):
            continue
        right = right.reshape(len(left), -1)  # without the zeros of each tap, whose sums nobody reads
        depth = ((0, round_up(len(left), TILE) - len(left)), (0, 0))
        matrices = (np.pad(left, depth).T.copy(), np.pad(right, depth))
        halves = (TILE // HALF,) * (len(matrices[1]) // TILE)
        whole = _passes(matrices, exponents, op.slicing, halves, context)
        sums[section, bundle] = gather.own_weights(whole.reshape(1, ins, -1, outs).swapaxes(1, 2), size)
    return sums.reshape(op.sections, patches.groups, *patches.taps, ins // size, outs // size)


def _passes(
    operands: tuple[Array, Array],
    exponents: tuple[int, int],
    slicing: Slicing,
    halves: tuple[int, ...],
    context: ValuesContext,
) -> Array:
    """All passes over float32 matrices [rows, K] and [K, columns] on grids of two exponents: float32 [rows, columns].

    `halves` are the halves present of each K tile.
    """
    arithmetic, quirk = context.arithmetic, context.spec.compute.minus_one_quirk
    mode = MatrixUnitMode(fidelity_phases=slicing.fidelity_phases, fp32_dest=True, minus_one_quirk=quirk)
    sides = (
        (operands[0], slicing.in0_slices, IN0_BITS, exponents[0]),
        (operands[1], slicing.in1_slices, IN1_BITS, exponents[1]),
    )
    in0, in1 = (
        [cut(arithmetic.unpack(part, slicing.part_format, fp32_dest=True), mask) for part in slices(*side)]
        for side, mask in zip(sides, arithmetic.operand_masks(mode), strict=True)
    )
    dst = np.zeros((len(in0[0]), in1[0].shape[1]), np.float32)
    at_once = max(1, STACKED_ELEMENTS // max(1, in0[0].size + in1[0].size))
    for first in range(0, len(slicing.passes), at_once):
        several = slicing.passes[first : first + at_once]  # one after the other along K, as the program has them
        left = np.concatenate([in0[i] for i, _ in several], axis=1)
        right = np.concatenate([in1[j] for _, j in several])
        dst = arithmetic.product(left, right, dst, mode=mode, half_counts=halves * len(several))
    return dst


def sum_sections(op: SumSections, sums: Array) -> Array:
    """All bands added up in float32, in order."""
    return rounded(gather.added_up(sums.copy()), op.out_format)


# For each format, the places of I and O / groups; the kernel's axes fill the others in order.
_CHANNEL_AXES: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {"IOX": (0, 1), "OIX": (1, 0), "XOI": (-1, -2), "XIO": (-2, -1)}
)
WEIGHTS_FORMATS: Final = tuple(_CHANNEL_AXES)


@cache
def canonical_axes(weights_format: str, rank: int) -> tuple[int, ...]:
    """Which of `rank` stored axes each canonical axis (I, O / groups, *kernel) is, by one of `WEIGHTS_FORMATS`."""
    ins, outs = (axis % rank for axis in _CHANNEL_AXES[weights_format])
    return (ins, outs, *(axis for axis in range(rank) if axis not in (ins, outs)))


def canonical_shape(shape: Sequence[int], weights_format: str) -> tuple[int, ...]:
    """(I, O / groups, *kernel) of a stored shape."""
    return tuple(shape[axis] for axis in canonical_axes(weights_format, len(shape)))


def to_canonical(weights: Array, weights_format: str) -> Array:
    """A stored array as a view [I, O / groups, *kernel]."""
    return weights.transpose(canonical_axes(weights_format, weights.ndim))


def from_canonical(weights: Array, weights_format: str) -> Array:
    """An array [I, O / groups, *kernel] as a view in the order of a format."""
    return weights.transpose(np.argsort(canonical_axes(weights_format, weights.ndim)))


def prepare_sticks(op: PrepareSticks, image: Array) -> Array:
    """[N, *spatial, C] of an image in the caller's order, as a view."""
    return image if op.channels_last else np.moveaxis(image, 1, -1)


def prepare_bias(op: PrepareBias, bias: Array) -> Array:
    """A row [O], `widened`."""
    return widened(bias).reshape(-1)


def widened(values: Array) -> Array:
    """The array in float32; float64 stays float64."""
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float32)


def prepare_taps(op: PrepareTaps, weights: Array) -> Array:
    """[groups, *taps, in, out] of stored weights, `widened`: a view where that is possible."""
    canonical = to_canonical(widened(weights), op.weights_format)
    ins, outs, *kernel = canonical.shape
    grouped = canonical.reshape(op.groups, ins // op.groups, outs, *kernel)
    index: list[Any] = [index_of(taps) for taps in op.taps]
    return np.moveaxis(grouped[(..., *index)], (1, 2), (-1, -2) if op.towards_source else (-2, -1))


def weights_of(sums: Array, weights_format: str) -> Array:
    """Stored weights of matrices [groups, *taps, in, out], contiguous."""
    groups, *kernel, ins, outs = sums.shape
    canonical = np.moveaxis(sums, (-2, -1), (1, 2)).reshape(groups * ins, outs, *kernel)
    stored = from_canonical(canonical, weights_format)
    array = np.empty(stored.shape, stored.dtype)
    gather.copy_in_pieces(array, stored, side_by_side)
    return array


def image_of(sticks: Array, *, channels_last: bool) -> Array:
    """[N, *spatial, C] in the caller's order, contiguous."""
    return sticks if channels_last else np.ascontiguousarray(np.moveaxis(sticks, -1, 1))
