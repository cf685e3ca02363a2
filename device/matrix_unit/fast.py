"""Floating point in the place of the matrix unit's integers: BLAS over blocks, rounding where the packer rounds.

Operands are cut to the parts the fidelity multiplies; a 16-bit Dst is rounded once a block instead of once a step. So
results differ from the device's in the last places only; denormals, infinities and NaN are not treated as the device
does. The functions mirror those of `blocks` and `packer`, and may write over a Dst they are given.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from device.matrix_unit.exact import MatrixUnitMode
from device.numbers.block_floats import largest_exponents, spread
from device.numbers.formats import BFLOAT16, FLOAT32, GROUP, Array, DataFormat

_TF32: Final = 0xFFFFE000  # sign, exponent and the ten mantissa bits an operand has
_BFLOAT16: Final = 0xFFFF0000
_WEIGHT_HIGH: Final = 0xFFF80000  # the four bits that fidelity phases 0 and 2 multiply
_WEIGHT_BOTH: Final = 0xFFFFC000  # nine: the lowest of the ten is never used
_ACTIVATION_HIGH: Final = 0xFFFE0000  # the six that fidelity phases 0 and 1 multiply
_HALF: Final = np.uint32(0x8000)
_SEVEN_BITS: Final = 0xFFFE0000  # sign, exponent and a significand of seven bits
_FRACTION_BITS: Final = 6  # of those, behind the leading one
_STRETCH: Final = 1.0 + 2.0**-13
_SMALLEST: Final = np.uint32(27 << 23)  # largest exponent of a group, 2^-100, below which it is as good as zero


def activation_operand(values: Array, mode: MatrixUnitMode) -> Array:
    """Activations cut, in place, to what the fidelity phases multiply."""
    return _cut_in_place(values, _ACTIVATION_HIGH) if mode.fidelity_phases < 3 else values


def weight_operand(values: Array, mode: MatrixUnitMode) -> Array:
    """Weights cut, in place, to what the fidelity phases multiply."""
    return _cut_in_place(values, _WEIGHT_HIGH if mode.fidelity_phases == 1 else _WEIGHT_BOTH)


def product(
    activations: Array,
    weights: Array,
    dst: Array | None = None,
    *,
    mode: MatrixUnitMode,
    half_counts: Sequence[int] | None = None,
) -> Array:
    """`dst + activations @ weights` in float32.

    Args:
        activations: float32 [rows, depth], of `activation_operand`.
        weights: float32 [depth, columns], of `weight_operand`.
        dst: float32 [rows, columns]; None for zeros.
        mode: Fidelity phases and width of Dst.
        half_counts: Not needed here: the order of steps makes no difference.

    Returns:
        float32 [rows, columns]; bfloat16 values when Dst is 16 bits wide.
    """
    if mode.fidelity_phases == 3:
        high = _cut(activations, _ACTIVATION_HIGH)
        result: Array = high @ weights
        result += (activations - high) @ _cut(weights, _WEIGHT_HIGH)
    else:
        result = activations @ weights
    if dst is not None:
        result += dst
    return result if mode.fp32_dest else _rounded(result)


def unpack(values: Array, fmt: DataFormat, *, fp32_dest: bool) -> Array:
    """float32 buffers are cut to what an operand holds; other formats fit."""
    if fmt == FLOAT32:
        return _cut(values, _TF32 if fp32_dest else _BFLOAT16)
    return values


def pack(dst: Array, fmt: DataFormat, *, fp32_dest: bool, relu: bool = False) -> Array:
    """Dst rounded to the format, in place."""
    if fmt == BFLOAT16 and fp32_dest:
        _rounded(dst)
    elif fmt.is_block:
        dst = _shared(dst, fmt)
    return np.maximum(dst, np.float32(0), out=dst) if relu else dst


def tilize(values: Array, source: DataFormat, target: DataFormat, *, fp32_dest: bool, keeps_tf32: bool) -> Array:
    """Values rounded to the format of the tiles."""
    if source == FLOAT32:
        values = unpack(values, source, fp32_dest=fp32_dest and (target == FLOAT32 or keeps_tf32))
    if target == FLOAT32 or (target == BFLOAT16 and source != FLOAT32):
        return values
    return pack(values, target, fp32_dest=True)


def accumulate_l1(stored: Array, packed: Array, fmt: DataFormat) -> Array:
    """The sum, rounded half up where L1 rounds to even."""
    stored += packed
    return stored if fmt == FLOAT32 else _rounded(stored)


def add_bias(dst: Array, bias: Array, *, fp32_dest: bool) -> Array:
    """The sum, in place."""
    dst += bias
    return dst if fp32_dest else _rounded(dst)


def _cut(values: Array, mask: int) -> Array:
    return (values.view(np.uint32) & np.uint32(mask)).view(np.float32)


def _cut_in_place(values: Array, mask: int) -> Array:
    bits = values.view(np.uint32)
    bits &= np.uint32(mask)
    return values


def _rounded(values: Array) -> Array:
    """Half up to bfloat16, in place."""
    bits = values.view(np.uint32)
    bits += _HALF
    bits &= np.uint32(_BFLOAT16)
    return values


def _shared(values: Array, fmt: DataFormat) -> Array:
    """Groups of 16 neighbors under the exponent of their largest, in place, rounded twice as `packer` does.

    First every value to as many bits as a bfloat8_b magnitude has, half up; then, by adding and subtracting
    1.5 * 2**23 units, to a multiple of the unit. That addition rounds ties to even, so values are stretched a little
    beforehand, which makes ties go up and moves nothing else.
    """
    bits = values.view(np.uint32)
    bits += np.uint32(1 << 16)
    bits &= np.uint32(_SEVEN_BITS)
    groups = values.reshape(-1, GROUP)
    binade = np.maximum(largest_exponents(bits), _SMALLEST).view(np.float32)
    groups *= np.float32(_STRETCH)
    magic = spread(binade * np.float32(1.5 * 2.0 ** (23 - _FRACTION_BITS)))
    groups += magic
    groups -= magic
    if fmt.mantissa_bits < _FRACTION_BITS + 1:
        unit = spread(binade * np.float32(2.0 ** (1 - fmt.mantissa_bits)))
        np.trunc(groups / unit, out=groups)
        groups *= unit
    return groups.reshape(values.shape)
