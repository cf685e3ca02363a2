"""Operands of the matrix unit as float32 numbers, prepared so that a float addition does the unit's rounding.

The unit brings eight integer products to their largest exponent, rounding each half up on the magnitude, and adds them
(``device.matrix_unit.exact``). The fast twins do that with one multiply-add a product, and get the same integers:

* With X the largest exponent of the group, one unit of the sum is worth u = 2**(X - 127 - 10). An accumulator that
  starts at ``1.5 * 2**23 * u`` has a last bit of exactly u, and stays in its binade: eight products are below
  2**15 u. Adding a product to it therefore rounds the product to a multiple of u, to nearest.
* What is left are ties, which must go away from zero. So every activation is stretched by ``1 + 2**-13``. A product
  m * 2**-d u has an integer m < 4096: where it lay half-way it now lies beyond; everywhere else the stretch is
  below half a unit of m, which neither reaches the next tie nor, for d = 0, the next integer. Stretched operands have
  20 bits, products at most 25: whether multiply and add are fused or the product is rounded to 24 bits first, the
  outcome is the same.
* The integer sum is the difference of the accumulator's bit pattern and that of its start.

Weights are scaled by 2**15, so that no product of a group that counts (X >= 1) falls below float32's smallest steps.
The price is paid at the other end: ``in_range`` tells whether the accumulator stays below float32's largest number.
"""

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

__all__ = [
    "ABSENT_EXPONENT",
    "ACTIVATION_HIGH_MASK",
    "ACTIVATION_MASK",
    "ACTIVATION_STRETCH",
    "ANCHOR_BITS",
    "MAX_ACTIVATION_EXPONENT",
    "MAX_EXPONENT_SUM",
    "MAX_WEIGHT_EXPONENT",
    "Parts",
    "activation_parts",
    "in_range",
    "largest_exponent",
    "weight_parts",
]

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

WEIGHT_MASK: Final = 0xFFFFC000  # sign, exponent and the nine mantissa bits that some fidelity phase uses
WEIGHT_HIGH_MASK: Final = 0xFFF80000  # and four
ACTIVATION_MASK: Final = 0xFFFFE000  # ten mantissa bits
ACTIVATION_HIGH_MASK: Final = 0xFFFE0000  # and six
ACTIVATION_STRETCH: Final = 1.0 + 2.0**-13
WEIGHT_SCALE_EXPONENT: Final = 15
ABSENT_EXPONENT: Final = -8192  # of a zero operand: any sum with it is below every real one
# Bit pattern of an accumulator's start without X: exponent field 127 + 23 - 137 + 15 = 28, mantissa 1.5.
ANCHOR_BITS: Final = (28 << 23) | (1 << 22)
MAX_WEIGHT_EXPONENT: Final = 254 - WEIGHT_SCALE_EXPONENT
MAX_ACTIVATION_EXPONENT: Final = 254
MAX_EXPONENT_SUM: Final = 254 - 28 + 127


class Parts(NamedTuple):
    """Operands cut into what the fidelity phases multiply.

    Attributes:
        high: float32, for the fidelity phases that take the high part.
        low: float32, for the others.
        exponents: int16, ``ABSENT_EXPONENT`` where the operand is zero.
    """

    high: Array
    low: Array
    exponents: Array


def weight_parts(bits: Array) -> Parts:
    """Parts of weights, scaled; ``bits`` is uint32 of any shape, exponents at most ``MAX_WEIGHT_EXPONENT``."""
    return _parts(bits, WEIGHT_MASK, WEIGHT_HIGH_MASK, 2.0**WEIGHT_SCALE_EXPONENT)


def activation_parts(bits: Array) -> Parts:
    """Parts of activations, stretched; ``bits`` is uint32 of any shape, exponents at most 254."""
    return _parts(bits, ACTIVATION_MASK, ACTIVATION_HIGH_MASK, ACTIVATION_STRETCH)


def largest_exponent(bits: Array) -> int:
    """Largest exponent field among bit patterns, 0 if there are none."""
    return int((bits & np.uint32(0x7FFFFFFF)).max(initial=0)) >> 23


def in_range(weight_exponent: int, activation_exponent: int) -> bool:
    """Whether operands with these largest exponents may be computed in float32."""
    return (
        weight_exponent <= MAX_WEIGHT_EXPONENT
        and activation_exponent <= MAX_ACTIVATION_EXPONENT
        and weight_exponent + activation_exponent <= MAX_EXPONENT_SUM
    )


def _parts(bits: Array, mask: int, high_mask: int, factor: float) -> Parts:
    exponents = ((bits >> np.uint32(23)) & np.uint32(0xFF)).astype(np.int16)
    absent = exponents == 0
    cut = np.where(absent, np.uint32(0), bits & np.uint32(mask))
    high = (cut & np.uint32(high_mask)).view(np.float32)
    low = cut.view(np.float32) - high
    scale = np.float32(factor)
    return Parts(high * scale, low * scale, np.where(absent, np.int16(ABSENT_EXPONENT), exponents))
