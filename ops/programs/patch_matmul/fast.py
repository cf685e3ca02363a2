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

from device.numbers.formats import Array
from ops.programs.patch_matmul.depthwise import add_up_elements, elements
from ops.programs.patch_matmul.direct import LEAST_CHANNELS, add_up_directly, direct, direct_pixels, sum_directly, whole
from ops.programs.patch_matmul.gather import (
    LEAST_PIECES,
    Each,
    Margin,
    Piece,
    Scratch,
    bundle_size,
    copy_in_pieces,
    dense_bundles,
    do,
    in_one_piece,
    merges,
    places,
    put,
    run_rows,
    runs,
    shared_rows,
)
from ops.programs.patch_matmul.op import Patches, PatchMatmul
from ops.programs.patch_matmul.scatter import scattered, scatters
from ops.programs.patch_matmul.shifted import multiply_shifted, shifted, shifted_pixels, sum_shifted
from ops.window import PaddedAxis, index_of, output_phases


def patch_matmul(op: PatchMatmul, image: Array, weights: Array, bias: Array | None, result: Array, each: Each) -> None:
    """Patches of a contiguous image [N, *spatial, C] times weights, written to their places in [N, *out_shape, O].

    Weights are float32 [groups, *taps, C / groups, O / groups], the bias is [O] or None.
    """
    axes = op.patches.axes
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
    if _shifted(op, image, weights, bias, result, each):
        return
    if _directly(op, image, weights, bias, result, each):
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


def _shifted(op: PatchMatmul, image: Array, weights: Array, bias: Array | None, result: Array, each: Each) -> bool:
    """Whether shifted images were multiplied, for channels too few to stay in place; arguments as of `patch_matmul`."""
    axes, (ins, outs) = op.patches.axes, weights.shape[-2:]
    if min(ins, outs) >= LEAST_CHANNELS or not whole(axes, result.shape[1:-1]) or not result.flags.c_contiguous:
        return False
    layer = shifted(axes, len(image), len(weights), (ins, outs))
    if layer is None:
        return False
    multiply_shifted(layer, image, weights, bias, result, each)
    return True


def _directly(op: PatchMatmul, image: Array, weights: Array, bias: Array | None, result: Array, each: Each) -> bool:
    """Whether patches were multiplied in place, cheaper than gathered ones; arguments as of `patch_matmul`."""
    axes = op.patches.axes
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
    """Gathered patches [N, *outputs, *taps, C] times weights [*taps, C, O], written to `part` [N, *outputs, O].

    All are float32; `scratch` is memory for patches, and for sums.
    """
    counts = part.shape[:-1]
    matrix = _matrix(weights, each)
    for box in runs(counts, shared_rows(len(matrix), prod(counts))):
        yield partial(_gathered_run, view[box], matrix, bias, part[box], scratch)


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
    """Patches [N, *outputs, *taps, C] times the weights [C, *taps, 1, 1] of groups of one channel, written to `part`.

    `scratch` is memory for products, and for sums.
    """
    counts, factors = part.shape[:-1], np.ascontiguousarray(weights[..., 0, 0].T).T
    for box in runs(counts, shared_rows(3 * len(weights), prod(counts))):
        yield partial(_run_by_elements, view[box], factors, bias, part[box], scratch)


def _run_by_elements(
    view: Array, factors: Array, bias: Array | None, place: Array, scratch: tuple[Scratch, Scratch]
) -> None:
    """A run of `_by_elements`, tap by tap; factors are [C, *taps]."""
    terms, total = (memory.array(place.shape) for memory in scratch)
    total[...] = 0 if bias is None else bias
    for tap in np.ndindex(*factors.shape[1:]):
        total += np.multiply(view[(..., *tap, slice(None))], factors[(slice(None), *tap)], out=terms)
    with np.errstate(over="ignore"):
        place[...] = total


def pixel_matmul(patches: Patches, image: Array, other: Array, each: Each) -> Array:
    """Sums of products of an image's channels and the patches of another: [groups, *taps, I / groups, O / groups].

    The image is [N, *positions, I], the other one [N, *spatial, O], with a patch for each position; all are float32.
    """
    groups, taps = patches.groups, patches.tap_count
    ins, outs = image.shape[-1] // groups, other.shape[-1] // groups
    axes = [[axis] for axis in patches.axes]
    if groups > 1 and max(ins, outs) == 1:
        view = Margin(other, axes, each).patches(patches.axes)
        return _pixels_by_elements(image, view, groups, each).reshape(groups, *patches.taps, ins, outs)
    sums = _pixels_shifted(patches, image, other, each)
    if sums is None:
        sums = _pixels_directly(patches, image, other, each)
    if sums is not None:
        return sums
    size, scratch = bundle_size(groups, ins, outs), (Scratch(), Scratch())
    margin = Margin(other, axes, each, parts=groups // size)
    bundles: list[Array] = []
    pieces: list[Piece] = []
    for number in range(groups // size):
        ours, view = image[..., number * size * ins : (number + 1) * size * ins], margin.patches(patches.axes, number)
        boxes = list(runs(ours.shape[:-1], run_rows(prod(view.shape[ours.ndim - 1 :]))))
        parts = min(len(boxes), LEAST_PIECES)  # fixed, so that sums do not depend on the number of threads
        bundles.append(np.empty((parts, size * ins, taps * size * outs), np.float32))
        pieces.extend(
            partial(_sum_products, ours, view, boxes[part::parts], bundles[-1][part], scratch) for part in range(parts)
        )
    each(do, pieces)
    own = _diagonals([_added_up(sums) for sums in bundles], size, ins, taps, outs)
    return own.reshape(groups, *patches.taps, ins, outs)


def _pixels_shifted(patches: Patches, image: Array, other: Array, each: Each) -> Array | None:
    """The sums from shifted images, where channels are few; arguments and result as of `pixel_matmul`."""
    groups = patches.groups
    ins, outs = image.shape[-1] // groups, other.shape[-1] // groups
    few = min(ins, outs) < LEAST_CHANNELS
    layer = shifted_pixels(patches.axes, len(image), groups, (ins, outs)) if few else None
    if layer is None:
        return None
    sums = sum_shifted(layer, np.ascontiguousarray(image), np.ascontiguousarray(other), each)
    return sums.reshape(groups, *patches.taps, ins, outs)


def _pixels_directly(patches: Patches, image: Array, other: Array, each: Each) -> Array | None:
    """The sums without gathered patches, where that is cheaper; arguments and result as of `pixel_matmul`."""
    groups = patches.groups
    ins, outs = image.shape[-1] // groups, other.shape[-1] // groups
    size = bundle_size(groups, ins, outs, least=LEAST_CHANNELS)
    layer = direct_pixels(patches.axes, len(image), (size * ins, size * outs), groups // size)
    if layer is None:
        return None
    sums = sum_directly(layer, np.ascontiguousarray(image), np.ascontiguousarray(other), each)
    if size > 1:
        apart = sums.reshape(groups // size, -1, size, ins, size, outs)
        sums = np.stack([apart[:, :, group, :, group] for group in range(size)], axis=1)
    return sums.reshape(groups, *patches.taps, ins, outs)


def _sum_products(
    image: Array, view: Array, boxes: Sequence[tuple[slice, ...]], total: Array, scratch: tuple[Scratch, Scratch]
) -> None:
    """[N, *positions, I] and [N, *positions, *taps, O] summed over the positions of some boxes, as [I, taps * O]."""
    patches, products = scratch
    for number, box in enumerate(boxes):
        rows = image[box].reshape(-1, image.shape[-1])
        out = products.array(total.shape) if number else total
        np.matmul(rows.T, patches.matrix(view[box], len(rows)), out=out)
        if number:
            total += out


def _added_up(sums: Array) -> Array:
    """The sums of several parts added in order, in the array of the first."""
    total: Array = sums[0]
    for more in sums[1:]:
        total += more
    return total


def _diagonals(bundles: list[Array], size: int, ins: int, taps: int, outs: int) -> Array:
    """Of each bundle [size * ins, taps * size * outs], where groups meet themselves: [groups, taps, ins, outs]."""
    whole = bundles[0][None] if len(bundles) == 1 else np.stack(bundles)
    apart = whole.reshape(-1, size, ins, taps, size, outs)
    own = [apart[:, group, :, :, group] for group in range(size)]
    together = own[0][:, None] if size == 1 else np.stack(own, axis=1)
    return together.transpose(0, 1, 3, 2, 4).reshape(-1, taps, ins, outs)


def _pixels_by_elements(image: Array, view: Array, groups: int, each: Each) -> Array:
    """[N, *positions, I] and [N, *positions, *taps, O] summed over positions, as [groups, taps, in, out]."""
    counts = image.shape[:-1]
    ins, outs, taps = image.shape[-1] // groups, view.shape[-1] // groups, view.shape[len(counts) : -1]
    total = np.zeros((groups, prod(taps), ins, outs), np.float32)

    def add_up(number: int, tap: tuple[Any, ...]) -> None:
        met = view[(..., *tap, slice(None))]
        for box in runs(counts, run_rows(image.shape[-1] + view.shape[-1])):
            left, right = image[box].reshape(-1, groups, ins), met[box].reshape(-1, groups, outs)
            total[:, number] += np.einsum("rgi,rgo->gio", left, right)

    each(do, [partial(add_up, number, tap) for number, tap in enumerate(np.ndindex(*taps))])
    return total
