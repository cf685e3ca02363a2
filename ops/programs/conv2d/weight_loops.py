"""Raw weights become rows of block floats as machine code; loaded by ``ops.programs.conv2d.weights``."""

from typing import Any, Final, TypeAlias

import numpy as np

from device.host.compiling import called_with, compiled, readonly
from device.numbers.loops import round_even

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_CALL: Final = "({}, int64, int64, int64, boolean, UniTuple(int64, 4), UniTuple(int64, 2), int64, uint16[:,::1])"

int32 = np.int32


@called_with(*(_CALL.format(raw) for raw in (readonly("int32", 4), readonly("uint16", 4))))
@compiled
def lay_out(
    raw: Array, first: int, last: int, shift: int, mirrored: bool, strides: Any, outs: Any, bits: int, made: Array
) -> bool:
    """Some input channels of a weight, in place; False if one is too large for float32 sums.

    Args:
        raw: int32 or uint16 [last - first, O / groups, kh, kw], bit patterns of float32 or bfloat16.
        first: First input channel.
        last: Where they end.
        shift: Bits that float32 has behind those of a raw number.
        mirrored: Whether the kernel is flipped.
        strides: Input channels of a shard, and the rows from one shard, kernel row and kernel column to the next.
        outs: Output channels of a group, and input channels.
        bits: Width of a magnitude.
        made: uint16 [rows, columns], zeros at first.
    """
    channels, per_shard, per_row, per_column = strides
    row = np.zeros((made.shape[1] // 16, 16), np.int32)
    flat = row.reshape(-1)
    kernel_rows, kernel_columns = raw.shape[2], raw.shape[3]
    for channel in range(first, last):
        shard, held = channel // channels, channel % channels
        begin = channel // outs[1] * outs[0]
        flat[:] = 0
        for i in range(kernel_rows):
            down = kernel_rows - 1 - i if mirrored else i
            for j in range(kernel_columns):
                across = kernel_columns - 1 - j if mirrored else j
                target = flat[begin : begin + outs[0]]
                for o in range(target.size):
                    target[o] = int32(int32(raw[channel - first, o, down, across]) << shift)
                out = made[shard * per_shard + i * per_row + j * per_column + held]
                if not round_even(row, bits, out.reshape(-1, 16)):
                    return False
    return True
