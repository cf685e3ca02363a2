"""What happens to numbers between L1 and the matrix unit, compiled: the bits of ``device.matrix_unit.packer``.

Loaded by ``device.matrix_unit.packer`` and ``device.matrix_unit.blocks`` where the work is worth it
(``device.host.compiling``). Everything is done on int32 bit patterns, in integers as far as that is possible; all
integers are forced to 32 bits, so that the loops become vector instructions.
"""

from typing import Any, Final, TypeAlias

import numpy as np

from device.host.compiling import compiled

__all__ = ["begin", "largest_exponent"]

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_SIGN: Final = -(1 << 31)
_MAGNITUDE: Final = 0x7FFFFFFF
_INFINITY: Final = 0x7F800000
_SMALLEST: Final = 1 << 23

int32 = np.int32


@compiled
def largest_exponent(bits: Array) -> np.int32:
    """Largest exponent field of a matrix of int32 bit patterns, 0 if it is empty."""
    largest = int32(0)
    for row in range(bits.shape[0]):
        for n in range(bits.shape[1]):
            largest = max(largest, int32(bits[row, n] & int32(_MAGNITUDE)))
    return int32(largest >> 23)


@compiled
def begin(start: Array, dst: Array) -> np.int32:
    """Copies Dst as steps leave it: without denormals, negative zeros and NaNs, which are infinities.

    Args:
        start: int32 bit patterns [rows, cols].
        dst: int32 [rows, columns of whole blocks], which is written.

    Returns:
        All bits of ``start`` or'ed together.
    """
    seen = int32(0)
    cols = start.shape[1]
    for row in range(start.shape[0]):
        for n in range(cols):
            value = start[row, n]
            seen = int32(seen | value)
            magnitude = int32(value & int32(_MAGNITUDE))
            sign = int32(value & int32(_SIGN))
            finite = int32(sign | min(magnitude, int32(_INFINITY)))
            dst[row, n] = finite if magnitude >= int32(_SMALLEST) else int32(0)
        for n in range(cols, dst.shape[1]):
            dst[row, n] = int32(0)
    return seen
