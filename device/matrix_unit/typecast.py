"""Typecast on the device: a tensor goes from L1 through Dst to the packer, which writes another format.

Source: tt-metal 0.81.1. Towards bfloat8_b the packer is told to read Dst as it is (`bfp8_pack_precise`), so that there
is one rounding, half up, straight to the shared exponent; towards bfloat4_b it is not, and rounds and cuts as behind a
matmul. Recorded for bfloat16; a float32 source of block floats follows the same code without a recording.
"""

from math import prod
from typing import Final

import numpy as np

from device.host.pieces import parts_of
from device.matrix_unit.packer import pack, share_exponents
from device.numbers.formats import BFLOAT8_B, FLOAT32, Array, DataFormat, quantize, whole_groups

KEPT: Final = np.uint32(0xFFFFE000)  # sign, exponent and ten bits, as many as rounding looks at
STICKY: Final = np.uint32(0x00002000)  # the last of them, which stands for all that are cut


def typecast(values: Array, source: DataFormat, target: DataFormat) -> Array:
    """Values in another format, as the device converts them: the same shape, in storage of ``target``.

    ``values`` are exact in ``source``. Block floats group 16 neighbors of the last axis; zeros fill up the last group.

    Raises:
        ArgumentError: An integer format is asked to hold an infinity or a NaN.
    """
    if not target.is_block or not source.is_float or values.ndim == 0:
        return quantize(values, target)
    *lead, columns = values.shape
    rows = values.reshape(prod(lead), columns)
    array = np.empty(rows.shape, target.storage)
    for part in parts_of(*rows.shape):
        array[part] = _packed(whole_groups(rows[part]), source, target)[:, :columns]
    return array.reshape(values.shape)


def _packed(values: Array, source: DataFormat, target: DataFormat) -> Array:
    """float32 values [rows, columns] in whole groups as a block float holds them, float32."""
    if target != BFLOAT8_B:
        return pack(values, target, fp32_dest=source == FLOAT32)
    return share_exponents(_shortened(values) if source == FLOAT32 else values, target)  # others are that short


def _shortened(values: Array) -> Array:
    """float32 values of 11 significant bits that round half up as the given ones do."""
    bits = values.view(np.uint32)
    return np.where(bits & ~KEPT, (bits & KEPT) | STICKY, bits).view(np.float32)
