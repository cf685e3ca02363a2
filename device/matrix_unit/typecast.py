"""Typecast on the device: a tensor goes from L1 through Dst to the packer, which writes another format.

Source: tt-metal 0.81.1. Towards bfloat8_b the packer is told to read Dst as it is (`bfp8_pack_precise`), so that there
is one rounding, half up, straight to the shared exponent; towards bfloat4_b it is not, and rounds and cuts as behind a
matmul. Recorded for bfloat16; a float32 source of block floats follows the same code without a recording.
"""

from typing import Final

import numpy as np

from device.matrix_unit.packer import pack, share_exponents
from device.numbers.block_floats import whole_groups
from device.numbers.formats import BFLOAT8_B, FLOAT32, GROUP, Array, DataFormat, quantize

KEPT: Final = np.uint32(0xFFFFE000)  # sign, exponent and ten bits, as many as rounding looks at
STICKY: Final = np.uint32(0x00002000)  # the last of them, which stands for all that are cut


CHUNK_NUMBERS: Final = 1 << 17  # converted at a time, so that what is made on the way stays in the cache


def typecast(values: Array, source: DataFormat, target: DataFormat) -> Array:
    """Values in another format, as the device converts them.

    Args:
        values: Any shape, exact in ``source``. Block floats group 16 neighbors of the last axis, the last group filled
            up with zeros.
        source: What they are.
        target: What they become.

    Returns:
        The same shape, in storage of the target.

    Raises:
        ArgumentError: An integer format is asked to hold an infinity or a NaN.
    """
    if not target.is_block or not source.is_float or values.ndim == 0:
        return quantize(values, target)
    rows = values.reshape(-1, values.shape[-1] if values.shape[-1] % GROUP else GROUP)
    made, step = np.empty(rows.shape, target.storage), max(CHUNK_NUMBERS // rows.shape[1], 1)
    for start in range(0, len(rows), step):
        chunk = slice(start, start + step)
        made[chunk] = _shared(rows[chunk], source, target)[:, : rows.shape[1]]
    return made.reshape(values.shape)


def _shared(rows: Array, source: DataFormat, target: DataFormat) -> Array:
    """Rows as block floats, filled up to whole groups; float32."""
    filled = whole_groups(rows)
    if target == BFLOAT8_B:
        return share_exponents(_shortened(filled) if source == FLOAT32 else filled, target)  # others are that short
    return pack(filled, target, fp32_dest=source == FLOAT32)


def _shortened(values: Array) -> Array:
    """float32 values of 11 significant bits that round half up as the given ones do."""
    bits = values.view(np.uint32)
    return np.where(bits & ~KEPT, (bits & KEPT) | STICKY, bits).view(np.float32)
