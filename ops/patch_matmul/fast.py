"""The patch programs with BLAS: float32 products and sums, in runs of patches that stay in the cache."""

from math import prod

import numpy as np

from device.formats import Array
from ops.patch_matmul.gather import runs

RUN_BYTES = 2 << 20  # of gathered patches
LEAST_ROWS = 256  # below that, BLAS is not worth its calls
NARROW = 2  # channels of a group on one side, from which BLAS is


def patch_matmul(view: Array, weights: Array, bias: Array | None, part: Array) -> None:
    """Patches times weights, written into a part of the result.

    Args:
        view: float32 [N, *outputs, *taps, C].
        weights: float32 [groups, *taps, C / groups, O / groups].
        bias: float32 [O] or None.
        part: [N, *outputs, O].
    """
    groups, ins, outs = weights.shape[0], weights.shape[-2], weights.shape[-1]
    matrices = weights.reshape(groups, -1, outs)
    counts = part.shape[:-1]
    depthwise = groups > 1 and ins <= NARROW
    for box in runs(counts, _rows(ins if not depthwise else groups * ins, prod(weights.shape[1:-2]))):
        met = view[box]
        rows = prod(met.shape[: len(counts)])
        if depthwise:
            values = _by_elements(met.reshape(rows, -1, groups, ins), matrices)
        elif groups == 1:
            values = met.reshape(rows, -1) @ matrices[0]
        else:
            values = np.empty((rows, groups * outs), np.float32)
            for group, matrix in enumerate(matrices):
                gathered = met[..., group * ins : (group + 1) * ins].reshape(rows, -1)
                values[:, group * outs : (group + 1) * outs] = gathered @ matrix
        if bias is not None:
            values += bias
        place = part[box]
        with np.errstate(over="ignore"):
            place[...] = values.reshape(place.shape)


def pixel_matmul(image: Array, view: Array, sums: Array) -> None:
    """Adds up the products of an image's channels and the patches of another.

    Args:
        image: float32 [N, *positions, I].
        view: float32 [N, *positions, *taps, O].
        sums: float32 [groups, *taps, I / groups, O / groups], added to.
    """
    groups, ins, outs = sums.shape[0], sums.shape[-2], sums.shape[-1]
    taps = prod(sums.shape[1:-2])
    counts = image.shape[:-1]
    total = np.zeros((groups, ins, taps * outs), np.float32)
    narrow = groups > 1 and ins * outs <= NARROW
    for box in runs(counts, _rows(outs if not narrow else groups * outs, taps)):
        left, right = image[box], view[box]
        rows = prod(left.shape[:-1])
        left = left.reshape(rows, groups, ins)
        if narrow:
            total += np.einsum("rgi,rtgo->gito", left, right.reshape(rows, taps, groups, outs)).reshape(total.shape)
            continue
        for group in range(groups):
            gathered = right[..., group * outs : (group + 1) * outs].reshape(rows, -1)
            total[group] += left[:, group].T @ gathered
    sums += total.reshape(groups, ins, taps, outs).swapaxes(1, 2).reshape(sums.shape)


def _by_elements(met: Array, matrices: Array) -> Array:
    """[rows, taps, groups, in] times [groups, taps * in, out], for a few inputs each, as [rows, groups * out]."""
    rows, taps, groups, ins = met.shape
    outs = matrices.shape[-1]
    by_tap = matrices.reshape(groups, taps, ins, outs)
    total = np.zeros((rows, groups, outs), np.float32)
    for tap in range(taps):
        for channel in range(ins):
            total += met[:, tap, :, channel, None] * by_tap[:, tap, channel]
    return total.reshape(rows, -1)


def _rows(channels: int, taps: int) -> int:
    """Patches of a run."""
    return max(LEAST_ROWS, RUN_BYTES // (4 * channels * taps))
