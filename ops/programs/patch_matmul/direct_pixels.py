"""Pixels times patches where they lie: for every tap a product for every row of positions, added up in turn.

A tap's sums are cut into blocks that stay in the cache while all positions pass; blocks do not depend on each other.
Some taps go together, so that positions are met by all of them while they are in the cache, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise, product
from math import prod
from typing import NamedTuple

import numpy as np

from device.host.products import UNPACKED, Loop, Matrix, Operands, Products, add_products, blas_adds
from device.numbers.block_floats import div_up
from device.numbers.formats import Array
from ops.programs.patch_matmul.direct import LEAST_CHANNELS, LEAST_ROWS, MOST_CALLS, MOST_KEPT
from ops.programs.patch_matmul.gather import Each, do
from ops.programs.patch_matmul.met_inputs import Met, met_by_outputs, met_by_taps
from ops.window import PaddedAxis

MOST_CHANNELS = 128  # of a block of sums
SECTIONS = 16  # pieces that there should be, where taps and blocks are fewer
PIECES = 8  # that the work is cut into, at least
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
    channels: tuple[int, int]  # Of a part of the image and of the other one
    parts: int
    block: int  # Of the image's channels, in a block of sums; those of the other one are the products' columns


def _block_of(channels: int) -> int:
    """Into how many channels a side of the sums is cut; 0 for none."""
    return next((n for n in range(min(channels, MOST_CHANNELS), LEAST_CHANNELS - 1, -1) if channels % n == 0), 0)


@lru_cache(MOST_KEPT)
def direct_pixels(
    axes: tuple[PaddedAxis, ...], batch: int, channels: tuple[int, int], parts: int
) -> DirectPixels | None:
    """The products of a weight gradient; None if it takes less to gather patches.

    Args:
        axes: Of the patches of the other image, none with inserted zeros.
        channels: Of a part of the image, and of the other one.
    """
    *outer, last = axes
    (ins, outs), taps = channels, prod(axis.kernel for axis in axes)
    block, columns = map(_block_of, channels)
    if not (blas_adds() and outer and block and columns) or last.outputs < LEAST_ROWS:
        return None
    in_row, rows = met_by_taps(last, UNPACKED // (block * columns)), met_by_outputs(outer)
    if not 0 < len(rows) * len(in_row) * parts <= MOST_CALLS:
        return None
    calls, each_tap = _calls(rows, in_row, last, channels, parts)
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


def _calls(
    rows: Array, in_row: Sequence[Met], last: PaddedAxis, channels: tuple[int, int], parts: int
) -> tuple[Array, Array]:
    """The products of all positions, taps and parts, as `Products` has them, and the tap of each.

    Args:
        rows: Positions, taps and inputs of all axes but the last.
        in_row: What the taps of the last axis meet.
        channels: Of a part of the image, and of the other one.
        parts: Parts; those of a row of positions follow each other, while it is in the cache.

    Returns:
        int64 [products, 5], without rows and with the part instead of where sums begin; and int64 [products].
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
    """The section of each product: those of a tap are cut into as many of whole rows; the last ones may be empty."""
    order = np.argsort(each_tap, kind="stable")
    begins = np.searchsorted(each_tap[order], np.arange(taps + 1))
    share = -(-np.diff(begins) // parts // sections) * parts
    section = np.empty(len(each_tap), np.int64)
    own = each_tap[order]
    section[order] = (np.arange(len(own)) - begins[own]) // share[own]
    return section


def sum_directly(layer: DirectPixels, image: Array, other: Array, each: Each) -> Array:
    """The products of all positions, added up.

    Args:
        image: float32 [N, *positions, I], contiguous.
        other: float32 [N, *spatial, O], contiguous.
        each: Carries out a function for each of several pieces.

    Returns:
        float32 [parts, taps, I / parts, O / parts].
    """
    ins, outs = layer.channels
    sums = np.empty((layer.sections, layer.parts, layer.taps, ins, outs), np.float32)

    def add_up(piece: _Piece, row: int, column: int) -> None:
        own = sums[piece.section]
        own[:, piece.taps, row : row + layer.block, column : column + layer.products.columns] = 0
        operands = Operands(image, other, own, row, column, row * outs + column)
        add_products(layer.products, operands, piece.calls.start, piece.calls.stop)

    blocks = range(0, ins, layer.block), range(0, outs, layer.products.columns)
    each(do, [partial(add_up, *one) for one in product(layer.pieces, *blocks)])
    total: Array = sums[0]
    for more in sums[1:]:
        total += more
    return total
