"""Patches of an image as a view: nothing is copied but the margin of zeros around it.

They are taken in runs of positions, which are copied into memory that is used again where a matrix is wanted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise, product
from math import prod
from threading import local
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from device.host.threads import locked
from device.memory.memory_config import TILE
from device.numbers.formats import Array, div_up
from ops.window import PaddedAxis, margins

RUN_BYTES = 2 << 20  # of gathered patches, or of products that are yet to be added up
COPIED_BYTES = 512 << 10  # that are worth another piece of a copy
LEAST_PIECES = 4  # that runs are cut into where each has rows enough: more would be no faster, fewer cannot be shared
LEAST_ROWS = 256  # below that, BLAS is not worth its calls

Piece: TypeAlias = Callable[[], None]  # of work that does not depend on other pieces
Each: TypeAlias = Callable[[Callable[[Piece], None], Iterable[Piece]], None]  # a function for each of several


class Margin:
    """An image with as many zeros around it as its patches reach.

    Attributes:
        pixels: float32 [parts, N, *spatial, C / parts]: parts of the channels lie apart.
        before: Zeros ahead of each axis.
    """

    def __init__(
        self, image: Array, reaches: Sequence[Sequence[PaddedAxis]], each: Each = locked, *, parts: int = 1
    ) -> None:
        """Pad an image [N, *spatial, C] as far as the axes in `reaches` read it, none with inserted zeros.

        Patches are taken of one of `parts` of the channels at a time.
        """
        spans = [margins(axes) for axes in reaches]
        self.before = tuple(before for before, _ in spans)
        pixels = np.moveaxis(image.reshape(*image.shape[:-1], parts, -1), -2, 0)
        lengths = (n + sum(span) for n, span in zip(image.shape[1:-1], spans, strict=True))
        if any(map(any, spans)) or pixels.dtype != np.float32 or not pixels.flags.c_contiguous:
            grown = np.zeros((parts, len(image), *lengths, image.shape[-1] // parts), np.float32)
            inside = (slice(b, b + n) for b, n in zip(self.before, image.shape[1:-1], strict=True))
            copy_in_pieces(grown[(slice(None), slice(None), *inside)], pixels, each)
            pixels = grown
        self.pixels = pixels

    def patches(self, axes: Sequence[PaddedAxis], part: int = 0) -> Array:
        """A read-only view [N, *outputs, *taps, C / parts] for axes with taps and without inserted zeros."""
        pixels = self.pixels[part]
        strides = pixels.strides
        corner = pixels[
            (
                slice(None),
                *(slice(axis.start + before, None) for axis, before in zip(axes, self.before, strict=True)),
            )
        ]
        return as_strided(
            corner,
            (len(pixels), *(axis.outputs for axis in axes), *(axis.kernel for axis in axes), pixels.shape[-1]),
            (
                strides[0],
                *(axis.stride * stride for axis, stride in zip(axes, strides[1:-1], strict=True)),
                *(axis.dilation * stride for axis, stride in zip(axes, strides[1:-1], strict=True)),
                strides[-1],
            ),
            writeable=False,
        )


def copy_in_pieces(target: Array, source: Array, each: Each) -> None:
    """Copies an array into another of its shape, a run of its first axes at a time; a small one at once."""
    if source.nbytes <= COPIED_BYTES:
        np.copyto(target, source)
        return
    boxes = runs(source.shape, max(1, COPIED_BYTES // 4))
    each(do, [partial(np.copyto, target[box], source[box]) for box in boxes])


def do(piece: Piece) -> None:
    """Does a piece of work."""
    piece()


def put(sums: Array, bias: Array | None, place: Array) -> None:
    """Sums in their place, in the format there; float32 [..., O] with a bias [O] or without."""
    if bias is not None:
        np.add(sums, bias, out=place, casting="unsafe")
    else:
        with np.errstate(over="ignore"):
            place[...] = sums


def merges(array: Array, axes: tuple[int, ...]) -> bool:
    """Whether some axes are contiguous in memory, like a single axis."""
    wide = [axis for axis in axes if array.shape[axis] > 1]
    return all(array.strides[outer] == array.strides[inner] * array.shape[inner] for outer, inner in pairwise(wide))


def places(axes: Sequence[PaddedAxis]) -> tuple[slice, ...]:
    """Where the outputs of some axes lie in [N, *out_shape, O]."""
    return (slice(None), *(axis.places for axis in axes))


def runs(counts: Sequence[int], rows: int) -> Iterator[tuple[slice, ...]]:
    """Boxes of at most ``rows`` positions that together hold every one of ``counts`` once, in order.

    The slowest axes are cut to single positions, the axis after them into pieces; the others stay whole.
    """
    whole = len(counts)
    while whole > 0 and prod(counts[whole - 1 :]) <= rows:
        whole -= 1
    if whole == 0:
        yield tuple(slice(0, count) for count in counts)
        return
    outer, count, inner = counts[: whole - 1], counts[whole - 1], tuple(slice(0, n) for n in counts[whole:])
    piece = max(1, rows // max(1, prod(counts[whole:])))
    for index in product(*map(range, outer)):
        for begin in range(0, count, piece):
            single = tuple(slice(i, i + 1) for i in index)
            yield (*single, slice(begin, min(begin + piece, count)), *inner)


def run_rows(numbers: int) -> int:
    """Positions of a run, for the given number of elements moved per position."""
    return max(LEAST_ROWS, RUN_BYTES // (4 * numbers))


def shared_rows(numbers: int, positions: int) -> int:
    """The same, but few enough that there are some runs of all positions, if it does not matter where they are cut."""
    return min(run_rows(numbers), max(LEAST_ROWS, div_up(positions, LEAST_PIECES)))


class Scratch(local):
    """Memory that each thread reuses from run to run: fresh pages cost more than the work on them."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.float32)

    def array(self, shape: tuple[int, ...]) -> Array:
        """float32 of a shape, contents undefined."""
        size = prod(shape)
        if self._memory.size < size:
            self._memory = np.empty(size, np.float32)
        return self._memory[:size].reshape(shape)

    def matrix(self, view: Array, rows: int) -> Array:
        """A view as a matrix: the view itself if it is contiguous, else a copy."""
        if view.flags.c_contiguous:
            return view.reshape(rows, -1)
        copied = self.array(view.shape)
        np.copyto(copied, view)
        return copied.reshape(rows, -1)


def in_one_piece(weights: Array, each: Each) -> Array:
    """Weights [parts, *taps, rows, columns] of any order in memory, contiguous: as they are, or with flat taps."""
    if weights.flags.c_contiguous:
        return weights
    source = weights.reshape(len(weights), -1, *weights.shape[-2:])
    copied = np.empty(source.shape, np.float32)
    copy_in_pieces(np.moveaxis(copied, -2, 0), np.moveaxis(source, -2, 0), each)
    return copied


BUNDLE = 32  # channels from which it is


def bundle_count(groups: int, *channels: int) -> int:
    """Bundles of groups: as many as leave each a tile wide or more on every side; channels are those of all groups."""
    for size in range(1, groups + 1):
        if groups % size == 0 and all(side // groups * size >= TILE for side in channels):
            return groups // size
    return 1


def bundle_size(groups: int, ins: int, outs: int, *, least: int = BUNDLE) -> int:
    """How many groups BLAS multiplies as one dense matrix, to have so many channels of each side if it can."""
    sizes = (size for size in range(1, groups + 1) if groups % size == 0)
    return next((size for size in sizes if size * min(ins, outs) >= least), groups)


def dense_bundles(weights: Array, size: int) -> Array:
    """[groups, taps, in, out] as [bundles, taps, size * in, size * out], zero where groups do not meet themselves."""
    if size == 1:
        return weights
    groups, taps, ins, outs = weights.shape
    dense = np.zeros((groups // size, taps, size, ins, size, outs), np.float32)
    for group in range(size):
        dense[:, :, group, :, group] = weights[group::size]
    return dense.reshape(groups // size, taps, size * ins, size * outs)
