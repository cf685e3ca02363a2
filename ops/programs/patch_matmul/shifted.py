"""Patches times weights of few channels: every tap one product, of images that lie shifted against each other.

Some rows of some bundles are a piece of work: their inputs are copied in cells, multiplied, and outputs copied to
their places, all within the cache. A compiled loop does so at once; without it the same is done step by step.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from device.host.compiling import loops_of, worth_loading
from device.host.products import Loop, Matrix, Operands, Products, add_products, blas_adds, blas_words
from device.numbers.formats import Array, div_up
from ops.programs.patch_matmul.gather import Each, Scratch, do
from ops.programs.patch_matmul.shifted_layer import (
    MOST_KEPT,
    PIECES,
    Bundled,
    Bundles,
    back,
    bands_of,
    bundled,
    copy_cells,
    gaps_of,
    matrices_of,
    numbers_of,
    numpy_seconds,
    runs_of_products,
    weights_of,
)
from ops.window import PaddedAxis


class Band(NamedTuple):
    """Some rows of cells of the first axis."""

    inputs: Array  # Copies of their inputs to cells
    outputs: Array  # Copies of their outputs from cells
    gaps: Array  # Inputs that are zeros
    numbers: tuple[int, int]  # Of a bundle of inputs and of outputs
    products: Products  # The products, for the bundles of a piece
    words: Array  # What a compiled loop takes of BLAS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shifted:
    """The work on a layer, for one image."""

    bundled: Bundled
    channels: tuple[int, int]  # Of a bundle of inputs and of outputs
    parts: int  # Bundles that there are
    together: int  # Bundles of a piece
    bands: tuple[Band, ...]  # All rows
    seconds: float  # What it takes without compiled loops


@lru_cache(MOST_KEPT)
def shifted(axes: tuple[PaddedAxis, ...], batch: int, groups: int, channels: tuple[int, int]) -> Shifted | None:
    """The work on a layer; None if it takes less in another way.

    The axes of the patches have all outputs that there are. Channels are those of a group of inputs and of outputs.
    """
    bundles = bundled(axes, groups, channels, summed=False) if blas_adds() else None
    if bundles is None:
        return None
    parts, widths, own = (
        groups // bundles.size,
        bundles.widths(*channels),
        (bundles.size * channels[0], bundles.size * channels[1]),
    )
    cuts, together = bands_of(bundles, widths, parts, batch)
    bands = []
    for first, rows in cuts:
        (inputs, outputs), numbers = bundles.layer.copies(first, rows, own, parts), numbers_of(bundles, widths, rows)
        result = _products(bundles, rows, widths, together)
        bands.append(Band(inputs, back(outputs), gaps_of(inputs, numbers[0]), numbers, result, blas_words(result)))
    seconds = parts * sum(numpy_seconds(band.products, band.numbers) for band in bands)
    return Shifted(
        bundled=bundles, channels=own, parts=parts, together=together, bands=tuple(bands), seconds=seconds,
    )  # fmt: skip


def _products(bundles: Bundled, rows: int, widths: tuple[int, int], together: int) -> Products:
    """The products for some rows of so many bundles."""
    layer, (width, columns) = bundles.layer, widths
    sources, targets = layer.cells(rows)
    calls = [
        (
            last - first,
            width,
            (met.source * sources + met.cells + first) * width,
            met.matrix * width * columns,
            (met.target * targets + first) * columns,
        )
        for first, last in runs_of_products(layer.positions(rows), widths)
        for met in layer.meetings
    ]
    inputs, outputs = numbers_of(bundles, widths, rows)
    return Products(
        calls=np.array(calls, np.int64),
        columns=columns,
        left=Matrix(False, width),
        right=Matrix(False, columns),
        total_distance=columns,
        loops=(Loop(together, inputs, prod(layer.matrices) * width * columns, outputs), Loop(1)),
    )


class _Operands(NamedTuple):
    """What is multiplied, and memory for cells of inputs and of outputs."""

    matrices: Array
    biases: Array
    inputs: Scratch
    outputs: Scratch


def multiply_shifted(op: Shifted, image: Array, weights: Array, bias: Array | None, result: Array, each: Each) -> None:
    """All outputs [N, *out_shape, O] of an image [N, *spatial, C], both contiguous, and a bias [O] or None.

    Weights are float32 [groups, *taps, C / groups, O / groups].
    """
    operands = _Operands(matrices_of(op.bundled, weights), _biases(op, bias), Scratch(), Scratch())
    seconds, ready = len(image) * op.seconds, result.dtype == np.float32
    loads = ready and worth_loading("ops.programs.patch_matmul.shifted_loops", seconds)
    piece = _compiled_piece if loads else _piece
    pairs = [(pixels.reshape(-1), place.reshape(-1)) for pixels, place in zip(image, result, strict=True)]
    for pixels, _ in pairs:
        pixels.flags.writeable = False  # always, so that loops are compiled for one kind of argument
    pieces = product(op.bands, range(0, op.parts, op.together), pairs)
    each(do, [partial(piece, op, band, first, pair, operands) for band, first, pair in pieces])


def _biases(op: Shifted, bias: Array | None) -> Array:
    """The bias of every bundle for a row of cells, or zeros: float32 [parts, columns of a row]."""
    layer = op.bundled.layer
    times = (layer.pitch[-2] if len(layer.pitch) > 1 else 1) * layer.side_by_side[1]
    if bias is None:
        return np.zeros((op.parts, times * op.channels[1]), np.float32)
    return np.tile(bias.reshape(op.parts, -1), (1, times))


def _compiled_piece(op: Shifted, band: Band, first: int, images: tuple[Array, Array], operands: _Operands) -> None:
    """`_piece` in one loop."""
    several = slice(first, first + op.together)
    cells = operands.inputs.array((op.together, band.numbers[0]))
    loops_of("ops.programs.patch_matmul.shifted_loops").add_up(
        band.words,
        images,
        operands.matrices[several],
        operands.biases[several],
        (cells, operands.outputs.array((op.together, band.numbers[1]))),
        (band.inputs, band.outputs),
        band.gaps,
        band.products.calls,
        (first * op.channels[0], first * op.channels[1]),
        op.channels,
    )


def _piece(op: Shifted, band: Band, first: int, images: tuple[Array, Array], operands: _Operands) -> None:
    """Compute the outputs of some rows of some bundles in their place."""
    (image, result), (ins, outs), together = images, op.channels, op.together
    inputs, outputs = (
        scratch.array((together, n))
        for scratch, n in zip((operands.inputs, operands.outputs), band.numbers, strict=True)
    )
    biases = operands.biases[first : first + together, None]
    inputs[...] = 0
    outputs.reshape(together, -1, biases.shape[-1])[...] = biases
    copy_cells(inputs.reshape(-1), image[first * ins :], band.inputs, Bundles(together, band.numbers[0], ins))
    multiplied = Operands(inputs, operands.matrices, outputs, right_first=first * operands.matrices[0].size)
    add_products(band.products, multiplied, 0, len(band.products.calls))
    copy_cells(result[first * outs :], outputs.reshape(-1), band.outputs, Bundles(together, outs, band.numbers[1]))


class PixelBand(NamedTuple):
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
    bands: tuple[PixelBand, ...]  # All rows
    sections: int
    seconds: float  # What an image takes without compiled loops


@lru_cache(MOST_KEPT)
def shifted_pixels(
    axes: tuple[PaddedAxis, ...], batch: int, groups: int, channels: tuple[int, int]
) -> ShiftedPixels | None:
    """The work on a weight gradient; None if it takes less in another way.

    The axes are those of the patches of the other image, whose outputs are the pixels. Channels are those of a group of
    pixels and of the other image.
    """
    ins, outs = channels
    bundles = bundled(axes, groups, (outs, ins), summed=True) if blas_adds() else None
    if bundles is None:
        return None
    parts, (columns, width) = groups // bundles.size, bundles.widths(outs, ins)
    cuts, together = bands_of(bundles, (columns, width), parts, batch)
    bands = tuple(_band(bundles, first, rows, channels, parts, together) for first, rows in cuts)
    return ShiftedPixels(
        bundled=bundles,
        channels=(bundles.size * ins, bundles.size * outs),
        shape=(parts, prod(bundles.layer.matrices), width, columns),
        together=together,
        bands=bands,
        sections=min(batch * len(bands), div_up(PIECES, parts // together)),
        seconds=parts * sum(numpy_seconds(band.products, band.numbers) for band in bands),
    )


def _band(bundles: Bundled, begin: int, rows: int, channels: tuple[int, int], parts: int, together: int) -> PixelBand:
    """The work on some rows of so many bundles; channels are of a group."""
    layer, (ins, outs) = bundles.layer, channels
    columns, width = bundles.widths(outs, ins)
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
    other, image = numbers_of(bundles, (columns, width), rows)
    products = Products(
        calls=np.array(calls, np.int64),
        columns=columns,
        left=Matrix(True, width),
        right=Matrix(False, columns),
        total_distance=columns,
        loops=(Loop(together, image, other, prod(layer.matrices) * width * columns), Loop(1)),
    )
    of_other, of_image = layer.copies(begin, rows, (bundles.size * outs, bundles.size * ins), parts)
    gaps = gaps_of(of_image, image), gaps_of(of_other, other)
    return PixelBand((of_image, of_other), gaps, (image, other), products, blas_words(products))


class _PixelOperands(NamedTuple):
    """What is multiplied, sums of all sections, and memory for cells of both images."""

    image: Array
    other: Array
    sums: Array
    left: Scratch
    right: Scratch


def sum_shifted(op: ShiftedPixels, image: Array, other: Array, each: Each) -> Array:
    """The products of all pixels, added up: float32 [groups, taps, I / groups, O / groups].

    The image is float32 [N, *positions, I], the other one [N, *spatial, O], both contiguous.
    """
    sums = np.zeros((op.sections, *op.shape), np.float32)
    operands = _PixelOperands(_flat(image), _flat(other), sums, Scratch(), Scratch())
    loads = worth_loading("ops.programs.patch_matmul.shifted_loops", len(image) * op.seconds)
    piece = _compiled_pixel_piece if loads else _pixel_piece
    rows = [(number, band) for number in range(len(image)) for band in op.bands]
    cuts = [len(rows) * section // op.sections for section in range(op.sections + 1)]
    pieces = product(range(op.sections), range(0, op.shape[0], op.together))
    each(do, [partial(piece, op, n, rows[cuts[n] : cuts[n + 1]], first, operands) for n, first in pieces])
    total: Array = sums[0]
    for more in sums[1:]:
        total += more
    ins, outs = (channels // op.bundled.size for channels in op.channels)
    return weights_of(op.bundled, total, (outs, ins))


def _flat(images: Array) -> Array:
    """[N, numbers]; read-only in any case, so that loops are compiled for one kind of argument."""
    flat = images.reshape(len(images), -1)
    flat.flags.writeable = False
    return flat


def _compiled_pixel_piece(
    op: ShiftedPixels, section: int, rows: list[tuple[int, PixelBand]], first: int, operands: _PixelOperands
) -> None:
    """`_pixel_piece` in a loop for each band."""
    loops, sums = (
        loops_of("ops.programs.patch_matmul.shifted_loops"),
        operands.sums[section, first : first + op.together],
    )
    for number, band in rows:
        left = operands.left.array((op.together, band.numbers[0]))
        loops.sum_up(
            band.words,
            (operands.image[number], operands.other[number]),
            sums,
            (left, operands.right.array((op.together, band.numbers[1]))),
            band.copies,
            band.gaps,
            band.products.calls,
            (first * op.channels[0], first * op.channels[1]),
            op.channels,
        )


def _pixel_piece(
    op: ShiftedPixels, section: int, rows: list[tuple[int, PixelBand]], first: int, operands: _PixelOperands
) -> None:
    """Add some rows of images and some bundles to the sums of a section."""
    sums, sides = operands.sums[section], ((operands.image, operands.left), (operands.other, operands.right))
    for number, band in rows:
        cells: list[Array] = []
        for (images, scratch), copies, apart, size in zip(sides, band.copies, op.channels, band.numbers, strict=True):
            result = scratch.array((op.together, size))
            result[...] = 0
            copy_cells(result.reshape(-1), images[number, first * apart :], copies, Bundles(op.together, size, apart))
            cells.append(result)
        multiplied = Operands(cells[0], cells[1], sums, total_first=first * sums[0].size)
        add_products(band.products, multiplied, 0, len(band.products.calls))
