"""Pixels times patches with BLAS: the weight gradient, summed in runs of positions that stay in the cache.

Products of runs are made side by side and added up in the order of the runs, so that threads leave no trace.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from threading import Condition
from typing import Any

import numpy as np

from device.numbers.formats import Array
from ops.programs.patch_matmul.bundles import bundle_size
from ops.programs.patch_matmul.direct import LEAST_CHANNELS
from ops.programs.patch_matmul.direct_pixels import direct_pixels, sum_directly
from ops.programs.patch_matmul.gather import Each, Margin, Piece, Scratch, do, run_rows, runs
from ops.programs.patch_matmul.shifted_pixels import shifted_pixels, sum_shifted
from ops.programs.patch_matmul.work import Patches


class OrderedSum:
    """A sum of products in their order, whichever thread has one first.

    Pieces are begun in order, so that a product waits only for such as are being made.
    """

    def __init__(self) -> None:
        self._total: Array | None = None
        self._next = 0
        self._turns = Condition()

    @property
    def total(self) -> Array:
        """The sum so far, of one product at least."""
        assert self._total is not None
        return self._total

    def add(self, number: int, make: Callable[[], Array]) -> None:
        """Adds a product; one that cannot be made takes its turn, too, so that no other waits for it.

        Args:
            number: Its place in the order, from 0.
            make: Makes it; product 0 is kept and written over, others may lie in memory that is used again.
        """
        made: Array | None = None
        try:
            made = make()
        finally:
            with self._turns:
                self._turns.wait_for(lambda: self._next == number)
                if made is not None:
                    self._total = made if self._total is None else np.add(self._total, made, out=self._total)
                self._next += 1
                self._turns.notify_all()


def pixel_matmul(patches: Patches, image: Array, other: Array, each: Each) -> Array:
    """Adds up the products of an image's channels and the patches of another.

    Args:
        patches: The patches of the other image, one for each position of the first.
        image: float32 [N, *positions, I].
        other: float32 [N, *spatial, O].
        each: Carries out a function for each of several pieces, begun in order.

    Returns:
        float32 [groups, *taps, I / groups, O / groups].
    """
    groups, taps = patches.groups, patches.tap_count
    ins, outs = image.shape[-1] // groups, other.shape[-1] // groups
    axes = [[axis] for axis in patches.axes]
    if groups > 1 and max(ins, outs) == 1:
        view = Margin(other, axes, each).patches(patches.axes)
        return _by_elements(image, view, groups, each).reshape(groups, *patches.taps, ins, outs)
    sums = _shifted(patches, image, other, each)
    if sums is None:
        sums = _directly(patches, image, other, each)
    if sums is not None:
        return sums
    size, scratch = bundle_size(groups, ins, outs), (Scratch(), Scratch())
    margin = Margin(other, axes, each, parts=groups // size)
    bundles: list[OrderedSum] = []
    pieces: list[Piece] = []
    for number in range(groups // size):
        ours, view = image[..., number * size * ins : (number + 1) * size * ins], margin.patches(patches.axes, number)
        bundles.append(OrderedSum())
        pieces.extend(_pieces(bundles[-1], ours, view, scratch))
    each(do, pieces)
    own = _diagonals([sums.total for sums in bundles], size, ins, taps, outs)
    return own.reshape(groups, *patches.taps, ins, outs)


def _shifted(patches: Patches, image: Array, other: Array, each: Each) -> Array | None:
    """The sums from images that lie shifted, where channels are few; arguments and result as above."""
    groups = patches.groups
    ins, outs = image.shape[-1] // groups, other.shape[-1] // groups
    few = min(ins, outs) < LEAST_CHANNELS
    layer = shifted_pixels(patches.axes, len(image), groups, (ins, outs)) if few else None
    if layer is None:
        return None
    sums = sum_shifted(layer, np.ascontiguousarray(image), np.ascontiguousarray(other), each)
    return sums.reshape(groups, *patches.taps, ins, outs)


def _directly(patches: Patches, image: Array, other: Array, each: Each) -> Array | None:
    """The sums without gathered patches, where that takes less; arguments and result as above."""
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


def _pieces(sums: OrderedSum, image: Array, view: Array, scratch: tuple[Scratch, Scratch]) -> Iterator[Piece]:
    """The products of all runs.

    Args:
        sums: What they are added to.
        image: float32 [N, *positions, I].
        view: float32 [N, *positions, *taps, O].
        scratch: Memory for patches, and for products.
    """
    counts = image.shape[:-1]
    for number, box in enumerate(runs(counts, run_rows(prod(view.shape[len(counts) :])))):
        yield partial(sums.add, number, partial(_product, scratch, image[box], view[box], kept=number == 0))


def _product(scratch: tuple[Scratch, Scratch], image: Array, view: Array, *, kept: bool) -> Array:
    """[N, *positions, I] and [N, *positions, *taps, O] summed over positions, as [I, taps * O]."""
    patches, products = scratch
    rows = image.reshape(-1, image.shape[-1])
    matrix = patches.matrix(view, len(rows))
    shape = (rows.shape[1], matrix.shape[1])
    return np.matmul(rows.T, matrix, out=None if kept else products.array(shape))


def _diagonals(bundles: list[Array], size: int, ins: int, taps: int, outs: int) -> Array:
    """Of each bundle [size * ins, taps * size * outs], where groups meet themselves: [groups, taps, ins, outs]."""
    whole = bundles[0][None] if len(bundles) == 1 else np.stack(bundles)
    apart = whole.reshape(-1, size, ins, taps, size, outs)
    own = [apart[:, group, :, :, group] for group in range(size)]
    together = own[0][:, None] if size == 1 else np.stack(own, axis=1)
    return together.transpose(0, 1, 3, 2, 4).reshape(-1, taps, ins, outs)


def _by_elements(image: Array, view: Array, groups: int, each: Each) -> Array:
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
