"""The K loop of a convolution as machine code, for ``device.matrix_unit.fused``, with numpy's own BLAS function."""

from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from device.host.compiling import called_with, compiled, readonly
from device.host.product_loops import product_in_parts
from device.host.products import AS_IT_IS, BY_ROWS
from device.host.threads import DEPTH
from device.numbers.loops import share

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

ROWS_OF_A_KERNEL: Final = 4  # of OpenBLAS, which takes as long for fewer
LEAST_ROWS: Final = 8  # of a product that is made where it lies
_SHARING: Final = "Tuple((int64, int32, float32, float32, float32))"
_CALL: Final = ", ".join((
    "UniTuple(int64, 2)", "{}", "UniTuple(int64, 4)", readonly("int64", 2), readonly("int64", 2), "UniTuple(int64, 2)",
    "float32[::1]", "int64", "float32[:,:,::1]", "float32[::1]", "boolean", "UniTuple(boolean, 5)",
    "UniTuple(int64, 2)", "UniTuple(int32, 2)", _SHARING, _SHARING, "{}[::1]", "int64",
    "Tuple((int64, int64, int64, int64, int64, int64, int64, boolean))",
))  # fmt: skip

int32 = np.int32
float32 = np.float32
apart = partial(compiled, fuses=False)


@apart
def _round(part: Array) -> None:
    """Rounds float32 numbers half up to bfloat16, in place."""
    bits = part.view(np.int32)
    for i in range(bits.size):
        bits[i] = int32(bits[i] + int32(0x8000)) & int32(-0x10000)


@apart
def _add(target: Array, part: Array) -> None:
    for i in range(target.size):
        target[i] += part[i]


@apart
def _add_rounded(target: Array, part: Array) -> None:
    """Adds float32 numbers, and rounds the sums half up to bfloat16."""
    for i in range(target.size):
        bits = float32(target[i] + part[i]).view(np.int32)
        target[i] = int32(int32(bits + int32(0x8000)) & int32(-0x10000)).view(np.float32)


@apart
def _add_bias(rows: Array, bias: Array) -> None:
    for n in range(rows.shape[0]):
        for i in range(bias.size):
            rows[n, i] += bias[i]


@apart
def _cut(part: Array, mask: np.int32) -> None:
    """Partial sums as the matrix unit reads them."""
    if mask != -1:
        bits = part.view(np.int32)
        for i in range(bits.size):
            bits[i] = bits[i] & mask


@apart
def _pack(part: Array, kind: int, sharing: Any) -> None:
    """Sums as the packer writes them: unchanged (0), bfloat16 (1) or a block float (2)."""
    if kind == 1:
        _round(part)
    elif kind == 2:
        group, smallest, stretch, magic, unit = sharing
        share(part.view(np.int32).reshape(-1, group), smallest, stretch, magic, unit)


@apart
def _rectify(part: Array) -> None:
    """ReLU, as numpy's maximum of zero: no negative zero is left, and NaN stays."""
    for i in range(part.size):
        part[i] = float32(0) if part[i] <= 0 else part[i]


@apart
def _add_block(
    total: Array, part: Array, first: bool, last: bool, how: Any, partials: int, mask: np.int32, sharing: Any
) -> None:
    """Adds the products of one more K block to the sums; the products of the first block are there already."""
    narrow, accumulates, rounds_in_l1 = how[0], how[1], how[2]
    if not first and accumulates and not last:
        if narrow:
            _round(part)
        _pack(part, partials, sharing)
        _add(total, part)
        if rounds_in_l1:
            _round(total)
        return
    if not first and narrow and mask == -1:
        _add_rounded(total, part)
        if not last:
            _pack(total, partials, sharing)
        return
    if not first:
        _cut(total, mask)
        _add(total, part)
    _leave(total, narrow, last, partials, sharing)


@apart
def _leave(total: Array, rounds: bool, last: bool, partials: int, sharing: Any) -> None:
    """Leaves sums after a K block as Dst holds them and, where the block is not the last, as the packer writes them."""
    if rounds:
        _round(total)
    if not last:
        _pack(total, partials, sharing)


@apart
def _settle(
    part: Array,
    bias: Array,
    packs_last: bool,
    how: Any,
    kinds: Any,
    mask: np.int32,
    sharing: Any,
    sharing_out: Any,
    out: Array,
    first: int,
    place: Any,
) -> None:
    """Makes outputs of the sums of a row of outputs, from the first element on; other parameters are those of `run`."""
    _, outer, across, inner, between, span, count, halves = place
    if packs_last:
        _cut(part, mask)
    if bias.size:
        _add_bias(part.reshape(-1, bias.size), bias)
        if how[0]:
            _round(part)
    if how[3]:
        _pack(part, kinds[0], sharing)
        _cut(part, mask)
    if how[4]:
        _rectify(part)
    _pack(part, kinds[1], sharing_out)
    bits = part.view(np.int32)
    for i_outer in range(outer):
        for i_inner in range(inner):
            begin = first + i_outer * across + i_inner * between
            target = out[begin : begin + count]
            source = bits[(i_outer * inner + i_inner) * span :]
            if halves:
                for i in range(count):
                    target[i] = source[i] >> 16
            else:
                for i in range(count):
                    target[i] = source[i]


@apart
def _gather(pixels: Array, begin: int, lies: Any, taps: Array, mask: np.int32, room: Array) -> None:
    """Copies the pixels under each output's kernel positions to float32 rows, cut to the bits that are multiplied.

    ``begin`` outputs come before these; ``lies`` is as in `run`; ``room`` is int32 [outputs, depth].
    """
    (first, down, across, outputs), depth, flat = lies, room.shape[1], room.reshape(-1)
    for n in range(room.shape[0]):
        met = first + (begin + n) // outputs * down + (begin + n) % outputs * across
        for source_of, column, count in taps:
            source = pixels[met + source_of : met + source_of + count]
            target = flat[n * depth + column : n * depth + column + count]
            if pixels.itemsize == 2:
                for i in range(count):
                    target[i] = int32(source[i]) << 16 & mask
            else:
                for i in range(count):
                    target[i] = source[i] & mask


@apart
def _multiply(blas: Any, sizes: Any, left: int, right: Any, joins: bool, total: Array) -> None:
    """A product, stored into or added to its sums, in lots of rows small enough for BLAS to multiply them in place."""
    rows, columns, depth = sizes
    lot, most = rows, blas[1] // (min(depth, DEPTH) * columns) // ROWS_OF_A_KERNEL * ROWS_OF_A_KERNEL
    if most >= LEAST_ROWS:
        lots = (rows + most - 1) // most
        lot = ((rows + lots - 1) // lots + ROWS_OF_A_KERNEL - 1) // ROWS_OF_A_KERNEL * ROWS_OF_A_KERNEL
    for row in range(0, rows, lot):
        product_in_parts(
            blas[0],
            (BY_ROWS, AS_IT_IS, AS_IT_IS),
            (min(lot, rows - row), columns, depth),
            (left + 4 * row * depth, depth),
            right,
            np.float32(joins),
            (total.ctypes.data + 4 * row * columns, columns),
        )


@called_with(*(
    f"({_CALL})".format(readonly(pixel, 1), result) for pixel in ("int32", "uint16") for result in ("uint32", "uint16")
))  # fmt: skip
@apart
def run(
    blas: Any,
    pixels: Array,
    lies: Any,
    taps: Array,
    blocks: Array,
    weights: Any,
    room: Array,
    rows: int,
    sums: Array,
    bias: Array,
    packs_last: bool,
    how: Any,
    kinds: Any,
    masks: Any,
    sharing: Any,
    sharing_out: Any,
    out: Array,
    first: int,
    place: Any,
) -> None:
    """Rows of outputs, each in its place; arguments as ``device.matrix_unit.fused`` makes them.

    Args:
        blas: Address of BLAS's product, and multiply-adds up to which it does not copy operands; 0 if it always does.
        pixels: Integers, the image, flat.
        lies: Elements of the image: the first that is met, from one row of outputs and from one output to the next;
            and the outputs of a row.
        taps: As of ``MetPixels``.
        blocks: As of ``MetPixels``.
        weights: The address of the weights [depths, columns], and the elements from one of their rows to the next.
        room: float32, room for the activations of the deepest K block of the outputs that are computed at a time.
        rows: Rows of outputs.
        sums: float32 [2, rows that are computed at a time, elements of a row], sums, and room for products.
        bias: float32 [columns], or nothing.
        packs_last: Whether the last block is packed.
        how: Whether Dst has 16 bits, the packer adds in L1, L1 rounds to bfloat16, outputs make one more trip, and a
            ReLU follows.
        kinds: How partial sums and outputs are packed.
        masks: Bits of activations that are multiplied, and of partial sums that are read.
        sharing: How partial sums that are block floats are rounded.
        sharing_out: How outputs are.
        out: The output buffer, flat, integers of its size.
        first: Where in it the first element goes.
        place: The distance between rows, spans of a row in two dimensions and the distances between those, the
            elements of a span and those that are kept, and whether the upper halves of numbers are stored.
    """
    outputs, mask = lies[3], masks[1]
    columns, step = sums.shape[2] // outputs, sums.shape[1]
    for begin in range(0, rows, step):
        count, right = min(step, rows - begin), weights[0]
        total = sums[0, :count].reshape(-1)
        for block in range(len(blocks)):
            depth, tap, end, filled = blocks[block]
            left = room[: count * outputs * depth].reshape(-1, depth)
            if not filled:
                left[:] = 0
            _gather(pixels, begin * outputs, lies, taps[tap:end], masks[0], left.view(np.int32))
            last = block == len(blocks) - 1 and not packs_last
            joins = block > 0 and (last or not how[1]) and depth <= DEPTH
            part = total if joins or block == 0 else sums[1, :count].reshape(-1)
            if joins:
                _cut(total, mask)
            sizes = count * outputs, columns, depth
            _multiply(blas, sizes, room.ctypes.data, (right, weights[1]), joins, part)
            if joins:
                _leave(total, how[0], last, kinds[0], sharing)
            else:
                _add_block(total, part, block == 0, last, how, kinds[0], mask, sharing)
            right += 4 * depth * weights[1]
        for m in range(count):
            to = first + (begin + m) * place[0]
            _settle(sums[0, m], bias, packs_last, how, kinds, mask, sharing, sharing_out, out, to, place)
