"""The two arithmetics of values: exact, bit for bit like the device, and fast, in floating point.

Each arithmetic implements the block product of the matrix unit and the conversions between L1 and the matrix unit.
Operations are written once, over an `Arithmetic`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from device.host.threads import on_all_cores, side_by_side
from device.matrix_unit import fast, packer
from device.matrix_unit.blocks import block_product
from device.matrix_unit.exact import MatrixUnitMode
from device.numbers.formats import BFLOAT16, Array

_SIGN: Final = 0x8000  # of bfloat16
_EXPONENT: Final = 0x7F80
RUN_ELEMENTS: Final = 1 << 17  # elements of Dst that are worth computing at a time
_AT_A_TIME: Final = 1 << 19  # numbers that are looked at together, so that the second look finds them in a cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic:
    """One way to compute values."""

    name: str  # "exact" or "fast"
    product: Callable[..., Array]  # As `device.matrix_unit.blocks.block_product`
    # The bits of an activation and of a weight that `product` takes in a mode, as signed numbers: see `cut`
    operand_masks: Callable[[MatrixUnitMode], tuple[int, int]]
    # As the functions of `device.matrix_unit.packer`; Dst may be written over
    unpack: Callable[..., Array]  # From L1 to the matrix unit
    pack: Callable[..., Array]  # From Dst to L1
    tilize: Callable[..., Array]  # From rows to tiles
    accumulate_l1: Callable[..., Array]  # Addition in L1
    add_bias: Callable[..., Array]  # A row added to every row of Dst
    # Whether numbers wider than the matrix unit's operands are multiplied in slices, pass by pass, as a program has to;
    # otherwise they are multiplied whole, since the sums are those of all passes together
    slice_by_slice: bool
    each: Callable[[Callable[[Any], None], Iterable[Any]], None]  # Runs a function for each of independent runs


def cut(values: Array, mask: int) -> Array:
    """Masks the bits of float32 numbers in place; the mask is a signed number."""
    if mask != -1:
        bits = values.view(np.int32)
        bits &= np.int32(mask)
    return values


EXACT: Final = Arithmetic(
    name="exact",
    product=block_product,
    operand_masks=lambda mode: (-1, -1),
    unpack=packer.unpack,
    pack=packer.pack,
    tilize=packer.tilize,
    accumulate_l1=packer.accumulate_l1,
    add_bias=packer.add_bias,
    slice_by_slice=True,
    each=on_all_cores,
)

FAST: Final = Arithmetic(
    name="fast",
    product=fast.product,
    operand_masks=fast.operand_masks,
    unpack=fast.unpack,
    pack=fast.pack,
    tilize=fast.tilize,
    accumulate_l1=fast.accumulate_l1,
    add_bias=fast.add_bias,
    slice_by_slice=False,
    each=side_by_side,
)


def arithmetic_of(arithmetic: Arithmetic, *operands: Array | None) -> Arithmetic:
    """The arithmetic for these operands: exact arithmetic if some are infinite or NaN.

    The matrix unit treats infinity and NaN as numbers with exponent 255; floating point would propagate them.
    """
    if arithmetic is EXACT or all(operand is None or _is_finite(operand) for operand in operands):
        return arithmetic
    return EXACT


def _is_finite(values: Array) -> bool:
    """Whether float32 or bfloat16 numbers contain neither infinities nor NaN."""
    if values.dtype != BFLOAT16.storage or not values.flags.c_contiguous:
        return bool(np.isfinite(values).all())
    bits = values.reshape(-1).view(np.uint16)
    return all(_are_finite(bits[begin : begin + _AT_A_TIME]) for begin in range(0, bits.size, _AT_A_TIME))


def _are_finite(bits: Array) -> bool:
    """Whether bfloat16 bit patterns are finite: two maxima are faster than a mask and its maximum.

    As unsigned integers, patterns with a sign are above those without; as signed ones, below.
    """
    return bool(bits.max() < _SIGN | _EXPONENT and bits.view(np.int16).max() < _EXPONENT)
