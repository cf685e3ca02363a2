"""Products of windows over an image, where its pixels lie, and their way to the output as machine code.

Loaded by ``device.matrix_unit.window_runs``, which says what is multiplied; what happens to products is as in
``device.matrix_unit.fast_loops``. Products are BLAS's, by the very function that numpy calls.
"""

from functools import partial
from typing import Any, TypeAlias

import numpy as np

from device.host.compiling import compiled
from device.host.depths import DEPTH
from device.host.product_loops import product_in_parts
from device.host.products import AS_IT_IS, BY_ROWS
from device.matrix_unit.fast_loops import add_block, settle

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

int32 = np.int32
apart = partial(compiled, fuses=False)


@apart
def _widen(source: Array, target: Array) -> None:
    """Numbers as they are held become float32."""
    if source.itemsize == 2:
        for i in range(target.size):
            target[i] = int32(source[i]) << 16
    else:
        for i in range(target.size):
            target[i] = source[i]


@apart
def _fill(pixels: Array, first: int, pitches: Any, rows: int, across: int, channels: int, room: Array) -> None:
    """Some channels of a rectangle of pixels, from an element on, side by side in float32."""
    down, pixel = pitches
    bits = room.view(np.int32)
    for n in range(rows):
        begin, target = first + n * down, bits[n * across * channels : (n + 1) * across * channels]
        if channels == pixel:
            _widen(pixels[begin : begin + target.size], target)
            continue
        for x in range(across):
            held = pixels[begin + x * pixel : begin + x * pixel + channels]
            _widen(held, target[x * channels : (x + 1) * channels])


@apart
def _multiply(
    sgemm: Any,
    left: Any,
    right: Any,
    shape: Any,
    tile: Any,
    kept: bool,
    adds: Any,
    how: Any,
    partials: int,
    mask: np.int32,
    sharing: Any,
    part: Array,
    total: Array,
) -> None:
    """One K block of some rows of outputs, tile by tile, into their sums.

    BLAS takes no matrix whose rows overlap, so outputs are multiplied together that are as many apart as they meet
    pixels.

    Args:
        sgemm: Where BLAS's product is.
        left: The address of the activations of the first output, and the elements to the next one and the next row.
        right: The address of the weights and the elements from one of their rows to the next.
        shape: Rows, outputs of a row, columns, and pixels that an output meets.
        tile: Outputs and columns that are multiplied at a time.
        kept: Whether BLAS adds to the sums itself, since nothing is rounded on the way.
        adds: Whether the block is the first, and the last one.
        how: As of ``run``.
        partials: How partial sums are packed.
        mask: Bits of them that are read.
        sharing: How those that are block floats are rounded.
        part: float32, room for the products of a tile.
        total: float32 [rows, outputs, columns], the sums.
    """
    rows, outputs, columns, taps = shape
    for column in range(0, columns, tile[1]):
        wide = min(tile[1], columns - column)
        for row in range(rows):
            for one in range(0, outputs, taps * tile[0]):
                for begin in range(one, min(one + taps, outputs)):
                    high = min(tile[0], (outputs - begin + taps - 1) // taps)
                    sums = total.ctypes.data + 4 * ((row * outputs + begin) * columns + column)
                    direct = adds[0] or kept
                    product_in_parts(
                        sgemm,
                        (BY_ROWS, AS_IT_IS, AS_IT_IS),
                        (high, wide, taps * left[1]),
                        (left[0] + 4 * (begin * left[1] + row * left[2]), taps * left[1]),
                        (right[0] + 4 * column, right[1]),
                        np.float32(1 if kept and not adds[0] else 0),
                        (sums, taps * columns) if direct else (part.ctypes.data, wide),
                    )
                    if kept:
                        continue
                    for n in range(high):
                        target = total[row, begin + n * taps][column : column + wide]
                        made = part[n * wide : (n + 1) * wide]
                        add_block(target, made, adds[0], adds[1], how, partials, mask, sharing)


@apart
def run(
    sgemm: Any,
    pixels: Array,
    pitches: Any,
    blocks: Array,
    weights: Any,
    rows: int,
    down: int,
    tile: Any,
    room: Array,
    part: Array,
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
        blocks: int64 [K blocks, 6]: the row and column of the first output's first pixel, the first channel, how many
            channels, how many pixels side by side, and how many rows of the weights.
        weights: The address of the weights [depths, columns] and the elements from one of their rows to the next.
        rows: Rows of outputs.
        down: Rows of the image from one row of outputs to the next.
        tile: Outputs and columns that are multiplied at a time.
        room: float32, room for the pixels that some rows of outputs meet of a K block.
        part: float32, room for the products of a tile.
        total: float32 [rows that are computed at a time, outputs of a row, columns], room for sums.
        bias: float32 [columns], or nothing.
        how: Whether Dst has 16 bits, the packer adds in L1, L1 rounds to bfloat16, the last block is packed,
            outputs make one more trip, and a ReLU follows.
        kinds: How partial sums and outputs are packed.
        mask: Bits of partial sums that are read.
        sharing: How partial sums that are block floats are rounded.
        sharing_out: How outputs are.
        out: The output buffer, flat, integers of its size.
        first: Where in it the first element goes.
        place: As of ``device.matrix_unit.fast_loops.run``.
    """
    step, outputs, columns = total.shape
    top, above = blocks[:, 0].min(), blocks[:, 0].max() - blocks[:, 0].min()
    left = blocks[:, 1].min()
    across = (blocks[:, 1] + blocks[:, 4]).max() - left + outputs - 1
    plain = how[1] and not how[0] and not how[2] and kinds[0] == 0
    for begin in range(0, rows, step):
        count, depth, held = min(step, rows - begin), 0, -1
        for n in range(len(blocks)):
            row, column, channel, channels, taps, depths = blocks[n]
            if channel != held:
                source = (top + begin * down) * pitches[0] + left * pitches[1] + channel
                _fill(pixels, source, pitches, (count - 1) * down + above + 1, across, channels, room)
                held = channel
            last = n == len(blocks) - 1 and not how[3]
            _multiply(
                sgemm,
                (
                    room.ctypes.data + 4 * channels * ((row - top) * across + column - left),
                    channels,
                    across * channels * down,
                ),
                (weights[0] + 4 * depth * weights[1], weights[1]),
                (count, outputs, columns, taps),
                tile,
                plain and not last and taps * channels <= DEPTH,
                (n == 0, last),
                how,
                kinds[0],
                mask,
                sharing,
                part,
                total,
            )
            depth += depths
        for m in range(count):
            to = first + (begin + m) * place[0]
            settle(total[m].reshape(-1), bias, how, kinds, mask, sharing, sharing_out, out, to, place)
