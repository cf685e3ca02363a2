"""Patches of an image as a view, phase by phase; the runs in which they are multiplied; bundles of groups."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from math import prod
from operator import call
from threading import local
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from device.host.threads import locked
from device.memory.memory_config import TILE
from device.numbers.formats import Array
from ops.window import OutputPhase, PaddedAxis, index_of, margins, output_phases

RUN_BYTES = 2 << 20  # of gathered patches
COPIED_BYTES = 512 << 10  # that are worth another piece of a copy
LEAST_PIECES = 4  # that runs are cut into where each has rows enough: more would be no faster, fewer cannot be shared
LEAST_ROWS = 256  # below that, BLAS is not worth its calls

Piece: TypeAlias = Callable[[], None]  # of work that does not depend on other pieces
Each: TypeAlias = Callable[[Callable[[Piece], None], Iterable[Piece]], None]  # a function for each of several


class PhaseOperands(NamedTuple):
    """The operands of an output phase, and the positions of its outputs."""

    phases: tuple[OutputPhase, ...]  # Of each axis
    patches: Array  # float32 [N, *outputs, *taps, C], a view of the padded image
    weights: Array  # [groups, *taps, in, out]: a view of those taps that meet inputs
    place: Array  # A view [N, *outputs, O] of the result


def by_phases(
    axes: Sequence[PaddedAxis], image: Array, weights: Array, bias: Array | None, result: Array, each: Each = locked
) -> Iterator[PhaseOperands]:
    """Every output phase with inputs; other phases are filled with the bias, or with zeros.

    The image is [N, *spatial, C], the weights are [groups, *taps, in, out], the result is [N, *out_shape, O].
    """
    phases = [output_phases(axis) for axis in axes]
    pixels, before = padded(image, [[phase.axis for phase in several] for several in phases], each)
    for combination in product(*phases):
        dense = tuple(phase.axis for phase in combination)
        place = result[places(dense)]
        if all(axis.kernel for axis in dense):
            taps: list[Any] = [index_of(phase.taps) for phase in combination]
            met = weights[(slice(None), *taps)]
            yield PhaseOperands(combination, patches_of(pixels, before, dense), met, place)
        else:
            put(np.zeros(place.shape[-1], np.float32) if bias is None else bias, place)


def padded(image: Array, reaches: Sequence[Sequence[PaddedAxis]], each: Each = locked) -> tuple[Array, tuple[int, ...]]:
    """A float32 image [N, *spatial, C] with the zeros that axes without inserted zeros read, and the leading zeros."""
    spans = [margins(axes) for axes in reaches]
    if not any(map(any, spans)) and image.dtype == np.float32 and image.flags.c_contiguous:
        return image, (0,) * len(spans)
    lengths = [n + sum(span) for n, span in zip(image.shape[1:-1], spans, strict=True)]
    grown = np.zeros((len(image), *lengths, image.shape[-1]), np.float32)
    inside = [slice(before, before + n) for (before, _), n in zip(spans, image.shape[1:-1], strict=True)]
    copy_in_pieces(grown[(slice(None), *inside)], image, each)
    return grown, tuple(before for before, _ in spans)


def patches_of(pixels: Array, before: Sequence[int], axes: Sequence[PaddedAxis]) -> Array:
    """A read-only view [N, *outputs, *taps, C] of a `padded` image, for axes with taps and without inserted zeros."""
    corner = pixels[(slice(None), *(slice(axis.start + n, None) for axis, n in zip(axes, before, strict=True)))]
    images, *spatial, channels = pixels.strides
    return as_strided(
        corner,
        (len(pixels), *(axis.outputs for axis in axes), *(axis.kernel for axis in axes), pixels.shape[-1]),
        (
            images,
            *(axis.stride * apart for axis, apart in zip(axes, spatial, strict=True)),
            *(axis.dilation * apart for axis, apart in zip(axes, spatial, strict=True)),
            channels,
        ),
        writeable=False,
    )


def copy_in_pieces(target: Array, source: Array, each: Each) -> None:
    """Copies an array into another of its shape, in runs of its first axes; a small array at once."""
    if source.nbytes <= COPIED_BYTES:
        np.copyto(target, source)
        return
    boxes = runs(source.shape, max(1, COPIED_BYTES // 4))
    each(call, [partial(np.copyto, target[box], source[box]) for box in boxes])


def contiguous(array: Array, each: Each) -> Array:
    """A contiguous copy of a float32 array in any memory order; the axis with the largest stride is split."""
    if array.flags.c_contiguous:
        return array
    copied = np.empty(array.shape, np.float32)
    apart = int(np.argmax(np.abs(array.strides)))
    copy_in_pieces(np.moveaxis(copied, apart, 0), np.moveaxis(array, apart, 0), each)
    return copied


def put(sums: Array, place: Array) -> None:
    """Writes sums to their positions, rounded to the format there."""
    with np.errstate(over="ignore"):
        place[...] = sums


def added_up(sums: Array) -> Array:
    """Sums of several pieces added in order, in the array of the first."""
    total: Array = sums[0]
    for more in sums[1:]:
        total += more
    return total


def places(axes: Sequence[PaddedAxis]) -> tuple[slice, ...]:
    """The index of the outputs of some axes in [N, *out_shape, O]."""
    return (slice(None), *(axis.places for axis in axes))


def runs(counts: Sequence[int], rows: int) -> Iterator[tuple[slice, ...]]:
    """Boxes of at most ``rows`` positions that partition ``counts``, in order.

    The slowest axes are split to single positions, the axis after them into pieces; other axes stay whole.
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
    """Number of positions of a run, if each position moves this many numbers."""
    return max(LEAST_ROWS, RUN_BYTES // (4 * numbers))


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


def bundle_count(groups: int, *channels: int, least: int = TILE) -> int:
    """The largest number of bundles of groups at least ``least`` wide; channels are the totals on every side."""
    for size in range(1, groups + 1):
        if groups % size == 0 and all(side // groups * size >= least for side in channels):
            return groups // size
    return 1


def dense_bundles(weights: Array, bundles: int) -> Array:
    """[groups, *taps, in, out] as [bundles, *taps, in, out], with zeros where groups do not meet themselves."""
    groups, *taps, ins, outs = weights.shape
    size = groups // bundles
    if size == 1:
        return weights
    dense = np.zeros((bundles, *taps, size, ins, size, outs), np.float32)
    for group in range(size):
        dense[..., group, :, group, :] = weights[group::size]
    return dense.reshape(bundles, *taps, size * ins, size * outs)


def own_weights(dense: Array, size: int) -> Array:
    """[groups, taps, in, out] from [bundles, taps, in, out] with ``size`` groups each: the diagonal blocks.

    The inverse of `dense_bundles`.
    """
    bundles, taps, ins, outs = dense.shape
    apart = dense.reshape(bundles, taps, size, ins // size, size, outs // size)
    return np.stack([apart[:, :, group, :, group] for group in range(size)], 1).reshape(
        bundles * size, taps, ins // size, outs // size
    )
