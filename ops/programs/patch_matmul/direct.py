"""Patches times weights where they lie: a product for every row of outputs and every tap, added up in the result.

Nothing is gathered, padded or put in its place afterwards: BLAS reads inputs as far apart as windows are, and writes
outputs as far apart as a tap meets inputs. Which products there are is found once for layers that are alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby, pairwise, product, zip_longest
from math import gcd, prod
from typing import NamedTuple

import numpy as np

from device.host.products import UNPACKED, Loop, Matrix, Operands, Products, add_products, blas_adds
from device.numbers.formats import Array, div_up
from ops.programs.patch_matmul.gather import Each, Scratch, do
from ops.window import PaddedAxis


class Met(NamedTuple):
    """What a tap meets under some outputs that lie evenly, and so do the inputs."""

    tap: int
    output: int
    source: int  # The input that it meets under that
    outputs: int  # How many there are


class MetTogether(NamedTuple):
    """What two taps, or one, meet under some outputs that lie evenly, and so do the inputs."""

    output: int
    outputs: int  # How many there are
    tap: int
    source: int  # The input that it meets under the first output
    other: int  # The second tap, which comes next; -1 for none
    other_source: int  # The input that it meets; 0 for none


def distances(axis: PaddedAxis) -> tuple[int, int]:
    """How far outputs lie apart under which a tap meets inputs, and how far those inputs do."""
    shared = gcd(axis.input_dilation, axis.stride)
    return axis.input_dilation // shared, axis.stride // shared


def met_by_taps(axis: PaddedAxis, most: int) -> list[Met]:
    """What each tap meets, in pieces of so many outputs at most; taps in their order."""
    inputs, mets = _inputs(axis), list[Met]()
    for tap in range(axis.kernel):
        outputs = np.flatnonzero(inputs[:, tap] >= 0)
        for first in range(0, len(outputs), most):
            output, count = int(outputs[first]), min(most, len(outputs) - first)
            mets.append(Met(tap, output, int(inputs[output, tap]), count))
    return mets


def met_two_at_a_time(axis: PaddedAxis) -> list[MetTogether]:
    """What taps meet, two at a time where two meet anything: those of an output follow each other in their order."""
    inputs, (apart, _) = _inputs(axis), distances(axis)
    togethers: list[MetTogether] = []
    for first in range(min(apart, axis.outputs)):
        outputs = range(first, axis.outputs, apart)
        for taps, several in groupby(outputs, key=lambda output: tuple(np.flatnonzero(inputs[output] >= 0).tolist())):
            same = list(several)
            of_first = [(tap, int(inputs[same[0], tap])) for tap in taps]
            pairs = zip_longest(of_first[::2], of_first[1::2], fillvalue=(-1, 0))
            togethers.extend(MetTogether(same[0], len(same), *earlier, *other) for earlier, other in pairs)
    return togethers


def met_by_outputs(axes: Sequence[PaddedAxis]) -> Array:
    """Outputs, taps and inputs of several axes that meet, each counted through: int64 [several, 3], by outputs."""
    rows = np.zeros((1, 3), np.int64)
    for axis in axes:
        inputs = _inputs(axis)
        met = np.column_stack([np.argwhere(inputs >= 0), inputs[inputs >= 0]])
        rows = (rows[:, None] * (axis.outputs, axis.kernel, axis.input_length) + met).reshape(-1, 3)
    return np.asarray(rows[np.lexsort(rows.T[::-1])], np.int64)


def _inputs(axis: PaddedAxis) -> Array:
    """The input that each tap meets under each output, [outputs, taps]; -1 for a zero."""
    lies = np.add.outer(np.arange(axis.outputs) * axis.stride + axis.start, np.arange(axis.kernel) * axis.dilation)
    inputs, between = np.divmod(lies, axis.input_dilation)
    there = (between == 0) & (inputs >= 0) & (inputs < axis.input_length)
    return np.where(there, inputs, -1)


LEAST_CHANNELS = 16  # of both sides of a product that is worth BLAS
LEAST_ROWS = 16  # of such a product
MOST_CALLS = 1 << 16  # products of an image whose list is made
MOST_KEPT = 64  # layers whose list is kept
PIECES = 8  # that the work is cut into, at least


@dataclass(frozen=True, slots=True, eq=False)
class Direct:
    """The products of a layer, for one image."""

    products: Products  # Themselves, by outputs of the first axis
    pieces: tuple[tuple[slice, slice], ...]  # Outputs of the first axis that are computed together, and their products


def whole(axes: Sequence[PaddedAxis], out_shape: tuple[int, ...]) -> bool:
    """Whether the outputs of the axes cover the whole result."""
    return all(
        (axis.output_offset, axis.output_stride, axis.outputs) == (0, 1, n)
        for axis, n in zip(axes, out_shape, strict=True)
    )


@lru_cache(MOST_KEPT)
def direct(axes: tuple[PaddedAxis, ...], batch: int, channels: tuple[int, int], parts: int) -> Direct | None:
    """The products of a layer; None if gathering patches takes less. Channels are those of a part of image and sum."""
    *outer, last = axes
    ins, outs = channels
    apart, step = distances(last)
    block = _block_of(outs, ins)
    if not (blas_adds() and outer and block and min(ins, outs) >= LEAST_CHANNELS) or last.outputs < apart * LEAST_ROWS:
        return None
    in_row, rows = met_by_taps(last, UNPACKED // (block * ins)), met_by_outputs(outer)
    if not 0 < len(rows) * len(in_row) <= MOST_CALLS:
        return None
    matrices = prod(axis.kernel for axis in axes) * ins * outs
    products = Products(
        calls=_calls(rows, in_row, last, (ins, outs), parts),
        columns=block,
        left=Matrix(False, step * ins * parts),
        right=Matrix(False, outs),
        total_distance=apart * outs * parts,
        loops=(Loop(parts, ins, matrices, outs), Loop(outs // block, 0, block, block)),
    )
    many = div_up(outer[0].outputs, div_up(PIECES, batch))
    cuts = [slice(begin, min(begin + many, outer[0].outputs)) for begin in range(0, outer[0].outputs, many)]
    first = rows[:, 0] // prod(axis.outputs for axis in outer[1:])
    own = [np.searchsorted(first, (cut.start, cut.stop)) * len(in_row) for cut in cuts]
    return Direct(products, tuple((cut, slice(*ends.tolist())) for cut, ends in zip(cuts, own, strict=True)))


def _block_of(columns: int, depth: int) -> int:
    """The width of blocks of columns whose products BLAS computes without a copy; 0 if blocks would be too narrow."""
    cuts = (n for n in range(columns, LEAST_CHANNELS - 1, -1) if columns % n == 0)
    return next((n for n in cuts if n * depth * LEAST_ROWS <= UNPACKED), 0)


def _calls(rows: Array, in_row: Sequence[Met], last: PaddedAxis, channels: tuple[int, int], parts: int) -> Array:
    """The products of all outputs and taps that meet inputs, as `Products` has them, by outputs.

    `rows` are outputs, taps and inputs of all axes but the last; `in_row` is what the taps of the last axis meet.
    Channels are those of a part of the image, and of the result.
    """
    ins, outs = channels
    taps, outputs, inputs, counts = (np.array(numbers) for numbers in zip(*in_row, strict=True))
    calls = np.empty((len(rows), len(in_row), 5), np.int64)
    calls[..., 0] = counts
    calls[..., 1] = ins
    calls[..., 2] = (rows[:, 2:] * last.input_length + inputs) * ins * parts
    calls[..., 3] = (rows[:, 1:2] * last.kernel + taps) * ins * outs
    calls[..., 4] = (rows[:, :1] * last.outputs + outputs) * outs * parts
    return calls.reshape(-1, 5)


def add_up_directly(layer: Direct, image: Array, weights: Array, bias: Array | None, result: Array, each: Each) -> None:
    """All outputs [N, *out_shape, O] of a float32 image [N, *spatial, C], contiguous like the weights and the result.

    Weights are float32 [parts, *taps, C / parts, O / parts], the bias is [O] or None.
    """
    scratch, biases = Scratch(), None if bias is None else np.tile(bias, (result.shape[-2], 1))

    def sum_outputs(number: int, outputs: slice, calls: slice) -> None:
        place = result[number, outputs]
        ready = place.dtype == np.float32
        sums = place if ready else scratch.array(place.shape)
        sums[...] = 0 if biases is None else biases
        operands = Operands(image[number], weights, sums, total_first=-outputs.start * result[number, 0].size)
        add_products(layer.products, operands, calls.start, calls.stop)
        if not ready:
            with np.errstate(over="ignore"):
                place[...] = sums

    each(do, [partial(sum_outputs, number, *piece) for number in range(len(result)) for piece in layer.pieces])


MOST_CHANNELS = 128  # of a block of sums
SECTIONS = 16  # pieces that there should be, where taps and blocks are fewer
STRETCH_BYTES = 256 << 10  # of both images, that all taps of a piece meet one after the other


class _Piece(NamedTuple):
    """What is summed in one go, for a block of channels."""

    section: int  # Of positions, which has sums of its own
    taps: slice  # Whose sums
    calls: slice


@dataclass(frozen=True, slots=True, eq=False)
class DirectPixels:
    """The products of a weight gradient."""

    products: Products  # Themselves, piece by piece
    pieces: tuple[_Piece, ...]  # Sections of positions, taps and products of each
    sections: int  # How many
    taps: int  # How many
    channels: tuple[int, int]  # Of a part of the image and of the other image
    parts: int
    block: int  # Of the image's channels, in a block of sums; channels of the other image are the products' columns


def _pixel_block_of(channels: int) -> int:
    """Into how many channels a side of the sums is cut; 0 for none."""
    return next((n for n in range(min(channels, MOST_CHANNELS), LEAST_CHANNELS - 1, -1) if channels % n == 0), 0)


@lru_cache(MOST_KEPT)
def direct_pixels(
    axes: tuple[PaddedAxis, ...], batch: int, channels: tuple[int, int], parts: int
) -> DirectPixels | None:
    """The products of a weight gradient; None if it takes less to gather patches.

    The axes are those of the patches of the other image, none with inserted zeros. Channels are those of a part of the
    image, and of the other image.
    """
    *outer, last = axes
    (ins, outs), taps = channels, prod(axis.kernel for axis in axes)
    block, columns = map(_pixel_block_of, channels)
    if not (blas_adds() and outer and block and columns) or last.outputs < LEAST_ROWS:
        return None
    in_row, rows = met_by_taps(last, UNPACKED // (block * columns)), met_by_outputs(outer)
    if not 0 < len(rows) * len(in_row) * parts <= MOST_CALLS:
        return None
    calls, each_tap = _pixel_calls(rows, in_row, last, channels, parts)
    blocks = (ins // block) * (outs // columns)
    sections = div_up(SECTIONS, taps * blocks)
    together = min(taps, max(1, taps * sections * blocks // PIECES))
    groups = div_up(taps, together)
    piece = _sections(each_tap, taps, sections, parts) * groups + each_tap // together
    stretch = calls[:, 2] // (max(1, STRETCH_BYTES // (4 * (ins + outs) * parts)) * ins * parts)
    calls[:, 0], calls[:, 4] = block, (calls[:, 4] * taps + each_tap) * ins * outs
    order = np.lexsort((each_tap, stretch, piece))
    ends = np.searchsorted(piece[order], np.arange(sections * groups + 1)).tolist()
    pieces = [
        _Piece(number // groups, slice(number % groups * together, (number % groups + 1) * together), slice(*calls_of))
        for number, calls_of in enumerate(pairwise(ends))
    ]
    numbers = [prod(axis.outputs for axis in axes) * ins, prod(axis.input_length for axis in axes) * outs]
    products = Products(
        calls=calls[order],
        columns=columns,
        left=Matrix(True, ins * parts),
        right=Matrix(False, last.stride * outs * parts),
        total_distance=outs,
        loops=(Loop(batch, *(parts * n for n in numbers)), Loop(1)),
    )
    return DirectPixels(products, tuple(pieces), sections, taps, channels, parts, block)


def _pixel_calls(
    rows: Array, in_row: Sequence[Met], last: PaddedAxis, channels: tuple[int, int], parts: int
) -> tuple[Array, Array]:
    """The products of all positions, taps and parts, as `Products` has them, and the tap of each.

    Arguments are those of `_calls`. The parts of a row of positions follow each other, while the row is in the cache.
    The products are int64 [products, 5], without rows and with the part in the place of where sums begin.
    """
    taps, outputs, inputs, counts = (np.array(numbers) for numbers in zip(*in_row, strict=True))
    part, (ins, outs) = np.arange(parts), channels
    calls = np.zeros((len(rows), len(in_row), parts, 5), np.int64)
    calls[..., 1] = counts[:, None]
    calls[..., 2] = ((rows[:, :1] * last.outputs + outputs)[..., None] * parts + part) * ins
    calls[..., 3] = ((rows[:, 2:] * last.input_length + inputs)[..., None] * parts + part) * outs
    calls[..., 4] = part
    return calls.reshape(-1, 5), np.repeat(rows[:, 1:2] * last.kernel + taps, parts)


def _sections(each_tap: Array, taps: int, sections: int, parts: int) -> Array:
    """The section of each product: the rows of a tap are cut into sections of whole rows; the last can be empty."""
    order = np.argsort(each_tap, kind="stable")
    begins = np.searchsorted(each_tap[order], np.arange(taps + 1))
    share = -(-np.diff(begins) // parts // sections) * parts
    section = np.empty(len(each_tap), np.int64)
    own = each_tap[order]
    section[order] = (np.arange(len(own)) - begins[own]) // share[own]
    return section


def sum_directly(layer: DirectPixels, image: Array, other: Array, each: Each) -> Array:
    """The products of all positions, added up: float32 [parts, taps, I / parts, O / parts].

    The image is float32 [N, *positions, I], the other one [N, *spatial, O], both contiguous.
    """
    ins, outs = layer.channels
    sums = np.empty((layer.sections, layer.parts, layer.taps, ins, outs), np.float32)

    def add_up(piece: _Piece, row: int, column: int) -> None:
        own = sums[piece.section]
        own[:, piece.taps, row : row + layer.block, column : column + layer.products.columns] = 0
        operands = Operands(image, other, own, row, column, row * outs + column)
        add_products(layer.products, operands, piece.calls.start, piece.calls.stop)

    blocks = range(0, ins, layer.block), range(0, outs, layer.products.columns)
    each(do, [partial(add_up, *piece_of) for piece_of in product(layer.pieces, *blocks)])
    total: Array = sums[0]
    for more in sums[1:]:
        total += more
    return total
