"""Patches times weights where every channel is a group of its own: products of numbers, added up where they belong.

What meets zeros alone is left out. A compiled loop and numpy add the same products in the same order, each rounded
before it is added, so that they give the same numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from device.host.compiling import loops_of, worth_loading
from device.numbers.formats import Array, div_up
from ops.programs.patch_matmul.direct import distances, met_by_outputs, met_by_taps, met_two_at_a_time
from ops.programs.patch_matmul.gather import Each, Piece, Scratch, do
from ops.window import PaddedAxis

MOST_ROWS = 1 << 16  # of outputs and taps of an image, that are listed
MOST_KEPT = 64  # layers whose list is kept
PIECES = 8  # that the work is cut into, at least
NUMPY_SECONDS = 1e-9  # for a product that is added


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """What is multiplied in a layer, for one image."""

    axes: tuple[PaddedAxis, ...]
    # Outputs of the first axis that are computed together, and for each of them and each tap of all axes but the last
    # the outputs, counted from the first, taps and inputs that meet: int64 [several, 3]
    pieces: tuple[tuple[slice, Array], ...]
    in_row: Array  # What taps of the last axis meet, as `MetTogether`: int64 [several, 6]
    met_in_row: int  # Outputs and taps of the last axis that meet inputs
    # Outputs, taps and inputs of the last axis, and how far outputs and inputs lie apart
    lies: tuple[int, int, int, int, int]


@lru_cache(MOST_KEPT)
def elements(axes: tuple[PaddedAxis, ...], batch: int) -> Elements | None:
    """What is multiplied in a layer of two axes or more; None where that is too much to be listed."""
    *outer, last = axes
    if not outer or prod(axis.outputs * axis.kernel for axis in outer) > MOST_ROWS:
        return None
    rows = met_by_outputs(outer)
    inner = prod(axis.outputs for axis in outer[1:])
    many = div_up(outer[0].outputs, div_up(PIECES, batch))
    pieces: list[tuple[slice, Array]] = []
    for begin in range(0, outer[0].outputs, many):
        stop = min(begin + many, outer[0].outputs)
        first, end = np.searchsorted(rows[:, 0], (begin * inner, stop * inner))
        pieces.append((slice(begin, stop), rows[first:end] - (begin * inner, 0, 0)))
    in_row = np.array(met_two_at_a_time(last), np.int64).reshape(-1, 6)
    met = sum(meeting.outputs for meeting in met_by_taps(last, last.outputs))
    return Elements(axes, tuple(pieces), in_row, met, (last.outputs, last.kernel, last.input_length, *distances(last)))


class _Operands(NamedTuple):
    """What is multiplied, and where sums and products may lie meanwhile."""

    weights: Array  # float32 [taps, C], contiguous
    biases: Array | None  # float32 [outputs of a row, C], or None
    sums: Scratch  # Memory for sums that are not float32 in their place
    products: Scratch


def add_up_elements(
    layer: Elements, image: Array, weights: Array, bias: Array | None, result: Array, each: Each
) -> None:
    """All outputs [N, *out_shape, C] of a float32 image [N, *spatial, C], weights [C, *taps] and a bias [C] or None.

    The image and the result are contiguous.
    """
    taps = np.ascontiguousarray(weights.reshape(len(weights), -1).T)
    biases = None if bias is None else np.tile(bias, (result.shape[-2], 1))
    operands, pieces = _Operands(taps, biases, Scratch(), Scratch()), list[Piece]()
    for pixels, place in zip(image, result, strict=True):
        for number, (outputs, _) in enumerate(layer.pieces):
            pieces.append(partial(_sum, layer, number, pixels, operands, place[outputs]))
    each(do, pieces)


def _sum(layer: Elements, number: int, image: Array, operands: _Operands, place: Array) -> None:
    """Compute the outputs of one piece of an image [*spatial, C], in their place."""
    outputs, rows = layer.pieces[number]
    ready = place.dtype == np.float32
    sums = place if ready else operands.sums.array(place.shape)
    sums[...] = 0 if operands.biases is None else operands.biases
    products = len(rows) * layer.met_in_row * image.shape[-1]
    if worth_loading("ops.programs.patch_matmul.loops", products * NUMPY_SECONDS):
        loops = loops_of("ops.programs.patch_matmul.loops")
        flat, into = image.reshape(-1, image.shape[-1]), sums.reshape(-1, sums.shape[-1])
        flat.flags.writeable = False  # always, so that the loop is compiled for one kind of argument
        loops.add_up_elements(rows, layer.in_row, flat, operands.weights, into, layer.lies)
    else:
        _by_numpy(layer.axes, outputs, image, operands, sums)
    if not ready:
        with np.errstate(over="ignore"):
            place[...] = sums


def _by_numpy(axes: Sequence[PaddedAxis], outputs: slice, image: Array, operands: _Operands, sums: Array) -> None:
    """What the compiled loop does, in its order for each output: taps one after the other, each for all outputs."""
    spans = [slice(0, axis.outputs) for axis in axes]
    met = [_met(axis, span) for axis, span in zip(axes, [outputs, *spans[1:]], strict=True)]
    for combination in product(*met):
        tap = 0
        for axis, meeting in zip(axes, combination, strict=True):
            tap = tap * axis.kernel + meeting.tap
        pixels = image[tuple(meeting.inputs for meeting in combination)]
        terms = np.multiply(pixels, operands.weights[tap], out=operands.products.array(pixels.shape))
        place = sums[tuple(meeting.outputs for meeting in combination)]
        place += terms


class _Slices(NamedTuple):
    """Inputs that a tap meets, and outputs under which it does."""

    tap: int
    inputs: slice
    outputs: slice


def _met(axis: PaddedAxis, span: slice) -> list[_Slices]:
    """The outputs and inputs that the taps of an axis pair up in a span, counted from the span's first output."""
    apart, step = distances(axis)
    result: list[_Slices] = []
    for meeting in met_by_taps(axis, axis.outputs):
        first = max(0, div_up(span.start - meeting.output, apart))
        last = min(meeting.outputs, div_up(span.stop - meeting.output, apart)) - 1
        if first <= last:
            inputs = slice(meeting.source + first * step, meeting.source + last * step + 1, step)
            begin = meeting.output - span.start
            result.append(_Slices(meeting.tap, inputs, slice(begin + first * apart, begin + last * apart + 1, apart)))
    return result
