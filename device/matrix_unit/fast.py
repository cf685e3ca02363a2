"""The matrix unit in floating point: BLAS over blocks, with rounding where the packer rounds.

Operands are truncated to the bits that the fidelity multiplies; a 16-bit Dst is rounded once per block instead of once
per step. So results differ from the device's only in the last places. Denormals, infinities and NaN are treated like on
the device only when block floats are packed. The functions mirror those of `blocks` and `packer`, and may overwrite a
given Dst.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from device.host.threads import depth_of_part
from device.matrix_unit import packer
from device.matrix_unit.exact import MatrixUnitMode
from device.numbers.formats import BFLOAT16, FLOAT32, Array, DataFormat
from device.numbers.rounding import LARGEST_SHARED, add, round_half_up, share

_TF32: Final = 0xFFFFE000  # sign, exponent and the ten mantissa bits an operand has
_BFLOAT16: Final = 0xFFFF0000
_WEIGHT_HIGH: Final = 0xFFF80000  # the four bits that fidelity phases 0 and 2 multiply
_WEIGHT_BOTH: Final = 0xFFFFC000  # nine: the lowest of the ten is never used
_ACTIVATION_HIGH: Final = 0xFFFE0000  # the six that fidelity phases 0 and 1 multiply


def operand_masks(mode: MatrixUnitMode) -> tuple[int, int]:
    """The bits of an activation and of a weight that the fidelity phases multiply, as signed numbers."""
    activations = _ACTIVATION_HIGH if mode.fidelity_phases < 3 else 0xFFFFFFFF
    weights = _WEIGHT_HIGH if mode.fidelity_phases == 1 else _WEIGHT_BOTH
    return activations - (1 << 32), weights - (1 << 32)


def product(
    activations: Array,
    weights: Array,
    dst: Array | None = None,
    *,
    mode: MatrixUnitMode,
    half_counts: Sequence[int] | None = None,
) -> Array:
    """`dst + activations @ weights` in float32 [rows, columns]; bfloat16 values when Dst is 16 bits wide.

    Both operands are float32, cut to their bits of `operand_masks`; ``dst`` None is zeros. ``half_counts`` is not used:
    the order of steps makes no difference here.
    """
    if mode.fidelity_phases == 3:
        high = _cut(activations, _ACTIVATION_HIGH)
        result = _sum_of_products(high, weights)
        result += _sum_of_products(activations - high, _cut(weights, _WEIGHT_HIGH))
    else:
        result = _sum_of_products(activations, weights)
    if dst is not None:
        return add(result, dst, rounds=not mode.fp32_dest)
    return result if mode.fp32_dest else round_half_up(result)


def _sum_of_products(left: Array, right: Array) -> Array:
    """BLAS's product, summed up in parts that do not depend on how large the matrices are."""
    done = depth_of_part(left.shape[1])
    result: Array = left[:, :done] @ right[:done]
    while done < left.shape[1]:
        end = done + depth_of_part(left.shape[1] - done)
        result += left[:, done:end] @ right[done:end]
        done = end
    return result


def unpack(values: Array, fmt: DataFormat, *, fp32_dest: bool) -> Array:
    """Truncates float32 to the bits of an operand; other formats fit unchanged."""
    if fmt == FLOAT32:
        return _cut(values, _TF32 if fp32_dest else _BFLOAT16)
    return values


def pack(dst: Array, fmt: DataFormat, *, fp32_dest: bool, relu: bool = False) -> Array:
    """Rounds Dst to the format, in place; the exact packer rounds block floats that `share` cannot round."""
    if fmt.is_block and not _is_shared(dst):
        return packer.pack(dst, fmt, fp32_dest=fp32_dest, relu=relu)
    if relu:
        dst = np.maximum(dst, np.float32(0), out=dst)
    if fmt == BFLOAT16 and fp32_dest:
        round_half_up(dst)
    elif fmt.is_block:
        dst = share(dst, fmt.mantissa_bits)
    return dst


def _is_shared(values: Array) -> bool:
    """Whether `share` rounds the numbers like the packer: no very large numbers, infinities or NaN."""
    if not values.size:
        return True
    return bool(values.max() <= LARGEST_SHARED and values.min() >= -LARGEST_SHARED)


def tilize(values: Array, source: DataFormat, target: DataFormat, *, fp32_dest: bool, keeps_tf32: bool) -> Array:
    """Values rounded to the format of the tiles."""
    if source == FLOAT32:
        values = unpack(values, source, fp32_dest=fp32_dest and (target == FLOAT32 or keeps_tf32))
    if target == FLOAT32 or (target == BFLOAT16 and source != FLOAT32):
        return values
    return pack(values, target, fp32_dest=True)


def accumulate_l1(stored: Array, packed: Array, fmt: DataFormat) -> Array:
    """The sum, rounded half up where L1 rounds to even."""
    return add(stored, packed, rounds=fmt != FLOAT32)


def add_bias(dst: Array, bias: Array, *, fp32_dest: bool) -> Array:
    """Adds the bias in place."""
    return add(dst, bias, rounds=not fp32_dest)


def _cut(values: Array, mask: int) -> Array:
    return (values.view(np.uint32) & np.uint32(mask)).view(np.float32)
