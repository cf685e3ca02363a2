"""Patches times weights with BLAS: float32 products and sums, whatever the order in which a program adds them.

Products are made where their operands lie (`direct`), or of patches that are gathered in runs of positions that stay in
the cache. Runs that do not depend on each other are pieces of work, which may be done side by side; they are cut alike
for any number of threads.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import prod
from operator import call

import numpy as np

from device.numbers.formats import Array
from ops.programs.patch_matmul.direct import add_up_directly, sum_directly
from ops.programs.patch_matmul.gather import (
    LEAST_PIECES,
    Each,
    PhaseOperands,
    Piece,
    Scratch,
    added_up,
    by_phases,
    contiguous,
    dense_bundles,
    own_weights,
    padded,
    patches_of,
    put,
    run_rows,
    runs,
    shared_rows,
)
from ops.programs.patch_matmul.op import Patches, PatchMatmul


def patch_matmul(op: PatchMatmul, image: Array, weights: Array, bias: Array | None, result: Array, each: Each) -> None:
    """Patches of a contiguous image [N, *spatial, C] times weights, written to their places in [N, *out_shape, O].

    Weights are float32 [groups, *taps, C / groups, O / groups], the bias is [O] or None.
    """
    axes, pieces = op.patches.axes, list[Piece]()
    if not add_up_directly(axes, image, weights, bias, result, each):
        for operands in by_phases(axes, image, weights, bias, result, each):
            pieces.extend(_gathered(operands, bias, op.patches.bundles, each))
    each(call, pieces)


def _gathered(operands: PhaseOperands, bias: Array | None, bundles: int, each: Each) -> Iterator[Piece]:
    """Gathered patches times the weights of bundles of groups."""
    _, view, weights, place = operands
    counts, (patches, sums) = place.shape[:-1], (Scratch(), Scratch())
    dense = dense_bundles(weights, bundles)
    ins, outs = dense.shape[-2:]
    if abs(dense.strides[-2]) < abs(dense.strides[-1]):  # BLAS takes either order; this one takes less to copy
        matrices = contiguous(np.moveaxis(dense, -1, 1), each).reshape(bundles, outs, -1).swapaxes(1, 2)
    else:
        matrices = contiguous(dense, each).reshape(bundles, -1, outs)

    def compute(bundle: int, box: tuple[slice, ...]) -> None:
        of_result = slice(bundle * outs, (bundle + 1) * outs)
        to = place[box][..., of_result]
        rows = prod(to.shape[:-1])
        gathered = patches.matrix(view[box][..., bundle * ins : (bundle + 1) * ins], rows)
        values = np.matmul(gathered, matrices[bundle], out=sums.array((rows, outs)))
        if bias is not None:
            values += bias[of_result]
        put(values.reshape(to.shape), to)

    rows = shared_rows(matrices.shape[1], prod(counts))
    return (partial(compute, *at) for at in product(range(bundles), runs(counts, rows)))


def pixel_matmul(patches: Patches, image: Array, other: Array, each: Each) -> Array:
    """Sums of products of an image's channels and the patches of another: [groups, *taps, I / groups, O / groups].

    The image is [N, *positions, I], the other one [N, *spatial, O], with a patch for each position; all are float32.
    """
    image, other = np.ascontiguousarray(image), np.ascontiguousarray(other)
    own = sum_directly(patches.axes, image, other, patches.groups, each)
    if own is None:
        view = patches_of(*padded(other, [[axis] for axis in patches.axes], each), patches.axes)
        own = own_weights(_gathered_sums(image, view, patches, each), patches.groups // patches.bundles)
    return own.reshape(patches.groups, *patches.taps, *own.shape[-2:])


def _gathered_sums(image: Array, view: Array, patches: Patches, each: Each) -> Array:
    """The sums of gathered patches [N, *positions, *taps, O]: [bundles, taps, I / bundles, O / bundles]."""
    bundles, taps = patches.bundles, patches.tap_count
    ins, outs, scratch = image.shape[-1] // bundles, view.shape[-1] // bundles, (Scratch(), Scratch())
    boxes = list(runs(image.shape[:-1], run_rows(taps * outs)))
    parts = min(len(boxes), LEAST_PIECES)  # fixed, so that sums do not depend on the number of threads
    sums = np.empty((parts, bundles, ins, taps * outs), np.float32)

    def add_up(bundle: int, part: int) -> None:
        gathered, products = scratch
        total = sums[part, bundle]
        for number, box in enumerate(boxes[part::parts]):
            rows = image[box][..., bundle * ins : (bundle + 1) * ins].reshape(-1, ins)
            matrix = gathered.matrix(view[box][..., bundle * outs : (bundle + 1) * outs], len(rows))
            out = np.matmul(rows.T, matrix, out=products.array(total.shape) if number else total)
            if number:
                total += out

    each(call, [partial(add_up, *at) for at in product(range(bundles), range(parts))])
    return added_up(sums).reshape(bundles, ins, taps, outs).swapaxes(1, 2)
