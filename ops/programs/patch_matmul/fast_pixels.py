"""Pixels times patches with BLAS: the weight gradient, summed in runs of positions that stay in the cache.

Products of runs are made side by side and added up in the order of the runs, so that threads leave no trace.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from threading import Condition

import numpy as np

from device.numbers.formats import Array
from ops.programs.patch_matmul.bundles import NARROW, bundle_size
from ops.programs.patch_matmul.gather import Each, Margin, Piece, Scratch, do, run_rows, runs
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
    if groups > 1 and max(ins, outs) <= NARROW:
        view, sums = Margin(other, axes).patches(patches.axes), OrderedSum()
        numbers = image.shape[-1] + other.shape[-1]
        each(do, list(_pieces(sums, image, view, numbers, partial(_product_by_elements, groups))))
        return sums.total.reshape(groups, *patches.taps, ins, outs)
    size, scratch = bundle_size(groups, ins, outs), (Scratch(), Scratch())
    bundles: list[OrderedSum] = []
    pieces: list[Piece] = []
    for number in range(groups // size):
        of_image, of_other = (slice(number * size * n, (number + 1) * size * n) for n in (ins, outs))
        view = Margin(np.ascontiguousarray(other[..., of_other]), axes).patches(patches.axes)
        rows, columns = np.ascontiguousarray(image[..., of_image]), taps * size * outs
        bundles.append(OrderedSum())
        pieces.extend(_pieces(bundles[-1], rows, view, columns, partial(_product, scratch)))
    each(do, pieces)
    own = _diagonals([sums.total for sums in bundles], size, ins, taps, outs)
    return own.reshape(groups, *patches.taps, ins, outs)


def _pieces(
    sums: OrderedSum, image: Array, view: Array, numbers: int, multiply: Callable[[Array, Array, bool], Array]
) -> Iterator[Piece]:
    """The products of all runs.

    Args:
        sums: What they are added to.
        image: float32 [N, *positions, I].
        view: float32 [N, *positions, *taps, O].
        numbers: That are moved for each position.
        multiply: Makes the product of a run of both; the third argument says whether it is kept.
    """
    for number, box in enumerate(runs(image.shape[:-1], run_rows(numbers))):
        yield partial(sums.add, number, partial(multiply, image[box], view[box], number == 0))


def _product(scratch: tuple[Scratch, Scratch], image: Array, view: Array, kept: bool) -> Array:
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


def _product_by_elements(groups: int, image: Array, view: Array, _: bool) -> Array:
    """[N, *positions, I] and [N, *positions, *taps, O] summed over positions, as [groups, taps, in, out]."""
    counts = image.shape[:-1]
    ins, outs = image.shape[-1] // groups, view.shape[-1] // groups
    taps = view.shape[len(counts) : -1]
    total = np.empty((groups, prod(taps), ins, outs), np.float32)
    left = image.reshape(-1, groups, ins)
    for number, tap in enumerate(np.ndindex(*taps)):
        right = view[(..., *tap, slice(None))].reshape(-1, groups, outs)
        total[:, number] = np.einsum("rgi,rgo->gio", left, right)
    return total
