"""Products of windows over an image, where its pixels lie, and their way to the output as machine code.

Loaded by ``device.matrix_unit.window_runs``, which says what is multiplied; what happens to products is as in
``device.matrix_unit.fast_loops``. Products are BLAS's, by the very function that numpy calls; those of pairs, which
are loaded with this module, are made by ``device.matrix_unit.paired_windows``.
"""

from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from device.host.compiling import called_with, compiled, readonly
from device.host.depths import DEPTH
from device.host.product_loops import product_in_parts
from device.host.products import AS_IT_IS, BY_ROWS
from device.matrix_unit.fast_loops import add_block, settle
from device.matrix_unit.paired_windows import run_in_pairs

__all__ = ["run", "run_in_pairs"]
Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_SHARING: Final = "Tuple((int64, int32, float32, float32, float32))"
_CALL: Final = ", ".join((
    "int64", "{}", "UniTuple(int64, 2)", "int32", "int64[:,::1]", "UniTuple(int64, 3)", "{}", readonly("int64", 2),
    "Tuple((int64, int32))", "int64[:,::1]", "int64", "UniTuple(float32[::1], 3)", "float32[:,::1]", "float32[::1]",
    "UniTuple(boolean, 6)", "UniTuple(int64, 2)", "int32", _SHARING, _SHARING, "{}[::1]", "int64",
    "Tuple((int64, int64, int64, boolean))",
))  # fmt: skip
_HELD: Final = readonly("int32", 1), readonly("uint16", 1)

int32 = np.int32
apart = partial(compiled, fuses=False)


@apart
def _widen(source: Array, mask: np.int32, target: Array) -> None:
    """Numbers as they are held become the bits of float32, cut to what is multiplied."""
    if source.itemsize == 2:
        for i in range(target.size):
            target[i] = int32(source[i]) << 16 & mask
    else:
        for i in range(target.size):
            target[i] = source[i] & mask


@apart
def _fill(
    pixels: Array, first: int, pitches: Any, cut: np.int32, rows: int, across: int, channels: int, room: Array
) -> None:
    """Some channels of a rectangle of pixels, from an element on, side by side in float32."""
    down, pixel = pitches
    bits = room.view(np.int32)
    for n in range(rows):
        begin, target = first + n * down, bits[n * across * channels : (n + 1) * across * channels]
        if channels == pixel:
            _widen(pixels[begin : begin + target.size], cut, target)
            continue
        for x in range(across):
            held = pixels[begin + x * pixel : begin + x * pixel + channels]
            _widen(held, cut, target[x * channels : (x + 1) * channels])


@apart
def _load(matrix: Array, pitch: int, mask: np.int32, rows: Array, first: int, tile: Any, room: Array) -> None:
    """Some columns of the weights of a K block in float32; zeros where there is no row."""
    column, width = tile
    bits = room.view(np.int32)
    for k in range(room.size // width):
        target, row = bits[k * width : (k + 1) * width], rows[first + k]
        begin = row * pitch + column
        if row >= 0 and begin + width <= matrix.size:
            _widen(matrix[begin : begin + width], mask, target)
        else:
            target[:] = 0


@apart
def _multiply(
    sgemm: Any,
    left: Any,
    right: Array,
    shape: Any,
    kept: bool,
    adds: Any,
    how: Any,
    partials: int,
    mask: np.int32,
    sharing: Any,
    part: Array,
    sums: Array,
) -> None:
    """Some columns of a K block of some rows of outputs, so many outputs at a time, into their sums.

    BLAS takes no matrix whose rows overlap, so outputs are multiplied together that are as many apart as they meet
    pixels. Their sums lie together, too: first those of the outputs 0, taps, 2 * taps, ... of a row, then 1, ...

    Args:
        sgemm: Where BLAS's product is.
        left: The address of the activations of the first output, and the elements to the next one and the next row.
        right: float32, the weights [depth, columns].
        shape: Rows, outputs of a row, columns, and pixels that an output meets.
        kept: Whether BLAS adds to the sums itself, since nothing is rounded on the way.
        adds: Whether the block is the first, and the last one.
        how: As of ``run``.
        partials: How partial sums are packed.
        mask: Bits of them that are read.
        sharing: How those that are block floats are rounded.
        part: float32, room for the products of some outputs.
        sums: float32 [rows, outputs, columns].
    """
    rows, outputs, columns, taps = shape
    first, last = adds
    most, done = part.size // columns, 0
    for job in range(rows * taps):
        row, tap = job // taps, job % taps
        count = (outputs - tap + taps - 1) // taps
        for one in range(0, count, most):
            high = min(most, count - one)
            total = sums[(done + one) * columns : (done + one + high) * columns]
            made = total if first or kept else part[: total.size]
            product_in_parts(
                sgemm,
                (BY_ROWS, AS_IT_IS, AS_IT_IS),
                (high, columns, taps * left[1]),
                (left[0] + 4 * ((tap + one * taps) * left[1] + row * left[2]), taps * left[1]),
                (right.ctypes.data, columns),
                np.float32(1 if kept and not first else 0),
                (made.ctypes.data, columns),
            )
            if not kept:
                add_block(total, made, first, last, how, partials, mask, sharing)
        done += count


@apart
def _settle_row(
    sums: Array,
    shape: Any,
    bias: Array,
    how: Any,
    kinds: Any,
    mask: np.int32,
    sharing: Any,
    sharing_out: Any,
    out: Array,
    first: int,
    place: Any,
) -> None:
    """Sums of a row of outputs, which lie as `_multiply` says, become outputs.

    Args:
        sums: The sums.
        shape: Outputs, their columns and those of them that are stored, and pixels that an output meets.
        bias: As of ``run``, of these columns.
        how: Likewise.
        kinds: Likewise.
        mask: Likewise.
        sharing: Likewise.
        sharing_out: Likewise.
        out: Likewise.
        first: Where in ``out`` the first element goes.
        place: As of ``run``.
    """
    outputs, columns, stored, taps = shape
    done = 0
    for tap in range(taps):
        count = (outputs - tap + taps - 1) // taps
        part = sums[done * columns : (done + count) * columns]
        to = (0, count, taps * place[1], 1, 0, columns, stored, place[3])
        settle(part, bias, how, kinds, mask, sharing, sharing_out, out, first + tap * place[1], to)
        done += count


@called_with(*(
    f"({_CALL})".format(pixels, matrix, made)
    for matrix in _HELD
    for pixels, made in zip(_HELD, ("uint32", "uint16"), strict=True)
))  # fmt: skip
@apart
def run(
    sgemm: Any,
    pixels: Array,
    pitches: Any,
    cut: np.int32,
    blocks: Array,
    windows: Any,
    matrix: Array,
    rows_of: Array,
    weights: Any,
    tiles: Array,
    rows: int,
    rooms: Any,
    total: Array,
    bias: Array,
    how: Any,
    kinds: Any,
    mask: np.int32,
    sharing: Any,
    sharing_out: Any,
    out: Array,
    first: int,
    place: Any,
) -> None:
    """Rows of outputs, each in its place; arguments as ``device.matrix_unit.window_runs`` makes them.

    Args:
        sgemm: Where BLAS's product is.
        pixels: Integers, the image [rows, columns, channels], flat.
        pitches: Elements from one of its rows, and of its pixels, to the next.
        cut: Bits of pixels that are multiplied.
        blocks: int64 [K blocks, 4]: the row and column of the first output's first pixel, the first channel and how
            many channels.
        windows: How many pixels side by side an output meets, the outputs of a row, and rows of the image from one row
            of outputs to the next.
        matrix: Integers, what weights are taken from, flat.
        rows_of: int64 [phases, depths], the row of it for each product of an output; none of its rows for zeros.
        weights: Elements from one of its rows to the next, and the bits that are multiplied.
        tiles: int64 [tiles, 5], columns that are multiplied at a time: their phase, the first of them in the matrix and
            among those of a phase, how many, and how many are stored.
        rows: Rows of outputs.
        rooms: float32, room for the pixels that some rows of outputs meet of a K block, for the weights of a tile and
            for its products.
        total: float32 [rows that are computed at a time, elements of a row], room for sums.
        bias: float32 [columns of all tiles], or nothing.
        how: Whether Dst has 16 bits, the packer adds in L1, L1 rounds to bfloat16, the last block is packed,
            outputs make one more trip, and a ReLU follows.
        kinds: How partial sums and outputs are packed.
        mask: Bits of partial sums that are read.
        sharing: How partial sums that are block floats are rounded.
        sharing_out: How outputs are.
        out: The output buffer, flat, integers of its size.
        first: Where in it the first element goes.
        place: The elements from one row, output and phase to the next, and whether the upper halves of numbers are
            stored.
    """
    taps, outputs, down = windows
    top, above = blocks[:, 0].min(), blocks[:, 0].max() - blocks[:, 0].min()
    left, across = blocks[:, 1].min(), blocks[:, 1].max() - blocks[:, 1].min() + taps + outputs - 1
    plain = how[1] and not how[0] and not how[2] and kinds[0] == 0
    step, sums = total.shape[0], total.reshape(-1)
    for begin in range(0, rows, step):
        count, depth, held = min(step, rows - begin), 0, -1
        for n in range(len(blocks)):
            row, column, channel, channels = blocks[n]
            if channel != held:
                source = (top + begin * down) * pitches[0] + left * pitches[1] + channel
                _fill(pixels, source, pitches, cut, (count - 1) * down + above + 1, across, channels, rooms[0])
                held = channel
            last = n == len(blocks) - 1 and not how[3]
            met = rooms[0].ctypes.data + 4 * channels * ((row - top) * across + column - left)
            done = 0
            for phase, weight, _, wide, _ in tiles:
                held_weights = rooms[1][: taps * channels * wide]
                _load(matrix, weights[0], weights[1], rows_of[phase], depth, (weight, wide), held_weights)
                _multiply(
                    sgemm,
                    (met, channels, across * channels * down),
                    held_weights,
                    (count, outputs, wide, taps),
                    plain and not last and taps * channels <= DEPTH,
                    (n == 0, last),
                    how,
                    kinds[0],
                    mask,
                    sharing,
                    rooms[2][: rooms[2].size // wide * wide],
                    sums[done : done + count * outputs * wide],
                )
                done += count * outputs * wide
            depth += taps * channels
        done, behind = 0, 0
        for phase, _, column, wide, stored in tiles:
            added = bias[behind : behind + wide] if bias.size else bias
            for m in range(count):
                one = sums[done : done + outputs * wide]
                to = first + (begin + m) * place[0] + phase * place[2] + column
                shape = (outputs, wide, stored, taps)
                _settle_row(one, shape, added, how, kinds, mask, sharing, sharing_out, out, to, place)
                done += outputs * wide
            behind += wide
