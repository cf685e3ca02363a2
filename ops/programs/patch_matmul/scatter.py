"""Every position of an image times all taps at once, the products added up where they belong."""

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np

from device.numbers.formats import Array, div_up
from ops.programs.patch_matmul.gather import LEAST_PIECES, Piece, Scratch, merges, places, run_rows, runs
from ops.window import PaddedAxis, count_met_taps, output_phases


class SumPlaces(NamedTuple):
    """Where products belong."""

    axes: tuple[PaddedAxis, ...]  # Of the patches; their step is 1
    # For each axis, where each tap of the first position adds to, counted from the first output
    taps: tuple[tuple[int, ...], ...]
    lows: tuple[int, ...]  # The first place of each axis that anything adds to, likewise
    lengths: tuple[int, ...]  # Places of each axis
    single: bool  # Every sum has one product at most
    tap_first: bool  # Products of a position are [*taps, O], not [O, *taps]


def add_products(places: SumPlaces, box: tuple[slice, ...], products: Array, total: Array) -> None:
    """Add the products of the images and positions of a box to the total [N, *lengths, O], tap by tap.

    Products are float32 [positions, taps * O] or [positions, O * taps].
    """
    counts, channels = [side.stop - side.start for side in box], total.shape[-1]
    tap_counts = [len(offsets) for offsets in places.taps]
    if places.tap_first:
        products = products.reshape(*counts, *tap_counts, channels)
    else:
        products = np.moveaxis(products.reshape(*counts, channels, *tap_counts), len(counts), -1)
    for tap in np.ndindex(*tap_counts):
        there = (
            slice(
                span.start * axis.input_dilation + offsets[k] - low,
                (span.stop - 1) * axis.input_dilation + offsets[k] - low + 1,
                axis.input_dilation,
            )
            for span, axis, offsets, k, low in zip(box[1:], places.axes, places.taps, tap, places.lows, strict=True)
        )
        part = total[(box[0], *there)]
        met = products[(..., *tap, slice(None))]
        if places.single:
            part[...] = met
        else:
            part += met


SUM_BYTES = 4 << 20  # of images that are added up at a time
PLANES = 16  # channels up to which an image is better added up plane by plane
LEAST_TOGETHER = 64  # positions that a matrix is multiplied with at a time: it is read anew for the next
MULTIPLIED = 32  # multiplications of BLAS in the time of a move, as measured on one core with AVX-512
ADDING = 4  # moves for a product that is added: written, read, added to what is read and written


class _Sums(NamedTuple):
    """How products are made and where they go."""

    places: SumPlaces  # Where products belong
    matrix: Array  # float32 [in, taps * out] or [in, out * taps]
    scratch: Scratch  # Memory for products


def _singly(axes: Sequence[PaddedAxis]) -> bool:
    """Whether no output meets the image under more than one tap."""
    return all(len(phase.taps) < 2 for axis in axes for phase in output_phases(axis))


def scatters(axes: Sequence[PaddedAxis], batch: int, weights: Array) -> bool:
    """Whether adding products up in their places takes less than gathering patches, for weights [*taps, in, out]."""
    if any(axis.stride > 1 for axis in axes):
        return False
    ins, outs = weights.shape[-2:]
    single = _singly(axes)
    met = prod(map(count_met_taps, axes))
    copied = 0 if merges(weights, tuple(range(weights.ndim - 1))) else weights.size
    gathered = 0 if single else 2 * batch * met * ins
    products = prod(axis.input_length * axis.kernel for axis in axes)
    added = batch * products * outs * (1 if single else ADDING)
    needless = batch * (products - met) * ins * outs // MULTIPLIED
    return bool(added + needless < gathered + copied)


def scattered(
    axes: Sequence[PaddedAxis], image: Array, weights: Array, bias: Array | None, result: Array
) -> Iterator[Piece]:
    """Every position times all taps, added up in the result, some images or some channels in each piece.

    Each piece reads the whole other operand of its product, so the larger operand is cut. The image is float32 [N,
    *spatial, C], contiguous, the weights are [*taps, C, O], the bias [O] or None, and the result [N, *out_shape, O].
    The axes of the patches have step 1.
    """
    outs, tap_counts = weights.shape[-1], weights.shape[:-2]
    taps = [[-(axis.start + tap * axis.dilation) for tap in range(axis.kernel)] for axis in axes]
    for number, offsets in enumerate(taps):
        if weights.strides[number] < 0:  # mirrored taps, in the order in which they lie in memory
            weights = np.flip(weights, number)
            offsets.reverse()
    lows = [min(0, *several) for several in taps]
    lengths = [
        max(max(several) + (axis.input_length - 1) * axis.input_dilation + 1, axis.outputs) - low
        for axis, several, low in zip(axes, taps, lows, strict=True)
    ]
    target, positions = result[places(axes)], prod(image.shape[1:-1])
    by_channels = LEAST_TOGETHER <= len(image) * positions < prod(tap_counts) * outs
    many = max(PLANES, div_up(outs, LEAST_PIECES)) if by_channels else outs
    together = len(image) * positions if by_channels else len(image) * positions // 2
    together = max(LEAST_TOGETHER, min(run_rows(prod(tap_counts) * many), together))
    several = max(1, min(div_up(together, positions), SUM_BYTES // (4 * many * prod(lengths))))
    singly, scratch = _singly(axes), Scratch()
    for first in range(0, outs, many):
        channels = slice(first, first + many)
        matrix, tap_first = _products_matrix(weights[..., channels], len(image) * positions)
        where = SumPlaces(tuple(axes), tuple(map(tuple, taps)), tuple(lows), tuple(lengths), singly, tap_first)
        sums = _Sums(where, matrix, scratch)
        added = None if bias is None else bias[channels]
        for begin in range(0, len(image), several):
            images = slice(begin, begin + several)
            yield partial(_add_up, sums, image[images], added, target[images][..., channels])


def _add_up(sums: _Sums, image: Array, bias: Array | None, place: Array) -> None:
    """Compute the sums of some images in their place."""
    places, outs = sums.places, place.shape[-1]
    total = _zeros((len(image), *places.lengths), outs)
    for box in runs(image.shape[:-1], run_rows(sums.matrix.shape[1])):
        positions = image[box]
        rows = positions.reshape(-1, positions.shape[-1])
        add_products(places, box, _products(rows, sums.matrix, outs, sums.scratch), total)
    inside = total[
        (slice(None), *(slice(-low, axis.outputs - low) for axis, low in zip(places.axes, places.lows, strict=True)))
    ]
    if bias is None:
        place[...] = inside
    else:
        np.add(inside, bias, out=place, casting="unsafe")


def _products_matrix(weights: Array, positions: int) -> tuple[Array, bool]:
    """Weights [*taps, in, out] as [in, taps * out] and True, or as [in, out * taps] and False.

    The second order puts the channels of a product, which are added up together, side by side; few positions do not pay
    for that copy.
    """
    dimensions = weights.ndim - 2
    ins, outs, taps = dimensions, dimensions + 1, tuple(range(dimensions))
    size = weights.shape[ins]
    if not merges(weights, (*taps, outs)) and positions < size:
        if merges(weights, (outs, *taps)):
            return weights.transpose(ins, outs, *taps).reshape(size, -1), False
        if weights.strides[ins] < weights.strides[outs]:
            return np.ascontiguousarray(weights.transpose(outs, *taps, ins)).reshape(-1, size).T, False
    return np.ascontiguousarray(weights.transpose(ins, *taps, outs)).reshape(size, -1), True


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
