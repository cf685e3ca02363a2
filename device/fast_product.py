"""The fast reading of a block product: floating point instead of the matrix unit's integers.

Operands are cut to the parts the fidelity multiplies and Dst is rounded once a block, so results differ from the
device's in the last places only. What it is for: quick answers about accuracy, where the very bits do not matter.
"""

from typing import Final, Protocol

import numpy as np

from device.formats import Array
from device.matrix_unit import MatrixUnitMode

_TF32: Final = 0xFFFFE000  # sign, exponent and the ten mantissa bits an operand has
_WEIGHT_HIGH: Final = 0xFFF80000  # the four that phases 0 and 2 multiply
_WEIGHT_BOTH: Final = 0xFFFFC000  # nine: the lowest of the ten is never used
_ACTIVATION_HIGH: Final = 0xFFFE0000  # the six that phases 0 and 1 multiply


class BlockProduct(Protocol):
    """How a block is multiplied: `fast_product`, or `device.matrix_unit_blocks.block_product`."""

    def __call__(
        self,
        activations: Array,
        weights: Array,
        dst: Array | None = None,
        *,
        mode: MatrixUnitMode,
        half_counts: tuple[int, ...],
    ) -> Array:
        """`dst + activations @ weights`: float32 [rows, depth], [depth, columns] and [rows, columns]."""
        ...


def fast_product(
    activations: Array, weights: Array, dst: Array | None = None, *, mode: MatrixUnitMode, half_counts: tuple[int, ...]
) -> Array:
    """`dst + activations @ weights` in float32, with operands cut as the fidelity does.

    Args:
        activations: float32 [rows, depth].
        weights: float32 [depth, columns].
        dst: float32 [rows, columns]; None for zeros.
        mode: Fidelity phases and width of Dst.
        half_counts: Not needed here; the order of steps makes no difference in floats.

    Returns:
        float32 [rows, columns]; bfloat16 values when Dst is 16 bits wide.
    """
    high_activations = _cut(activations, _ACTIVATION_HIGH)
    seen_weights = _cut(weights, _WEIGHT_HIGH if mode.phases == 1 else _WEIGHT_BOTH)
    seen_activations = high_activations if mode.phases < 4 else _cut(activations, _TF32)
    result: Array = seen_activations @ seen_weights
    if mode.phases == 3:
        result += (_cut(activations, _TF32) - high_activations) @ _cut(weights, _WEIGHT_HIGH)
    if dst is not None:
        result += dst
    if not mode.fp32_dest:
        bits = result.view(np.uint32)
        bits += np.uint32(0x8000)
        bits &= np.uint32(0xFFFF0000)
    return result


def _cut(values: Array, mask: int) -> Array:
    return (values.view(np.uint32) & np.uint32(mask)).view(np.float32)
