"""Products of windows over an image, and their way to the output as machine code.

Loaded by ``device.matrix_unit.fast``, which says what is multiplied; what happens to products is as in
``device.matrix_unit.fast_loops``. Some outputs at a time meet all K blocks, so that their sums and what they are
multiplied by stay in the fastest cache.
"""

from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from device.host.compiling import called_with, compiled, readonly
from device.host.pieces import DEPTH
from device.host.tiled_products import make_pairs, mask_of_pair, product_in_tiles
from device.matrix_unit.fast_loops import add_block, leave, settle

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_SHARING: Final = "Tuple((int64, int32, float32, float32, float32))"
_CALL: Final = ", ".join((
    "{}", "UniTuple(int64, 2)", "int32", "int64[:,::1]", "UniTuple(int64, 3)", "{}", readonly("int64", 2),
    "Tuple((int64, int32))", "int64[:,::1]", "int64", "int64", "UniTuple(int32[::1], 2)", "UniTuple(float32[::1], 2)",
    "float32[::1]", "UniTuple(boolean, 6)", "UniTuple(int64, 2)", "int32", _SHARING, _SHARING, "{}[::1]", "int64",
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
def _make_words(source: Array, first: int, masks: Any, together: int, target: Array, to: int, count: int) -> None:
    """So many numbers side by side become words of one or two, cut to what is multiplied."""
    if together == 1:
        _widen(source[first : first + count], masks[0], target[to : to + count])
    else:
        make_pairs(source.view(np.int32), first // 2, masks[1], target, to, count // 2)


@apart
def _fill(
    pixels: Array, first: int, pitches: Any, masks: Any, shape: Any, channels: int, together: int, room: Array, to: int
) -> None:
    """Some channels of a rectangle of pixels, from an element on, become words side by side."""
    (down, pixel), (rows, across) = pitches, shape
    count = channels // together
    for n in range(rows):
        begin, target = first + n * down, to + n * across * count
        if channels == pixel:
            _make_words(pixels, begin, masks, together, room, target, across * channels)
            continue
        for x in range(across):
            _make_words(pixels, begin + x * pixel, masks, together, room, target + x * count, channels)


@apart
def _load(matrix: Array, weights: Any, rows: Array, tile: Any, together: int, room: Array) -> None:
    """Some columns of the weights as words of one or two rows; zeros where there is no row."""
    if together == 1:
        _load_numbers(matrix, weights, rows, tile, room)
    else:
        _load_pairs(matrix, weights, rows, tile, room)


@apart
def _load_numbers(matrix: Array, weights: Any, rows: Array, tile: Any, room: Array) -> None:
    """Words of one row."""
    (pitch, mask), (column, width) = weights, tile
    for k in range(len(rows)):
        begin, target = rows[k] * pitch + column, room[k * width : (k + 1) * width]
        if begin >= 0 and begin + width <= matrix.size:
            _widen(matrix[begin : begin + width], mask, target)
        else:
            target[:] = 0


@apart
def _load_pairs(matrix: Array, weights: Any, rows: Array, tile: Any, room: Array) -> None:
    """Words of two rows."""
    (pitch, mask), (column, width) = weights, tile
    kept = mask_of_pair(mask)
    for k in range(len(rows) // 2):
        one, other = rows[2 * k] * pitch + column, rows[2 * k + 1] * pitch + column
        has_one, has_other = one >= 0 and one + width <= matrix.size, other >= 0 and other + width <= matrix.size
        above, below = matrix[one if has_one else 0 :], matrix[other if has_other else 0 :]
        upper = int32(kept & int32(-0x10000)) if has_one else int32(0)
        lower = int32(kept & int32(0xFFFF)) if has_other else int32(0)
        target = room[k * width : (k + 1) * width]
        for i in range(width):
            target[i] = int32(int32(int32(above[i]) << 16) & upper) | int32(int32(below[i]) & lower)


@apart
def _count_rows(begin: int, end: int, outputs: int, pixel: int, line: int, rows: Array) -> None:
    """How many bytes behind what the first output of all meets that of some others begins, in lines of so many.

    Those behind the last output are the last again.
    """
    for n in range(rows.size):
        at = min(begin + n, end - 1)
        rows[n] = 4 * (at // outputs * line + at % outputs * pixel)


@apart
def _add_block(
    sizes: Any,
    left: Any,
    right: Any,
    together: int,
    order: Any,
    how: Any,
    partials: int,
    mask: np.int32,
    sharing: Any,
    part: Array,
    total: Array,
) -> None:
    """A K block of some outputs into their sums.

    Args:
        sizes: As of ``product_in_tiles``.
        order: Whether the block is the first, and the last one.
        how: As of ``run``.
        partials: How partial sums are packed.
        mask: Bits of them that are read.
        sharing: How those that are block floats are rounded.
        part: float32, room for products.
        total: float32, the sums.
    """
    first, last = order
    narrow, accumulates, rounds_in_l1 = how[0], how[1], how[2]
    whole, added_in_l1 = sizes[2] <= DEPTH, accumulates and not last
    # Where at most a rounding of the sums comes next, the product joins them while it is in registers.
    joins = whole and (
        (added_in_l1 and not narrow and not rounds_in_l1 and partials == 0)
        or (not added_in_l1 and narrow and mask == -1)
    )
    made = total if first or joins else part[: total.size]
    place = np.int64(made.ctypes.data), sizes[1]
    product_in_tiles(sizes, left, right, together, joins and not first, narrow and (first or joins), place)
    if first or joins:
        leave(total, False, last, partials, sharing)
    else:
        add_block(total, made, False, last, how, partials, mask, sharing)


@apart
def _settle(
    sums: Array,
    shape: Any,
    begin: int,
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
    """Sums of some outputs become outputs, row by row.

    Args:
        sums: float32, flat.
        shape: Outputs of a row, columns, and those of them that are stored.
        begin: How many outputs come before these.
        bias: As of ``run``, of these columns.
        first: Where in ``out`` the first element of the first row goes.
        place: As of ``run``.
    """
    outputs, columns, stored = shape
    done, count = 0, sums.size // columns
    while done < count:
        row, at = (begin + done) // outputs, (begin + done) % outputs
        some = min(outputs - at, count - done)
        part = sums[done * columns : (done + some) * columns]
        to = (0, some, place[1], 1, 0, columns, stored, place[3])
        target = first + row * place[0] + at * place[1]
        settle(part, bias, how, kinds, mask, sharing, sharing_out, out, target, to)
        done += some


@called_with(*(
    f"({_CALL})".format(pixels, matrix, made)
    for matrix in _HELD
    for pixels, made in zip(_HELD, ("uint32", "uint16"), strict=True)
))  # fmt: skip
@apart
def run(
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
    together: int,
    rooms: Any,
    sums: Any,
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
    """Rows of outputs, each in its place; arguments as ``device.matrix_unit.fast`` makes them.

    Args:
        pixels: Integers, the image [rows, columns, channels], flat.
        pitches: Elements from one of its rows, and of its pixels, to the next.
        cut: Bits of pixels that are multiplied.
        blocks: int64 [K blocks, 5]: the row and column of the first output's first pixel, the first channel, how many
            channels, and where in the room for pixels they begin.
        windows: How many pixels side by side an output meets, the outputs of a row, and rows of the image from one row
            of outputs to the next.
        matrix: Integers, what weights are taken from, flat.
        rows_of: int64 [phases, depths], the row of it for each product of an output; none of its rows for zeros.
        weights: Elements from one of its rows to the next, and the bits that are multiplied.
        tiles: int64 [tiles, 5], columns that are multiplied at a time: their phase, the first of them in the matrix and
            among those of a phase, how many, and how many are stored.
        rows: Rows of outputs.
        together: Numbers of a word: one, or two of bfloat16, of channels that are two by two.
        rooms: int32, room for the words of all pixels that are met, for each channel once, and for those of the weights
            of a tile.
        sums: float32, room for the sums of some outputs, a multiple of six, and for as many products.
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
    masks, height, filled = (cut, mask_of_pair(cut)), (rows - 1) * down + above + 1, 0
    for _, _, channel, channels, begin in blocks:
        if begin == filled:
            source = top * pitches[0] + left * pitches[1] + channel
            _fill(pixels, source, pitches, masks, (height, across), channels, together, rooms[0], begin)
            filled += height * across * (channels // together)
    behind, begins = 0, np.empty(sums[0].size // tiles[0, 3], np.int64)
    for phase, weight, column, wide, stored in tiles:
        of_phase = rows_of[phase]
        _load(matrix, weights, of_phase, (weight, wide), together, rooms[1])
        added = bias[behind : behind + wide] if bias.size else bias
        lot = begins.size
        for one in range(0, rows * outputs, lot):
            count, right = min(lot, rows * outputs - one), np.int64(rooms[1].ctypes.data)
            total, of_pixels = sums[0][: count * wide], 0
            for n in range(len(blocks)):
                row, start, _, channels, begin = blocks[n]
                of_pixel, depth = channels // together, taps * channels
                met = np.int64(rooms[0].ctypes.data) + 4 * (begin + of_pixel * ((row - top) * across + start - left))
                if of_pixel != of_pixels:
                    _count_rows(one, rows * outputs, outputs, of_pixel, across * of_pixel * down, begins)
                    of_pixels = of_pixel
                _add_block(
                    (count, wide, depth),
                    (met, np.int64(begins.ctypes.data)),
                    (right, wide),
                    together,
                    (n == 0, n == len(blocks) - 1 and not how[3]),
                    how,
                    kinds[0],
                    mask,
                    sharing,
                    sums[1],
                    total,
                )
                right += 4 * (depth // together) * wide
            to = first + phase * place[2] + column
            shape = (outputs, wide, stored)
            _settle(total, shape, one, added, how, kinds, mask, sharing, sharing_out, out, to, place)
        behind += wide
