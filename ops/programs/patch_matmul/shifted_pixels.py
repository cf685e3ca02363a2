"""Pixels times patches of few channels: every tap one product, of images that lie shifted against each other.

Some rows of some bundles are worked on at a time, within the cache. Rows are dealt to sections, each of which has sums
of its own, where there are too few bundles to be shared out.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from device.host.compiling import loops_of, worth_loading
from device.host.products import Loop, Matrix, Operands, Products, add_products, blas_adds, blas_words
from device.numbers.block_floats import div_up
from device.numbers.formats import Array
from ops.programs.patch_matmul.cell_copies import Bundles, copy_cells, gaps_of
from ops.programs.patch_matmul.gather import Each, Scratch, do
from ops.programs.patch_matmul.shifted_bands import PIECES, bands_of, numbers_of, numpy_seconds, runs_of_products
from ops.programs.patch_matmul.shifted_layer import MOST_KEPT, Bundled, bundled, weights_of
from ops.window import PaddedAxis


class Band(NamedTuple):
    """Some rows of cells of the first axis."""

    copies: tuple[Array, Array]  # Of pixels, and of what they meet, to cells
    gaps: tuple[Array, Array]  # Zeros among both
    numbers: tuple[int, int]  # Of a bundle of both
    products: Products  # The products, for the bundles of a piece
    words: Array  # What a compiled loop takes of BLAS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftedPixels:
    """The work on a weight gradient."""

    bundled: Bundled  # The layer; its outputs are the pixels
    channels: tuple[int, int]  # Of a bundle of pixels and of what they meet
    shape: tuple[int, int, int, int]  # Bundles, matrices, and rows and columns of one
    together: int  # Bundles of a piece
    bands: tuple[Band, ...]  # All rows
    sections: int
    seconds: float  # What an image takes without compiled loops


@lru_cache(MOST_KEPT)
def shifted_pixels(
    axes: tuple[PaddedAxis, ...], batch: int, groups: int, channels: tuple[int, int]
) -> ShiftedPixels | None:
    """The work on a weight gradient; None if it takes less in another way.

    Args:
        axes: Of the patches of the other image; their outputs are the pixels.
        channels: Of a group of pixels and of the other image.
    """
    ins, outs = channels
    one = bundled(axes, groups, (outs, ins), summed=True) if blas_adds() else None
    if one is None:
        return None
    parts, (columns, width) = groups // one.size, one.widths(outs, ins)
    cuts, together = bands_of(one, (columns, width), parts, batch)
    bands = tuple(_band(one, first, rows, channels, parts, together) for first, rows in cuts)
    return ShiftedPixels(
        bundled=one,
        channels=(one.size * ins, one.size * outs),
        shape=(parts, prod(one.layer.matrices), width, columns),
        together=together,
        bands=bands,
        sections=min(batch * len(bands), div_up(PIECES, parts // together)),
        seconds=parts * sum(numpy_seconds(band.products, band.numbers) for band in bands),
    )


def _band(one: Bundled, begin: int, rows: int, channels: tuple[int, int], parts: int, together: int) -> Band:
    """The work on some rows of so many bundles; channels are of a group."""
    layer, (ins, outs) = one.layer, channels
    columns, width = one.widths(outs, ins)
    sources, targets = layer.cells(rows)
    calls = [
        (
            width,
            last - first,
            (met.target * targets + first) * width,
            (met.source * sources + met.cells + first) * columns,
            met.matrix * width * columns,
        )
        for first, last in runs_of_products(layer.positions(rows), (width, columns))
        for met in layer.meetings
    ]
    other, image = numbers_of(one, (columns, width), rows)
    products = Products(
        calls=np.array(calls, np.int64),
        columns=columns,
        left=Matrix(True, width),
        right=Matrix(False, columns),
        total_distance=columns,
        loops=(Loop(together, image, other, prod(layer.matrices) * width * columns), Loop(1)),
    )
    of_other, of_image = layer.copies(begin, rows, (one.size * outs, one.size * ins), parts)
    gaps = gaps_of(of_image, image), gaps_of(of_other, other)
    return Band((of_image, of_other), gaps, (image, other), products, blas_words(products))


class _Operands(NamedTuple):
    """What is multiplied, sums of all sections, and memory for cells of both images."""

    image: Array
    other: Array
    sums: Array
    left: Scratch
    right: Scratch


def sum_shifted(work: ShiftedPixels, image: Array, other: Array, each: Each) -> Array:
    """The products of all pixels, added up.

    Args:
        image: float32 [N, *positions, I], contiguous.
        other: float32 [N, *spatial, O], contiguous.
        each: Carries out a function for each of several pieces.

    Returns:
        float32 [groups, taps, I / groups, O / groups].
    """
    sums = np.zeros((work.sections, *work.shape), np.float32)
    operands = _Operands(_flat(image), _flat(other), sums, Scratch(), Scratch())
    loads = worth_loading("ops.programs.patch_matmul.shifted_loops", len(image) * work.seconds)
    piece = _compiled_piece if loads else _piece
    rows = [(number, band) for number in range(len(image)) for band in work.bands]
    cuts = [len(rows) * section // work.sections for section in range(work.sections + 1)]
    pieces = product(range(work.sections), range(0, work.shape[0], work.together))
    each(do, [partial(piece, work, n, rows[cuts[n] : cuts[n + 1]], first, operands) for n, first in pieces])
    total: Array = sums[0]
    for more in sums[1:]:
        total += more
    ins, outs = (channels // work.bundled.size for channels in work.channels)
    return weights_of(work.bundled, total, (outs, ins))


def _flat(images: Array) -> Array:
    """[N, numbers]; read-only in any case, so that loops are compiled for one kind of argument."""
    flat = images.reshape(len(images), -1)
    flat.flags.writeable = False
    return flat


def _compiled_piece(
    work: ShiftedPixels, section: int, rows: list[tuple[int, Band]], first: int, operands: _Operands
) -> None:
    """`_piece` in a loop for each band."""
    loops, sums = (
        loops_of("ops.programs.patch_matmul.shifted_loops"),
        operands.sums[section, first : first + work.together],
    )
    for number, band in rows:
        left = operands.left.array((work.together, band.numbers[0]))
        loops.sum_up(
            band.words,
            (operands.image[number], operands.other[number]),
            sums,
            (left, operands.right.array((work.together, band.numbers[1]))),
            band.copies,
            band.gaps,
            band.products.calls,
            (first * work.channels[0], first * work.channels[1]),
            work.channels,
        )


def _piece(work: ShiftedPixels, section: int, rows: list[tuple[int, Band]], first: int, operands: _Operands) -> None:
    """Some rows of images and some bundles, added to the sums of a section."""
    sums, sides = operands.sums[section], ((operands.image, operands.left), (operands.other, operands.right))
    for number, band in rows:
        cells: list[Array] = []
        for (images, scratch), copies, apart, size in zip(sides, band.copies, work.channels, band.numbers, strict=True):
            made = scratch.array((work.together, size))
            made[...] = 0
            copy_cells(made.reshape(-1), images[number, first * apart :], copies, Bundles(work.together, size, apart))
            cells.append(made)
        multiplied = Operands(cells[0], cells[1], sums, total_first=first * sums[0].size)
        add_products(band.products, multiplied, 0, len(band.products.calls))
