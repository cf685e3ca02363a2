"""Pixels times patches with BLAS: the weight gradient, summed in runs of positions that stay in the cache."""

from math import prod

import numpy as np

from device.numbers.formats import Array
from ops.programs.patch_matmul.bundles import NARROW, bundle_size
from ops.programs.patch_matmul.gather import Margin, Scratch, run_rows, runs
from ops.programs.patch_matmul.work import Patches


def pixel_matmul(patches: Patches, image: Array, other: Array) -> Array:
    """Adds up the products of an image's channels and the patches of another.

    Args:
        patches: The patches of the other image, one for each position of the first.
        image: float32 [N, *positions, I].
        other: float32 [N, *spatial, O].

    Returns:
        float32 [groups, *taps, I / groups, O / groups].
    """
    groups, taps = patches.groups, patches.tap_count
    ins, outs = image.shape[-1] // groups, other.shape[-1] // groups
    axes = [[axis] for axis in patches.axes]
    if groups > 1 and max(ins, outs) <= NARROW:
        view = Margin(other, axes).patches(patches.axes)
        return _sums_by_elements(image, view, groups).reshape(groups, *patches.taps, ins, outs)
    size = bundle_size(groups, ins, outs)
    bundles = []
    for number in range(groups // size):
        of_image, of_other = (slice(number * size * n, (number + 1) * size * n) for n in (ins, outs))
        view = Margin(np.ascontiguousarray(other[..., of_other]), axes).patches(patches.axes)
        bundles.append(_sums(np.ascontiguousarray(image[..., of_image]), view))
    own = _diagonals(np.stack(bundles), size, ins, taps, outs)
    return own.reshape(groups, *patches.taps, ins, outs)


def _sums(image: Array, view: Array) -> Array:
    """[N, *positions, I] and [N, *positions, *taps, O] summed over positions, as [I, taps * O]."""
    counts, ins = image.shape[:-1], image.shape[-1]
    columns = prod(view.shape[len(counts) :])
    patched, more = Scratch(), Scratch()
    total: Array | None = None
    for box in runs(counts, run_rows(columns)):
        rows = image[box].reshape(-1, ins)
        ours = patched.matrix(view[box], len(rows))
        if total is None:
            total = rows.T @ ours
        else:
            total += np.matmul(rows.T, ours, out=more.array(total.shape))
    assert total is not None
    return total


def _diagonals(whole: Array, size: int, ins: int, taps: int, outs: int) -> Array:
    """[bundles, size * ins, taps * size * outs] as [groups, taps, ins, outs]: only where groups meet themselves."""
    apart = whole.reshape(-1, size, ins, taps, size, outs)
    own = [apart[:, group, :, :, group] for group in range(size)]
    return np.stack(own, axis=1).transpose(0, 1, 3, 2, 4).reshape(-1, taps, ins, outs)


def _sums_by_elements(image: Array, view: Array, groups: int) -> Array:
    """[N, *positions, I] and [N, *positions, *taps, O] summed over positions, as [groups, taps, in, out]."""
    counts = image.shape[:-1]
    ins, outs = image.shape[-1] // groups, view.shape[-1] // groups
    taps = view.shape[len(counts) : -1]
    total = np.zeros((groups, prod(taps), ins, outs), np.float32)
    for box in runs(counts, run_rows(image.shape[-1] + view.shape[-1])):
        left = image[box].reshape(-1, groups, ins)
        for number, tap in enumerate(np.ndindex(*taps)):
            right = view[box][(..., *tap, slice(None))].reshape(-1, groups, outs)
            total[:, number] += np.einsum("rgi,rgo->gio", left, right)
    return total
