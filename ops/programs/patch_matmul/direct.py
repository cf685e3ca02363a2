"""Patches times weights where they lie: a product for every row of outputs and every tap, added up in the result.

Nothing is gathered, padded or put in its place afterwards: BLAS reads inputs as far apart as windows are, and writes
outputs as far apart as a tap meets inputs. Which products there are is found once for layers that are alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod

import numpy as np

from device.host.products import UNPACKED, Loop, Matrix, Operands, Products, add_products, blas_adds
from device.numbers.block_floats import div_up
from device.numbers.formats import Array
from ops.programs.patch_matmul.gather import Each, Scratch, do
from ops.programs.patch_matmul.met_inputs import Met, distances, met_by_outputs, met_by_taps
from ops.window import PaddedAxis

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
    """Whether outputs of some axes are all that there are."""
    return all(
        (one.output_offset, one.output_stride, one.outputs) == (0, 1, n) for one, n in zip(axes, out_shape, strict=True)
    )


@lru_cache(MOST_KEPT)
def direct(axes: tuple[PaddedAxis, ...], batch: int, channels: tuple[int, int], parts: int) -> Direct | None:
    """The products of a layer; None if it takes less to gather patches.

    Args:
        channels: Of a part of the image, and of the result.
    """
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
    """Into how many columns products are cut, which BLAS does not copy then; 0 if that would be too few."""
    cuts = (n for n in range(columns, LEAST_CHANNELS - 1, -1) if columns % n == 0)
    return next((n for n in cuts if n * depth * LEAST_ROWS <= UNPACKED), 0)


def _calls(rows: Array, in_row: Sequence[Met], last: PaddedAxis, channels: tuple[int, int], parts: int) -> Array:
    """The products of all outputs and taps that meet inputs, as `Products` has them, by outputs.

    Args:
        rows: Outputs, taps and inputs of all axes but the last.
        in_row: What the taps of the last axis meet.
        channels: Of a part of the image, and of the result.
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
    """All outputs.

    Args:
        image: float32 [N, *spatial, C], contiguous.
        weights: float32 [parts, *taps, C / parts, O / parts], contiguous.
        bias: float32 [O] or None.
        result: [N, *out_shape, O], contiguous.
        each: Carries out a function for each of several pieces.
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
