"""Patches times weights with BLAS: float32 products and sums, in runs of positions that stay in the cache.

Patches times weights can be had in two ways: patches are gathered and multiplied, or every position of the image is
multiplied with all taps at once and the products are added up where they belong. Whatever moves fewer numbers is done.
Runs that do not depend on each other are pieces of work, which may be done side by side; they are cut alike for any
number of threads.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from device.numbers.block_floats import div_up
from device.numbers.formats import Array
from ops.programs.patch_matmul.bundles import bundle_size, dense_bundles
from ops.programs.patch_matmul.direct import LEAST_CHANNELS, add_up_directly, direct, whole
from ops.programs.patch_matmul.elements import add_up_elements, elements
from ops.programs.patch_matmul.fast_scatter import scattered, scatters
from ops.programs.patch_matmul.gather import (
    LEAST_PIECES,
    Each,
    Margin,
    Piece,
    Scratch,
    copy_in_pieces,
    do,
    merges,
    places,
    put,
    runs,
    shared_rows,
)
from ops.programs.patch_matmul.shifted import multiply_shifted, shifted
from ops.programs.patch_matmul.tap_copies import in_one_piece
from ops.programs.patch_matmul.work import PatchMatmul
from ops.window import PaddedAxis, index_of, output_phases


def patch_matmul(
    work: PatchMatmul, image: Array, weights: Array, bias: Array | None, result: Array, each: Each
) -> None:
    """Patches times weights, written to their places.

    Args:
        image: float32 [N, *spatial, C], contiguous.
        weights: float32 [groups, *taps, C / groups, O / groups].
        bias: float32 [O] or None.
        result: [N, *out_shape, O].
        each: Carries out a function for each of several pieces, which do not depend on each other.
    """
    axes = work.patches.axes
    groups, taps, ins, outs = len(weights), weights.shape[1:-2], weights.shape[-2], weights.shape[-1]
    if groups > 1 and ins == outs == 1 and whole(axes, result.shape[1:-1]) and result.flags.c_contiguous:
        layer = elements(axes, len(image))
        if layer is not None:
            add_up_elements(layer, image, weights[..., 0, 0], bias, result, each)
            return
    if groups > 1 and max(ins, outs) == 1:
        padded = _margin(axes, image, each, 1)
        each(do, list(_each_phase(axes, padded, 0, weights, bias, result, _by_elements)))
        return
    if _shifted(work, image, weights, bias, result, each):
        return
    if _directly(work, image, weights, bias, result, each):
        return
    size = bundle_size(groups, ins, outs)
    dense = dense_bundles(weights.reshape(groups, -1, ins, outs), size)
    dense = dense.reshape(-1, *taps, size * ins, size * outs)
    adding = scatters(axes, len(image), dense[0])
    margin = None if adding else _margin(axes, image, each, len(dense))
    pieces: list[Piece] = []
    for number, matrices in enumerate(dense):
        of_image, of_result = (slice(number * size * n, (number + 1) * size * n) for n in (ins, outs))
        added = None if bias is None else bias[of_result]
        if margin is None:
            ours = np.ascontiguousarray(image[..., of_image])
            pieces.extend(scattered(axes, ours, matrices, added, result[..., of_result]))
        else:
            multiply = partial(_gathered, each)
            pieces.extend(_each_phase(axes, margin, number, matrices, added, result[..., of_result], multiply))
    each(do, pieces)


def _shifted(work: PatchMatmul, image: Array, weights: Array, bias: Array | None, result: Array, each: Each) -> bool:
    """Multiplies images that lie shifted, if channels are too few to stay where they lie, and says so; as above."""
    axes, (ins, outs) = work.patches.axes, weights.shape[-2:]
    if min(ins, outs) >= LEAST_CHANNELS or not whole(axes, result.shape[1:-1]) or not result.flags.c_contiguous:
        return False
    layer = shifted(axes, len(image), len(weights), (ins, outs))
    if layer is None:
        return False
    multiply_shifted(layer, image, weights, bias, result, each)
    return True


def _directly(work: PatchMatmul, image: Array, weights: Array, bias: Array | None, result: Array, each: Each) -> bool:
    """Multiplies patches where they lie, if that takes less than to gather them, and says so; arguments as above."""
    axes = work.patches.axes
    groups, ins, outs = len(weights), weights.shape[-2], weights.shape[-1]
    size = bundle_size(groups, ins, outs, least=LEAST_CHANNELS)
    if not whole(axes, result.shape[1:-1]) or not result.flags.c_contiguous:
        return False
    layer = direct(axes, len(image), (size * ins, size * outs), groups // size)
    if layer is None:
        return False
    dense = weights if size == 1 else dense_bundles(weights.reshape(groups, -1, ins, outs), size)
    add_up_directly(layer, image, in_one_piece(dense, each), bias, result, each)
    return True


def _margin(axes: Sequence[PaddedAxis], image: Array, each: Each, parts: int) -> Margin:
    """The image, in some parts, with the zeros that any output phase reaches."""
    return Margin(image, [[phase.axis for phase in output_phases(axis)] for axis in axes], each, parts=parts)


def _each_phase(
    axes: Sequence[PaddedAxis],
    margin: Margin,
    number: int,
    weights: Array,
    bias: Array | None,
    result: Array,
    multiply: Callable[[Array, Array, Array | None, Array, tuple[Scratch, Scratch]], Iterator[Piece]],
) -> Iterator[Piece]:
    """Every output phase of patches [N, *outputs, *taps, C] of one part with its taps of weights [..., in, out]."""
    phases = [output_phases(axis) for axis in axes]
    scratch = (Scratch(), Scratch())
    for combination in product(*phases):
        dense = tuple(phase.axis for phase in combination)
        part = result[places(dense)]
        if all(axis.kernel for axis in dense):
            taps: list[Any] = [index_of(phase.taps) for phase in combination]
            view = margin.patches(dense, number)
            yield from multiply(view, weights[(..., *taps, slice(None), slice(None))], bias, part, scratch)
        else:
            part[...] = 0 if bias is None else bias


def _gathered(
    each: Each, view: Array, weights: Array, bias: Array | None, part: Array, scratch: tuple[Scratch, Scratch]
) -> Iterator[Piece]:
    """Gathered patches times weights.

    Args:
        each: Carries out a function for each of several pieces.
        view: float32 [N, *outputs, *taps, C].
        weights: float32 [*taps, C, O].
        bias: float32 [O] or None.
        part: [N, *outputs, O].
        scratch: Memory for patches, and for sums.
    """
    counts = part.shape[:-1]
    stored = np.moveaxis(weights, -2, 0)
    if prod(counts) < weights.shape[-1] and merges(stored, tuple(range(stored.ndim - 1))):
        yield from _as_stored(each, view, stored, bias, part, scratch)
        return
    matrix = _matrix(weights, each)
    for box in runs(counts, shared_rows(len(matrix), prod(counts))):
        yield partial(_gathered_run, view[box], matrix, bias, part[box], scratch)


def _as_stored(
    each: Each, view: Array, weights: Array, bias: Array | None, part: Array, scratch: tuple[Scratch, Scratch]
) -> Iterator[Piece]:
    """The same where patches are fewer than weights, which lie as [C, *taps, O]: patches are turned, and not they."""
    counts, outs = view.shape[: part.ndim - 1], part.shape[-1]
    turned = np.empty((*counts, view.shape[-1], *view.shape[len(counts) : -1]), np.float32)
    copy_in_pieces(np.moveaxis(turned, len(counts), -1), view, each)
    patches, matrix = turned.reshape(prod(counts), -1), weights.reshape(-1, outs)
    many = max(div_up(outs, LEAST_PIECES), 2 * len(patches))  # each piece reads all patches
    for channels in (slice(first, first + many) for first in range(0, outs, many)):
        added = None if bias is None else bias[channels]
        yield partial(_run_as_stored, patches, matrix.T[channels], added, part[..., channels], scratch[1])


def _run_as_stored(patches: Array, matrix: Array, bias: Array | None, place: Array, scratch: Scratch) -> None:
    """Some channels of `_as_stored`: the larger operand comes first, which BLAS likes better."""
    sums = np.matmul(matrix, patches.T, out=scratch.array((len(matrix), len(patches))))
    put(sums.T.reshape(place.shape), bias, place)


def _matrix(weights: Array, each: Each) -> Array:
    """Weights [*taps, in, out] as a matrix [taps * in, out]; copied so that the outer channels stay outside."""
    outs = weights.shape[-1]
    if merges(weights, tuple(range(weights.ndim - 1))):
        return weights.reshape(-1, outs)
    if weights.strides[-1] < weights.strides[-2]:
        copied = np.empty(weights.shape, np.float32)
        copy_in_pieces(np.moveaxis(copied, -2, 0), np.moveaxis(weights, -2, 0), each)
        return copied.reshape(-1, outs)
    copied = np.empty((outs, *weights.shape[:-1]), np.float32)
    copy_in_pieces(copied, np.moveaxis(weights, -1, 0), each)
    return copied.reshape(outs, -1).T


def _gathered_run(
    view: Array, matrix: Array, bias: Array | None, place: Array, scratch: tuple[Scratch, Scratch]
) -> None:
    """One run of `_gathered`."""
    patches, sums = scratch
    rows = prod(place.shape[:-1])
    ready = place.dtype == np.float32 and merges(place, tuple(range(place.ndim - 1)))
    values = place.reshape(rows, -1) if ready else sums.array((rows, matrix.shape[1]))
    np.matmul(patches.matrix(view, rows), matrix, out=values)
    if bias is not None or not ready:
        put(values.reshape(place.shape), bias, place)


def _by_elements(
    view: Array, weights: Array, bias: Array | None, part: Array, scratch: tuple[Scratch, Scratch]
) -> Iterator[Piece]:
    """Patches times the weights of groups of one channel.

    Args:
        view: float32 [N, *outputs, *taps, C].
        weights: float32 [C, *taps, 1, 1].
        bias: float32 [C] or None.
        part: [N, *outputs, C].
        scratch: Memory for products, and for sums.
    """
    counts, factors = part.shape[:-1], np.ascontiguousarray(weights[..., 0, 0].T).T
    for box in runs(counts, shared_rows(3 * len(weights), prod(counts))):
        if bias is not None:
            yield partial(_run_by_elements, view[box], factors, bias, part[box], scratch)
        else:
            yield partial(_run_of_single_channels, view[box], factors, part[box])


def _run_of_single_channels(view: Array, factors: Array, place: Array) -> None:
    """A run of `_by_elements` without bias, in one pass over the sums; factors are [C, *taps]."""
    counts, channels = list(range(place.ndim - 1)), view.ndim - 1
    taps = list(range(len(counts), channels))
    sums = np.einsum(view, [*counts, *taps, channels], factors, [channels, *taps], [*counts, channels])
    with np.errstate(over="ignore"):
        place[...] = sums


def _run_by_elements(view: Array, factors: Array, bias: Array, place: Array, scratch: tuple[Scratch, Scratch]) -> None:
    """A run of `_by_elements` with a bias."""
    terms, total = (one.array(place.shape) for one in scratch)
    total[...] = bias
    for tap in np.ndindex(*factors.shape[1:]):
        total += np.multiply(view[(..., *tap, slice(None))], factors[(slice(None), *tap)], out=terms)
    with np.errstate(over="ignore"):
        place[...] = total
