"""Copies between images and cells (`ops.programs.patch_matmul.shifts`): which there are, and how they are made."""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from device.numbers.formats import Array
from ops.programs.patch_matmul.shifts import Cells, positions_of, runs_of

_BACK: Final = (1, 0, 2, 3, 4, 7, 8, 5, 6)  # columns of copies the other way


class Asked(NamedTuple):
    """Cells of an axis that are wanted: the first, and how many."""

    first: int
    cells: int


class Bundles(NamedTuple):
    """So many bundles of channels are copied: how far they lie apart in the target and in the source."""

    times: int
    target: int
    source: int


def copies_of(
    cells: Sequence[Cells], asked: Sequence[Asked], pitch: Sequence[int], channels: tuple[int, int], *, folded: bool
) -> Array:
    """The copies from an image [*spatial, C] to a bundle's cells [planes, *cells, residues side by side, channels].

    Args:
        cells: Positions of each axis in cells.
        asked: Which cells of each axis there are; what holds no positions is not copied.
        pitch: Cells from one to the next on each axis.
        channels: Of a bundle, and of all.
        folded: Residues of the last axis lie side by side, not on planes.

    Returns:
        int64 [copies, 9]: where each begins in cells and image, rows, columns, numbers in one piece, and how far rows
        and columns lie apart in both.
    """
    own, every = channels
    runs = [runs_of(one, *those) for one, those in zip(cells, asked, strict=True)]
    sizes = [one.size for one in cells]
    width = own
    if folded:
        runs[-1], width, sizes[-1] = positions_of(cells[-1], *asked[-1]), own * sizes[-1], 1
    into = [width * n for n in pitch[:-1]] + [own if folded else width]
    apart = [every * prod(one.length for one in cells[axis + 1 :]) for axis in range(len(cells))]
    plane = width * asked[0].cells * pitch[0]
    found: list[tuple[int, ...]] = []
    for combination in product(*runs):
        residue, begin, source = 0, 0, 0
        for run, size, to, of in zip(combination, sizes, into, apart, strict=True):
            residue, begin, source = residue * size + run.residue, begin + run.cell * to, source + run.position * of
        steps = [
            (run.positions, to, size * of) for run, size, to, of in zip(combination, sizes, into, apart, strict=True)
        ]
        *outer, (rows, to_row, of_row), (columns, to_column, of_column) = [(1, 0, 0), *steps]
        together = columns if to_column == of_column == own else 1
        for index in product(*(range(count) for count, _, _ in outer)):
            on, off = (sum(n * step[side] for n, step in zip(index, outer, strict=True)) for side in (1, 2))
            found.append((
                residue * plane + begin + on, source + off, rows, columns // together, own * together,
                to_row, to_column, of_row, of_column,
            ))  # fmt: skip
    return np.array(found, np.int64).reshape(-1, len(_BACK))


def back(copies: Array) -> Array:
    """The same copies from cells to the image."""
    return np.ascontiguousarray(copies[:, _BACK])


def gaps_of(copies: Array, numbers: int) -> Array:
    """What copies to a bundle leave out: int64 [gaps, 2], the first number of each and the one behind its last."""
    left_out = np.ones(numbers + 2, np.int8)
    left_out[[0, -1]] = 0
    for begin, _, *shape, to_row, to_column, _, _ in copies.tolist():
        _strided(left_out[begin + 1 :], tuple(shape), (to_row, to_column, 1))[...] = 0
    return np.flatnonzero(np.diff(left_out)).reshape(-1, 2)


def copy_cells(target: Array, source: Array, copies: Array, bundles: Bundles) -> None:
    """Makes copies for several bundles.

    Args:
        target: Flat, contiguous, from the first number of bundle 0.
        source: Likewise, float32.
        copies: As `copies_of` or `back` has them.
        bundles: How many, and where.
    """
    with np.errstate(over="ignore"):
        for begin, first, *shape, to_row, to_column, of_row, of_column in copies.tolist():
            whole = (bundles.times, *shape)
            into = _strided(target[begin:], whole, (bundles.target, to_row, to_column, 1))
            into[...] = _strided(source[first:], whole, (bundles.source, of_row, of_column, 1))


def _strided(flat: Array, shape: tuple[int, ...], apart: tuple[int, ...]) -> Array:
    """Numbers that lie so many numbers apart."""
    return as_strided(flat, shape, [flat.itemsize * n for n in apart])
