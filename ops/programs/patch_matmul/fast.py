"""Patches times weights with BLAS: float32 products and sums, without the summation order of a program."""

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import product
from math import gcd, prod
from operator import call
from typing import NamedTuple

import numpy as np

from device.host.products import UNPACKED, Matrix, add_products, blas_adds
from device.numbers.formats import Array, div_up
from ops.programs.patch_matmul import gather
from ops.programs.patch_matmul.op import Patches, PatchMatmul
from ops.window import PaddedAxis

LEAST_CHANNELS = 16  # of a product that is worth BLAS
LEAST_ROWS = 16  # of such a product
MOST_CALLS = 1 << 16  # products whose list is made
CACHE_SIZE = 64  # layers whose list is kept
MOST_CHANNELS = 128  # of a block of a weight gradient, so that it stays in the cache
PIECES = 8  # that outputs are cut into, at least
SECTIONS = 4  # and the positions of a weight gradient, with the blocks of its channels


def _distances(axis: PaddedAxis) -> tuple[int, int]:
    """The distance between outputs for which a tap meets inputs, and the distance between these inputs."""
    shared = gcd(axis.input_dilation, axis.stride)
    return axis.input_dilation // shared, axis.stride // shared


def inputs_of(axis: PaddedAxis) -> Array:
    """The input that each tap meets under each output, [outputs, taps]; -1 for a zero."""
    lies = np.add.outer(np.arange(axis.outputs) * axis.stride + axis.start, np.arange(axis.kernel) * axis.dilation)
    inputs, between = np.divmod(lies, axis.input_dilation)
    return np.where((between == 0) & (inputs >= 0) & (inputs < axis.input_length), inputs, -1)


def meetings(axes: Sequence[PaddedAxis], most: int) -> Array:
    """Evenly spaced pairs of outputs and inputs of each tap along the last axis: int64 [runs, 4].

    The columns are the number of outputs (at most ``most``), the first output, the tap, and the first input, each as a
    flat index over all axes. Outputs and their inputs are evenly spaced along the last axis.
    """
    *outer, last = axes
    rows = np.zeros((1, 3), np.int64)  # outputs, taps and inputs of all axes but the last that meet
    sizes = np.array([(axis.outputs, axis.kernel, axis.input_length) for axis in axes])
    for axis, size in zip(outer, sizes, strict=False):
        inputs = inputs_of(axis)
        met = np.column_stack([np.argwhere(inputs >= 0), inputs[inputs >= 0]])
        rows = (rows[:, None] * size + met).reshape(-1, 3)
    rows = rows[np.lexsort(rows.T[::-1])]
    in_row, inputs = list[tuple[int, int, int, int]](), inputs_of(last)
    for tap in range(last.kernel):
        outputs = np.flatnonzero(inputs[:, tap] >= 0)
        for first in range(0, len(outputs), most):
            output = int(outputs[first])
            in_row.append((min(most, len(outputs) - first), output, tap, int(inputs[output, tap])))
    met = np.tile(np.array(in_row, np.int64).reshape(-1, 4), (len(rows), 1, 1))
    met[..., 1:] += rows[:, None] * sizes[-1]
    return met.reshape(-1, 4)


class Layer(NamedTuple):
    """The products of a layer; the channels of a bundle of groups are cut into blocks."""

    blocks: tuple[int, int]  # Channels of a block of the first and of the second operand's side
    pieces: tuple[Array, ...]  # Calls of `add_products`
    outputs: tuple[slice, ...] = ()  # Outputs of the first axis that each piece computes


@lru_cache(CACHE_SIZE)
def output_products(axes: tuple[PaddedAxis, ...], batch: int, channels: tuple[int, int], bundles: int) -> Layer | None:
    """The products of an image, in pieces of outputs of the first axis; None if gathering patches is faster.

    Channels are those of a bundle of inputs and of outputs. Sums begin with the outputs of their piece.
    """
    (ins, outs), last, first = channels, axes[-1], axes[0]
    cuts = (n for n in range(outs, min(outs, LEAST_CHANNELS) - 1, -1) if outs % n == 0)
    block = next((n for n in cuts if n * ins * LEAST_ROWS <= UNPACKED), 0)
    if ins < LEAST_CHANNELS or last.outputs < _distances(last)[0] * LEAST_ROWS or not block or len(axes) == 1:
        return None
    met = meetings(axes, UNPACKED // (block * ins))
    if not 0 < len(met) * bundles <= MOST_CALLS:
        return None
    bundle, pieces, spans = np.arange(bundles)[:, None], list[Array](), list[slice]()
    taps, outputs = prod(axis.kernel for axis in axes), prod(axis.outputs for axis in axes[1:])
    many = div_up(first.outputs, div_up(PIECES, batch))
    for begin in range(0, first.outputs, many):
        end = min(begin + many, first.outputs)
        count, output, tap, source = met[slice(*np.searchsorted(met[:, 1] // outputs, (begin, end)))].T
        places = (source * bundles + bundle) * ins, (bundle * taps + tap) * ins * outs
        total = ((output - begin * outputs) * bundles + bundle) * outs
        calls = np.stack(np.broadcast_arrays(count, ins, *places, total), -1)
        pieces.append(calls.reshape(-1, 5))
        spans.append(slice(begin, end))
    return Layer((ins, block), tuple(pieces), tuple(spans))


def add_up_directly(
    axes: tuple[PaddedAxis, ...], image: Array, weights: Array, bias: Array | None, result: Array, each: gather.Each
) -> bool:
    """Computes all outputs [N, *out_shape, O] of a float32 image [N, *spatial, C]; whether that is worth it.

    The image is contiguous. Weights are float32 [groups, *taps, C / groups, O / groups], the bias is [O] or None.
    """
    (groups, *_, ins, outs), (batch, *out_shape, _) = weights.shape, result.shape
    whole = all((axis.places, n) == (slice(0, n, 1), axis.outputs) for axis, n in zip(axes, out_shape, strict=True))
    bundles = gather.bundle_count(groups, groups * ins, groups * outs, least=LEAST_CHANNELS)
    ins, outs = (groups // bundles * channels for channels in (ins, outs))
    layer = output_products(axes, batch, (ins, outs), bundles) if whole and blas_adds() else None
    if layer is None or not result.flags.c_contiguous:
        return False
    matrices = gather.contiguous(gather.dense_bundles(weights, bundles), each)
    scratch, row = gather.Scratch(), np.zeros(outs * bundles, np.float32) if bias is None else bias
    row, (apart, step) = np.tile(row, (result.shape[-2], 1)), _distances(axes[-1])

    def compute(number: int, calls: Array, outputs: slice) -> None:
        place, block = result[number, outputs], layer.blocks[1]
        ready = place.dtype == np.float32
        sums = place if ready else scratch.array(place.shape)
        sums[...] = row
        for column in range(0, outs, block):
            left, right = Matrix(image[number], step * ins * bundles), Matrix(matrices, outs, column)
            add_products(calls, block, left, right, Matrix(sums, apart * outs * bundles, column))
        if not ready:
            gather.put(sums, place)

    each(
        call,
        [
            partial(compute, number, *piece)
            for number in range(batch)
            for piece in zip(layer.pieces, layer.outputs, strict=True)
        ],
    )
    return True


@lru_cache(CACHE_SIZE)
def pixel_products(axes: tuple[PaddedAxis, ...], batch: int, channels: tuple[int, int], bundles: int) -> Layer | None:
    """The products of a weight gradient, in sections of positions; None if gathering patches is faster.

    The axes are the axes of the patches of the other image, without inserted zeros. Channels are the channels of a
    bundle of the image, and of the other image.
    """
    (ins, outs), last = channels, axes[-1]
    block, columns = (
        next((n for n in range(min(side, MOST_CHANNELS), LEAST_CHANNELS - 1, -1) if side % n == 0), 0)
        for side in channels
    )
    if len(axes) == 1 or not (block and columns) or last.outputs < LEAST_ROWS:
        return None
    met = meetings(axes, UNPACKED // (block * columns))
    if not 0 < len(met) * bundles * batch <= MOST_CALLS:
        return None
    image, bundle = np.arange(batch)[:, None, None], np.arange(bundles)
    taps, positions, inputs = (
        prod(getattr(axis, name) for axis in axes) for name in ("kernel", "outputs", "input_length")
    )
    count, output, tap, source = met.T[..., None]
    left = ((image * positions + output) * bundles + bundle) * ins
    right, total = ((image * inputs + source) * bundles + bundle) * outs, (bundle * taps + tap) * ins * outs
    calls = np.stack(np.broadcast_arrays(block, count, left, right, total), -1).reshape(-1, 5)
    sections = div_up(SECTIONS, (ins // block) * (outs // columns))
    return Layer((block, columns), tuple(np.array_split(calls, sections)))


def sum_directly(
    axes: tuple[PaddedAxis, ...], image: Array, other: Array, groups: int, each: gather.Each
) -> Array | None:
    """The products of all positions, added up: float32 [groups, taps, I / groups, O / groups]; None if not worth it.

    The image is float32 [N, *positions, I], the other one [N, *spatial, O], both contiguous.
    """
    bundles = gather.bundle_count(groups, image.shape[-1], other.shape[-1], least=LEAST_CHANNELS)
    ins, outs = image.shape[-1] // bundles, other.shape[-1] // bundles
    layer = pixel_products(axes, len(image), (ins, outs), bundles) if blas_adds() else None
    if layer is None:
        return None
    (block, columns), taps = layer.blocks, prod(axis.kernel for axis in axes)
    sums = np.zeros((len(layer.pieces), bundles, taps, ins, outs), np.float32)

    def add_up(section: int, row: int, column: int) -> None:
        left = Matrix(image, ins * bundles, row, transposed=True)
        right = Matrix(other, axes[-1].stride * outs * bundles, column)
        total = Matrix(sums[section], outs, row * outs + column)
        add_products(layer.pieces[section], columns, left, right, total)

    blocks = range(len(sums)), range(0, ins, block), range(0, outs, columns)
    each(call, [partial(add_up, *at) for at in product(*blocks)])
    return gather.own_weights(gather.added_up(sums), groups // bundles)


def patch_matmul(
    op: PatchMatmul, image: Array, weights: Array, bias: Array | None, result: Array, each: gather.Each
) -> None:
    """Patches of a contiguous image [N, *spatial, C] times weights, written into [N, *out_shape, O].

    Weights are float32 [groups, *taps, C / groups, O / groups], the bias is [O] or None.
    """
    axes, pieces = op.patches.axes, list[gather.Piece]()
    if not add_up_directly(axes, image, weights, bias, result, each):
        for operands in gather.by_phases(axes, image, weights, bias, result, each):
            pieces.extend(_gathered(operands, bias, op.patches.bundles, each))
    each(call, pieces)


def _gathered(
    operands: gather.PhaseOperands, bias: Array | None, bundles: int, each: gather.Each
) -> Iterator[gather.Piece]:
    """Gathered patches times the weights of bundles of groups."""
    _, view, weights, place = operands
    counts, (patches, sums) = place.shape[:-1], (gather.Scratch(), gather.Scratch())
    dense = gather.dense_bundles(weights, bundles)
    ins, outs = dense.shape[-2:]
    if abs(dense.strides[-2]) < abs(dense.strides[-1]):  # BLAS takes either order; this one takes less to copy
        matrices = gather.contiguous(np.moveaxis(dense, -1, 1), each).reshape(bundles, outs, -1).swapaxes(1, 2)
    else:
        matrices = gather.contiguous(dense, each).reshape(bundles, -1, outs)

    def compute(bundle: int, box: tuple[slice, ...]) -> None:
        of_result = slice(bundle * outs, (bundle + 1) * outs)
        to = place[box][..., of_result]
        rows = prod(to.shape[:-1])
        gathered = patches.matrix(view[box][..., bundle * ins : (bundle + 1) * ins], rows)
        values = np.matmul(gathered, matrices[bundle], out=sums.array((rows, outs)))
        if bias is not None:
            values += bias[of_result]
        gather.put(values.reshape(to.shape), to)

    # Few enough that there are some runs of all positions, as it does not matter where they are cut
    rows = min(gather.run_rows(matrices.shape[1]), max(gather.LEAST_ROWS, div_up(prod(counts), gather.LEAST_PIECES)))
    return (partial(compute, *at) for at in product(range(bundles), gather.runs(counts, rows)))


def pixel_matmul(patches: Patches, image: Array, other: Array, each: gather.Each) -> Array:
    """Sums of products of an image's channels and the patches of another: [groups, *taps, I / groups, O / groups].

    The image is [N, *positions, I], the other one [N, *spatial, O], with a patch for each position; all are float32.
    """
    image, other = np.ascontiguousarray(image), np.ascontiguousarray(other)
    own = sum_directly(patches.axes, image, other, patches.groups, each)
    if own is None:
        view = gather.patches_of(*gather.padded(other, [[axis] for axis in patches.axes], each), patches.axes)
        own = gather.own_weights(_gathered_sums(image, view, patches, each), patches.groups // patches.bundles)
    return own.reshape(patches.groups, *patches.taps, *own.shape[-2:])


def _gathered_sums(image: Array, view: Array, patches: Patches, each: gather.Each) -> Array:
    """The sums of gathered patches [N, *positions, *taps, O]: [bundles, taps, I / bundles, O / bundles]."""
    bundles, taps = patches.bundles, patches.tap_count
    ins, outs, scratch = image.shape[-1] // bundles, view.shape[-1] // bundles, (gather.Scratch(), gather.Scratch())
    boxes = list(gather.runs(image.shape[:-1], gather.run_rows(taps * outs)))
    parts = min(len(boxes), gather.LEAST_PIECES)  # fixed, so that sums do not depend on the number of threads
    sums = np.empty((parts, bundles, ins, taps * outs), np.float32)

    def add_up(bundle: int, part: int) -> None:
        gathered, products = scratch
        total = sums[part, bundle]
        for number, box in enumerate(boxes[part::parts]):
            rows = image[box][..., bundle * ins : (bundle + 1) * ins].reshape(-1, ins)
            matrix = gathered.matrix(view[box][..., bundle * outs : (bundle + 1) * outs], len(rows))
            out = np.matmul(rows.T, matrix, out=products.array(total.shape) if number else total)
            if number:
                total += out

    each(call, [partial(add_up, *at) for at in product(range(bundles), range(parts))])
    return gather.added_up(sums).reshape(bundles, ins, taps, outs).swapaxes(1, 2)
