"""Patches times weights with BLAS: float32 products and sums, in runs of positions that stay in the cache.

Patches times weights can be had in two ways: patches are gathered and multiplied, or every position of the image is
multiplied with all taps at once and the products are added up where they belong. Whatever moves fewer numbers is done.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from math import prod
from typing import Any

import numpy as np

from device.numbers.formats import Array
from ops.frame.axis import FrameAxis, count_met_taps, index_of, output_phases
from ops.programs.patch_matmul.bundles import NARROW, bundle_size, dense_bundles
from ops.programs.patch_matmul.gather import Margin, Scratch, places, run_rows, runs
from ops.programs.patch_matmul.work import PatchMatmul

SUM_BYTES = 4 << 20  # of images that are added up at a time
PLANES = 16  # channels up to which an image is better added up plane by plane
ADDING = 4  # moves for a product that is added: written, read, added to what is read and written


def patch_matmul(work: PatchMatmul, image: Array, weights: Array, bias: Array | None, result: Array) -> None:
    """Patches times weights, written to their places.

    Args:
        work: The program.
        image: float32 [N, *spatial, C], contiguous.
        weights: float32 [groups, *taps, C / groups, O / groups].
        bias: float32 [O] or None.
        result: [N, *out_shape, O].
    """
    axes = work.patches.axes
    groups, taps, ins, outs = len(weights), weights.shape[1:-2], weights.shape[-2], weights.shape[-1]
    if groups > 1 and max(ins, outs) <= NARROW:
        _each_phase(axes, image, weights, bias, result, _by_elements)
        return
    size = bundle_size(groups, ins, outs)
    dense = dense_bundles(weights.reshape(groups, -1, ins, outs), size)
    for number, matrices in enumerate(dense):
        of_image, of_result = (slice(number * size * n, (number + 1) * size * n) for n in (ins, outs))
        ours = np.ascontiguousarray(image[..., of_image])
        added = None if bias is None else bias[of_result]
        taken = matrices.reshape(*taps, size * ins, size * outs)
        if _scatters(axes, len(image), taken):
            _scatter(axes, ours, taken, added, result[..., of_result])
        else:
            _each_phase(axes, ours, taken, added, result[..., of_result], _gathered)


def _each_phase(
    axes: Sequence[FrameAxis],
    image: Array,
    weights: Array,
    bias: Array | None,
    result: Array,
    multiply: Callable[[Array, Array, Array | None, Array], None],
) -> None:
    """Every output phase of patches [N, *outputs, *taps, C] with its taps of weights [..., *taps, in, out]."""
    phases = [output_phases(axis) for axis in axes]
    margin = Margin(image, [[phase.axis for phase in several] for several in phases])
    for combination in product(*phases):
        dense = tuple(phase.axis for phase in combination)
        part = result[places(dense)]
        if all(axis.taps for axis in dense):
            taps: list[Any] = [index_of(phase.taps) for phase in combination]
            multiply(margin.patches(dense), weights[(..., *taps, slice(None), slice(None))], bias, part)
        else:
            part[...] = 0 if bias is None else bias


def _singly(axes: Sequence[FrameAxis]) -> bool:
    """Whether no output meets the image under more than one tap."""
    return all(len(phase.taps) < 2 for axis in axes for phase in output_phases(axis))


def _scatters(axes: Sequence[FrameAxis], batch: int, weights: Array) -> bool:
    """Whether it takes less to add products up where they belong than to gather patches.

    Args:
        axes: Of the patches.
        batch: Images.
        weights: [*taps, in, out].
    """
    if any(axis.step > 1 for axis in axes):
        return False
    ins, outs = weights.shape[-2:]
    single = _singly(axes)
    met = prod(map(count_met_taps, axes))
    copied = 0 if _merges(weights, tuple(range(weights.ndim - 1))) else weights.size
    gathered = 0 if single else 2 * batch * met * ins
    added = batch * prod(axis.input_length * axis.taps for axis in axes) * outs * (1 if single else ADDING)
    return bool(added < gathered + copied)


def _scatter(axes: Sequence[FrameAxis], image: Array, weights: Array, bias: Array | None, result: Array) -> None:
    """Every position times all taps, added up in the result.

    Args:
        axes: Of the patches; their step is 1.
        image: float32 [N, *spatial, C], contiguous.
        weights: float32 [*taps, C, O].
        bias: float32 [O] or None.
        result: [N, *out_shape, O].
    """
    single, outs, tap_counts = _singly(axes), weights.shape[-1], weights.shape[:-2]
    taps = [[-(axis.start + tap * axis.spacing) for tap in range(axis.taps)] for axis in axes]
    for number, offsets in enumerate(taps):
        if weights.strides[number] < 0:  # mirrored taps, in the order in which they lie in memory
            weights = np.flip(weights, number)
            offsets.reverse()
    lows = [min(0, *several) for several in taps]
    lengths = [
        max(max(several) + (axis.input_length - 1) * axis.insertion + 1, axis.outputs) - low
        for axis, several, low in zip(axes, taps, lows, strict=True)
    ]
    matrix, tap_first = _products_matrix(weights)
    images = max(1, SUM_BYTES // (4 * outs * prod(lengths)))
    target, scratch = result[places(axes)], Scratch()
    for begin in range(0, len(image), images):
        several = image[begin : begin + images]
        total = _zeros((len(several), *lengths), outs)
        for box in runs(several.shape[:-1], run_rows(outs * prod(tap_counts))):
            positions = several[box]
            shape = positions.shape[:-1]
            products = _products(positions.reshape(-1, positions.shape[-1]), matrix, outs, scratch)
            kinds = (*tap_counts, outs) if tap_first else (outs, *tap_counts)
            products = products.reshape(*shape, *kinds)
            if not tap_first:
                products = np.moveaxis(products, len(shape), -1)
            for tap in np.ndindex(*tap_counts):
                there = [
                    slice(
                        one.start * axis.insertion + several_taps[k] - low,
                        (one.stop - 1) * axis.insertion + several_taps[k] - low + 1,
                        axis.insertion,
                    )
                    for one, axis, several_taps, k, low in zip(box[1:], axes, taps, tap, lows, strict=True)
                ]
                part = total[(box[0], *there)]
                met = products[(..., *tap, slice(None))]
                if single:
                    part[...] = met
                else:
                    part += met
        inside = total[(slice(None), *(slice(-low, axis.outputs - low) for axis, low in zip(axes, lows, strict=True)))]
        place = target[begin : begin + images]
        if bias is None:
            place[...] = inside
        else:
            np.add(inside, bias, out=place, casting="unsafe")


def _products_matrix(weights: Array) -> tuple[Array, bool]:
    """Weights [*taps, in, out] as [in, taps * out] or, where no copy is needed then, [in, out * taps]; and which."""
    dimensions = weights.ndim - 2
    ins, outs, taps = dimensions, dimensions + 1, tuple(range(dimensions))
    size = weights.shape[ins]
    if not _merges(weights, (*taps, outs)) and _merges(weights, (outs, *taps)):
        return weights.transpose(ins, outs, *taps).reshape(size, -1), False
    if _merges(weights, (*taps, outs)):
        return weights.transpose(ins, *taps, outs).reshape(size, -1), True
    return np.ascontiguousarray(weights.transpose(ins, *taps, outs)).reshape(size, -1), True


def _merges(weights: Array, axes: tuple[int, ...]) -> bool:
    """Whether some axes lie in memory as one."""
    wide = [axis for axis in axes if weights.shape[axis] > 1]
    return all(
        weights.strides[outer] == weights.strides[inner] * weights.shape[inner] for outer, inner in pairwise(wide)
    )


def _zeros(shape: tuple[int, ...], outs: int) -> Array:
    """Zeros [*shape, outs]; a few channels lie plane by plane."""
    if outs < PLANES:
        return np.moveaxis(np.zeros((outs, *shape), np.float32), 0, -1)
    return np.zeros((*shape, outs), np.float32)


def _products(rows: Array, matrix: Array, outs: int, scratch: Scratch) -> Array:
    """The product of two matrices, one plane for each column where channels are few."""
    shape = (len(rows), matrix.shape[1])
    if outs < PLANES:
        return np.matmul(matrix.T, rows.T, out=scratch.array(shape[::-1])).T
    return np.matmul(rows, matrix, out=scratch.array(shape))


def _gathered(view: Array, weights: Array, bias: Array | None, part: Array) -> None:
    """Gathered patches times weights.

    Args:
        view: float32 [N, *outputs, *taps, C].
        weights: float32 [*taps, C, O].
        bias: float32 [O] or None.
        part: [N, *outputs, O].
    """
    outs, counts = weights.shape[-1], part.shape[:-1]
    matrix = weights.reshape(-1, outs)
    patches, sums = Scratch(), Scratch()
    for box in runs(counts, run_rows(len(matrix))):
        place = part[box]
        rows = prod(place.shape[:-1])
        ready = place.flags.c_contiguous and place.dtype == np.float32
        values = place.reshape(rows, -1) if ready else sums.array((rows, outs))
        np.matmul(patches.matrix(view[box], rows), matrix, out=values)
        if bias is not None:
            np.add(values.reshape(place.shape), bias, out=place, casting="unsafe")
        elif not ready:
            with np.errstate(over="ignore"):
                place[...] = values.reshape(place.shape)


def _by_elements(view: Array, weights: Array, bias: Array | None, part: Array) -> None:
    """Patches times the weights of groups of a few channels each.

    Args:
        view: float32 [N, *outputs, *taps, C].
        weights: float32 [groups, *taps, C / groups, O / groups].
        bias: float32 [O] or None.
        part: [N, *outputs, O].
    """
    groups, taps, ins, outs = len(weights), weights.shape[1:-2], weights.shape[-2], weights.shape[-1]
    counts = part.shape[:-1]
    totals, products = Scratch(), Scratch()
    for box in runs(counts, run_rows(groups * (ins + 2 * outs))):
        place = part[box]
        shape = (*place.shape[:-1], groups, outs)
        total, product_ = totals.array(shape), products.array(shape)
        total[...] = 0 if bias is None else bias.reshape(groups, outs)
        for tap in np.ndindex(*taps):
            met = view[box][(..., *tap, slice(None))].reshape(*place.shape[:-1], groups, ins)
            for channel in range(ins):
                factors = weights[(slice(None), *tap, channel)]
                total += np.multiply(met[..., channel, None], factors, out=product_)
        with np.errstate(over="ignore"):
            place[...] = total.reshape(place.shape)
