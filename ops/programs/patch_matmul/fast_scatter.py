"""Every position of an image times all taps at once, the products added up where they belong."""

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np

from device.numbers.formats import Array
from device.numbers.integers import div_up
from ops.frame.axis import FrameAxis, count_met_taps, output_phases
from ops.programs.patch_matmul.gather import Piece, Scratch, merges, places, run_rows, runs

SUM_BYTES = 4 << 20  # of images that are added up at a time
PLANES = 16  # channels up to which an image is better added up plane by plane
LEAST_TOGETHER = 64  # positions that a matrix is multiplied with at a time: it is read anew for the next
MULTIPLIED = 32  # multiplications of BLAS in the time of a move, as measured on one core with AVX-512
ADDING = 4  # moves for a product that is added: written, read, added to what is read and written


class _Sums(NamedTuple):
    """Where products go.

    Attributes:
        axes: Of the patches; their step is 1.
        taps: For each axis, where each tap of the first position adds to, counted from the first output.
        lows: The first place of each axis that anything adds to, likewise.
        lengths: Places of each axis.
        single: No output meets the image under more than one tap.
        matrix: float32 [in, taps * out] or [in, out * taps].
        kinds: Its columns: (*taps, out) or (out, *taps).
        tap_first: Which of them.
        scratch: Memory for products.
    """

    axes: Sequence[FrameAxis]
    taps: Sequence[Sequence[int]]
    lows: Sequence[int]
    lengths: Sequence[int]
    single: bool
    matrix: Array
    kinds: tuple[int, ...]
    tap_first: bool
    scratch: Scratch


def _singly(axes: Sequence[FrameAxis]) -> bool:
    """Whether no output meets the image under more than one tap."""
    return all(len(phase.taps) < 2 for axis in axes for phase in output_phases(axis))


def scatters(axes: Sequence[FrameAxis], batch: int, weights: Array) -> bool:
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
    copied = 0 if merges(weights, tuple(range(weights.ndim - 1))) else weights.size
    gathered = 0 if single else 2 * batch * met * ins
    products = prod(axis.input_length * axis.taps for axis in axes)
    added = batch * products * outs * (1 if single else ADDING)
    needless = batch * (products - met) * ins * outs // MULTIPLIED
    return bool(added + needless < gathered + copied)


def scattered(
    axes: Sequence[FrameAxis], image: Array, weights: Array, bias: Array | None, result: Array
) -> Iterator[Piece]:
    """Every position times all taps, added up in the result, some images in each piece.

    Args:
        axes: Of the patches; their step is 1.
        image: float32 [N, *spatial, C], contiguous.
        weights: float32 [*taps, C, O].
        bias: float32 [O] or None.
        result: [N, *out_shape, O].
    """
    outs, tap_counts = weights.shape[-1], weights.shape[:-2]
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
    matrix, tap_first = _products_matrix(weights, prod(image.shape[:-1]))
    kinds = (*tap_counts, outs) if tap_first else (outs, *tap_counts)
    sums = _Sums(axes, taps, lows, lengths, _singly(axes), matrix, kinds, tap_first, Scratch())
    target, positions = result[places(axes)], prod(image.shape[1:-1])
    several = div_up(max(LEAST_TOGETHER, min(run_rows(matrix.shape[1]), len(image) * positions // 2)), positions)
    several = max(1, min(several, SUM_BYTES // (4 * outs * prod(lengths))))
    for begin in range(0, len(image), several):
        images = slice(begin, begin + several)
        yield partial(_add_up, sums, image[images], bias, target[images])


def _add_up(sums: _Sums, image: Array, bias: Array | None, place: Array) -> None:
    """The sums of some images, put in their place."""
    tap_counts, outs = sums.kinds[:-1] if sums.tap_first else sums.kinds[1:], place.shape[-1]
    total = _zeros((len(image), *sums.lengths), outs)
    for box in runs(image.shape[:-1], run_rows(sums.matrix.shape[1])):
        positions = image[box]
        shape = positions.shape[:-1]
        products = _products(positions.reshape(-1, positions.shape[-1]), sums.matrix, outs, sums.scratch)
        products = products.reshape(*shape, *sums.kinds)
        if not sums.tap_first:
            products = np.moveaxis(products, len(shape), -1)
        for tap in np.ndindex(*tap_counts):
            there = (
                slice(
                    one.start * axis.insertion + several_taps[k] - low,
                    (one.stop - 1) * axis.insertion + several_taps[k] - low + 1,
                    axis.insertion,
                )
                for one, axis, several_taps, k, low in zip(box[1:], sums.axes, sums.taps, tap, sums.lows, strict=True)
            )
            part = total[(box[0], *there)]
            met = products[(..., *tap, slice(None))]
            if sums.single:
                part[...] = met
            else:
                part += met
    inside = total[
        (slice(None), *(slice(-low, axis.outputs - low) for axis, low in zip(sums.axes, sums.lows, strict=True)))
    ]
    if bias is None:
        place[...] = inside
    else:
        np.add(inside, bias, out=place, casting="unsafe")


def _products_matrix(weights: Array, positions: int) -> tuple[Array, bool]:
    """Weights as a matrix for so many positions, and whether taps are the outer ones of its columns.

    Args:
        weights: float32 [*taps, in, out].
        positions: That it is multiplied with. Few of them do not pay for a copy that puts the channels of a product,
            which are added up together, side by side.

    Returns:
        [in, taps * out] and True, or [in, out * taps] and False.
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
