"""Sums of a few pixels for each of many results, each pixel times a weight of its own, on the matrix unit."""

from collections.abc import Callable
from typing import Final

import numpy as np

from device.host.threads import parts_of
from device.matrix_unit.arithmetic import EXACT, Arithmetic, arithmetic_of, cut
from device.matrix_unit.exact import MatrixUnitMode, weighted_sums
from device.numbers.formats import Array, Integers
from device.numbers.rounding import round_half_up

FIXED_BITS: Final = 16  # fraction bits of the fixed-point numbers with which kernels compute positions and weights
FIXED_ONE: Final = 1 << FIXED_BITS


def fixed_weights(down: Integers, across: Integers) -> Array:
    """[..., 4] weights of the corners around a position, from the shares of the lower and the right corners; float32.

    The shares have `FIXED_BITS` fraction bits; weights are truncated to bfloat16.
    """
    corners = [
        rows * columns >> FIXED_BITS for rows in (FIXED_ONE - down, down) for columns in (FIXED_ONE - across, across)
    ]
    exact = np.stack(corners, axis=-1).astype(np.float32) / np.float32(FIXED_ONE)
    return (exact.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def interpolated(
    factors: Array,
    pixels: Callable[[slice], Array],
    arithmetic: Arithmetic,
    mode: MatrixUnitMode,
    packed: Callable[[Array], Array],
    columns: int,
) -> Array:
    """[N, columns] packed sums; ``factors`` are float32 [N, pixels], ``pixels`` returns float32 pixels of a part of N.

    ``packed`` packs the Dst of a part, float32 [N of the part, columns].
    """
    parts = list(parts_of(len(factors), factors.shape[1] * columns))
    results: dict[int, Array] = {}

    def compute(part: slice) -> None:
        results[part.start] = packed(_sums(factors[part], pixels(part), arithmetic, mode))

    arithmetic.each(compute, parts)
    return np.concatenate([results[part.start] for part in parts])


def _sums(factors: Array, pixels: Array, arithmetic: Arithmetic, mode: MatrixUnitMode) -> Array:
    """Dst, float32 [N, columns], of factors [N, pixels] and pixels [N, pixels, columns]."""
    if arithmetic_of(arithmetic, pixels) is EXACT:
        with np.errstate(all="ignore"):
            return weighted_sums(factors.view(np.uint32), pixels.view(np.uint32), mode=mode).view(np.float32)
    factor_mask, pixel_mask = arithmetic.operand_masks(mode)
    factors, pixels = cut(factors.copy(), factor_mask), cut(pixels, pixel_mask)
    result = np.zeros((len(factors), pixels.shape[2]), np.float32)
    for number in range(factors.shape[1]):
        result += factors[:, number, None] * pixels[:, number]
    return result if mode.fp32_dest else round_half_up(result)
