"""Products of K blocks and their way to the output as machine code.

Loaded by ``device.matrix_unit.fast``, which says what happens on the way and in which order. Products are BLAS's,
by the very function that numpy calls.
"""

from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from device.host.compiling import called_with, compiled
from device.host.pieces import DEPTH
from device.host.product_loops import product_in_parts
from device.host.products import AS_IT_IS, BY_ROWS
from device.numbers.loops import share

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_SHARING: Final = "Tuple((int64, int32, float32, float32, float32))"
_CALL: Final = (
    "(int64, Array({}, 1, 'C', readonly=True), UniTuple(int64, 4), int64[:,::1], float32[:,::1], int64, "
    "float32[:,:,::1], float32[::1], UniTuple(boolean, 6), UniTuple(int64, 2), UniTuple(int32, 2), "
    + 2 * (_SHARING + ", ")
    + "{}[::1], int64, Tuple((int64, int64, int64, int64, int64, int64, int64, boolean)))"
)

int32 = np.int32
float32 = np.float32
apart = partial(compiled, fuses=False)


@apart
def _round(part: Array) -> None:
    """float32 numbers half up to bfloat16."""
    bits = part.view(np.int32)
    for i in range(bits.size):
        bits[i] = int32(bits[i] + int32(0x8000)) & int32(-0x10000)


@apart
def _add(target: Array, part: Array) -> None:
    for i in range(target.size):
        target[i] += part[i]


@apart
def _add_rounded(target: Array, part: Array) -> None:
    """float32 numbers are added, and sums rounded half up to bfloat16."""
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
    """What the matrix unit reads of partial sums."""
    if mask != -1:
        bits = part.view(np.int32)
        for i in range(bits.size):
            bits[i] = bits[i] & mask


@apart
def _pack(part: Array, kind: int, sharing: Any) -> None:
    """What the packer writes: as it is (0), bfloat16 (1) or a block float (2)."""
    if kind == 1:
        _round(part)
    elif kind == 2:
        group, smallest, stretch, magic, unit = sharing
        share(part.view(np.int32).reshape(-1, group), smallest, stretch, magic, unit)


@apart
def _rectify(part: Array) -> None:
    """ReLU, as numpy's maximum of zero: no negative zero is left, and what is no number stays."""
    for i in range(part.size):
        part[i] = float32(0) if part[i] <= 0 else part[i]


@apart
def add_block(
    total: Array, part: Array, first: bool, last: bool, how: Any, partials: int, mask: np.int32, sharing: Any
) -> None:
    """The products of one more K block into sums; those of the first block, and nothing else, are there already."""
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
    leave(total, narrow, last, partials, sharing)


@apart
def leave(total: Array, rounds: bool, last: bool, partials: int, sharing: Any) -> None:
    """Sums after a K block, as Dst holds them and, where the block is not the last, the packer writes them."""
    if rounds:
        _round(total)
    if not last:
        _pack(total, partials, sharing)


@apart
def settle(
    part: Array,
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
    """The sums of a row of outputs become outputs, from the first element on; otherwise as of `run`."""
    _, outer, across, inner, between, span, kept, halves = place
    if how[3]:
        _cut(part, mask)
    if bias.size:
        _add_bias(part.reshape(-1, bias.size), bias)
        if how[0]:
            _round(part)
    if how[4]:
        _pack(part, kinds[0], sharing)
        _cut(part, mask)
    if how[5]:
        _rectify(part)
    _pack(part, kinds[1], sharing_out)
    bits = part.view(np.int32)
    for one in range(outer):
        for other in range(inner):
            begin = first + one * across + other * between
            target = out[begin : begin + kept]
            source = bits[(one * inner + other) * span :]
            if halves:
                for i in range(kept):
                    target[i] = source[i] >> 16
            else:
                for i in range(kept):
                    target[i] = source[i]


@apart
def _widen(activations: Array, first: int, pitch: int, mask: np.int32, room: Array, rows: int) -> None:
    """Rows of activations, as they are held, become float32, cut to what is multiplied."""
    depth = room.shape[1]
    if pitch == depth:
        rows, depth = 1, rows * depth
    flat = room.reshape(-1).view(np.int32)
    for n in range(rows):
        begin = first + n * pitch
        source, target = activations[begin : begin + depth], flat[n * depth : n * depth + depth]
        if activations.itemsize == 2:
            for i in range(depth):
                target[i] = int32(source[i]) << 16 & mask
        else:
            for i in range(depth):
                target[i] = source[i] & mask


@apart
def _multiply(sgemm: Any, sizes: Any, left: Any, right: Any, joins: bool, total: Array, lot: int) -> None:
    """A product, into or onto its sums, so many rows at a time."""
    rows, columns, depth = sizes
    for row in range(0, rows, lot):
        product_in_parts(
            sgemm,
            (BY_ROWS, AS_IT_IS, AS_IT_IS),
            (min(lot, rows - row), columns, depth),
            (left[0] + 4 * row * left[1], left[1]),
            right,
            np.float32(joins),
            (total.ctypes.data + 4 * row * columns, columns),
        )


@called_with(*(_CALL.format(given, made) for given in ("int32", "uint16") for made in ("uint32", "uint16")))
@apart
def run(
    sgemm: Any,
    activations: Array,
    operands: Any,
    blocks: Array,
    room: Array,
    rows: int,
    sums: Array,
    bias: Array,
    how: Any,
    kinds: Any,
    masks: Any,
    sharing: Any,
    sharing_out: Any,
    out: Array,
    first: int,
    place: Any,
) -> None:
    """Rows of outputs, each in its place; arguments as ``device.matrix_unit.fast`` makes them.

    Args:
        sgemm: Where BLAS's product is.
        activations: Integers, what the matrix [outputs, depths] of the activations lies in from its first element on.
        operands: The address of the weights [depths, columns], the elements from one of their rows to the next and
            from one row of the activations to the next, and how many outputs there are in a row of them.
        blocks: int64 [blocks, 2], for each K block its depth and the rows of a product.
        room: float32, room for the activations of the rows that are computed at a time; none if they are read in place.
        rows: Rows of outputs.
        sums: float32 [2, rows that are computed at a time, elements of a row], sums, and room for products.
        bias: float32 [columns], or nothing.
        how: Whether Dst has 16 bits, the packer adds in L1, L1 rounds to bfloat16, the last block is packed,
            outputs make one more trip, and a ReLU follows.
        kinds: How partial sums and outputs are packed.
        masks: Bits of activations that are multiplied, and of partial sums that are read.
        sharing: How partial sums that are block floats are rounded.
        sharing_out: How outputs are.
        out: The output buffer, flat, integers of its size.
        first: Where in it the first element goes.
        place: The distance between rows, spans of a row in two dimensions and the distances between those, the
            elements of a span and those that are kept, and whether the upper halves of numbers are stored.
    """
    weights, weight_pitch, pitch, outputs = operands
    columns, step, mask = sums.shape[2] // outputs, sums.shape[1], masks[1]
    for begin in range(0, rows, step):
        count = min(step, rows - begin)
        left, held, depth = activations.ctypes.data + 4 * begin * outputs * pitch, pitch, 0
        if room.size:
            _widen(activations, begin * outputs * pitch, pitch, masks[0], room, count * outputs)
            left, held = room.ctypes.data, room.shape[1]
        total = sums[0, :count].reshape(-1)
        for block in range(len(blocks)):
            last = block == len(blocks) - 1 and not how[3]
            joins = block > 0 and (last or not how[1]) and blocks[block, 0] <= DEPTH
            part = total if joins or block == 0 else sums[1, :count].reshape(-1)
            if joins:
                _cut(total, mask)
            _multiply(
                sgemm,
                (count * outputs, columns, blocks[block, 0]),
                (left + 4 * depth, held),
                (weights + 4 * depth * weight_pitch, weight_pitch),
                joins,
                part,
                blocks[block, 1],
            )
            if joins:
                leave(total, how[0], last, kinds[0], sharing)
            else:
                add_block(total, part, block == 0, last, how, kinds[0], mask, sharing)
            depth += blocks[block, 0]
        for m in range(count):
            to = first + (begin + m) * place[0]
            settle(sums[0, m], bias, how, kinds, mask, sharing, sharing_out, out, to, place)
