"""Convolutions and windows in float64, and how far the device's results may lie from them."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from device.numbers.formats import GROUP, Array

Pair = tuple[int, int]


class Sides(NamedTuple):
    """Padding of an image."""

    top: int
    bottom: int
    left: int
    right: int


def framed(image: Array, sides: Sides, *, replicate: bool = False, fill: float = 0.0) -> Array:
    """An image [N, H, W, C] with padding around it; negative padding cuts rows and columns off."""
    around = [(0, 0), (max(sides.top, 0), max(sides.bottom, 0)), (max(sides.left, 0), max(sides.right, 0)), (0, 0)]
    pairs = zip(image.shape[1:3], sides[::2], sides[1::2], strict=True)
    cut = [slice(max(-before, 0), size + min(after, 0)) for size, before, after in pairs]
    kind: dict[str, Any] = {"mode": "edge"} if replicate else {"constant_values": fill}
    return np.pad(image[:, cut[0], cut[1]], around, **kind)


def zeros_between(image: Array, stride: Pair) -> Array:
    """An image [N, H, W, C] with zeros between its pixels."""
    batch, height, width, channels = image.shape
    result = np.zeros((batch, (height - 1) * stride[0] + 1, (width - 1) * stride[1] + 1, channels))
    result[:, :: stride[0], :: stride[1]] = image
    return result


def windows(image: Array, kernel: Pair, stride: Pair, dilation: Pair) -> Array:
    """[N, OH, OW, C, kernel height, kernel width] of an image that is padded already."""
    reach = [step * (size - 1) + 1 for step, size in zip(dilation, kernel, strict=True)]
    seen = sliding_window_view(image, reach, axis=(1, 2))
    return seen[:, :: stride[0], :: stride[1], :, :: dilation[0], :: dilation[1]]


def convolved(image: Array, weights: Array, stride: Pair, dilation: Pair, groups: int) -> Array:
    """[N, OH, OW, O] of an image that is padded already and weights [O, C / groups, kernel height, kernel width]."""
    seen = windows(image, (weights.shape[2], weights.shape[3]), stride, dilation)
    inputs, kernels = seen.reshape(*seen.shape[:3], groups, -1), weights.reshape(groups, len(weights) // groups, -1)
    sums: Array = np.einsum("nhwgk,gok->nhwgo", inputs, kernels, optimize=True)
    return sums.reshape(*seen.shape[:3], len(weights))


def largest(image: Array, kernel: Pair, stride: Pair, sides: Sides, dilation: Pair, *, ceil_mode: bool) -> Array:
    """The largest number under each window of an image, [N, OH, OW, C]; padding is below all numbers."""
    behind = []
    for size, extent, step, before, after, apart in zip(
        image.shape[1:3], kernel, stride, sides[::2], sides[1::2], dilation, strict=True
    ):
        reach = apart * (extent - 1) + 1
        count = (size + before + after - reach + (step - 1 if ceil_mode else 0)) // step + 1
        if ceil_mode and (count - 1) * step >= size + before:  # a window must begin in the image or its padding before
            count -= 1
        behind.append((count - 1) * step + reach - size - before)
    padded = framed(image, Sides(sides.top, behind[0], sides.left, behind[1]), fill=-np.inf)
    return np.asarray(windows(padded, kernel, stride, dilation).max((-2, -1)))


def averaged_windows(
    image: Array, kernel: Pair, stride: Pair, sides: Sides, *, ceil_mode: bool, inside: bool
) -> tuple[Array, Array]:
    """The average of each window of an image, [N, OH, OW, C], and that of its magnitudes.

    What ceil_mode adds behind the padding is not counted, nor the padding itself with ``inside``.
    """

    def total(numbers: Array, around: Sides) -> Array:
        padded = framed(numbers, around)
        shape = largest(numbers, kernel, stride, around, (1, 1), ceil_mode=ceil_mode).shape[1:3]
        ends = [(n - 1) * step + size for n, step, size in zip(shape, stride, kernel, strict=True)]
        missing = [(0, max(0, end - size)) for end, size in zip(ends, padded.shape[1:3], strict=True)]
        grown = np.pad(padded, [(0, 0), *missing, (0, 0)])
        return np.asarray(windows(grown, kernel, stride, (1, 1)).sum((-2, -1)))

    one = np.ones((1, *image.shape[1:3], 1))
    count = total(one, sides) if inside else total(framed(one, sides, fill=1.0), Sides(0, 0, 0, 0))
    count = count[:, : (sums := total(image, sides)).shape[1], : sums.shape[2]]
    return sums / np.maximum(count, 1), total(np.abs(image), sides) / np.maximum(count, 1)


def interpolated(image: Array, factors: Pair) -> Array:
    """An image [N, H, W, C] enlarged by bilinear interpolation between centers of pixels."""
    for axis, factor in ((1, factors[0]), (2, factors[1])):
        size = image.shape[axis]
        centers = np.clip((np.arange(size * factor) + 0.5) / factor - 0.5, 0, size - 1)
        low = np.floor(centers).astype(int)
        share = np.expand_dims(centers - low, tuple(range(1, 4 - axis)))
        image = image.take(low, axis) * (1 - share) + image.take(np.minimum(low + 1, size - 1), axis) * share
    return image


def sampled_pixels(image: Array, grid: Array, *, align_corners: bool) -> tuple[Array, Array]:
    """Pixels of an image [N, H, W, C] at the points x and y of a grid [N, GH, GW, 2], and those of its magnitudes."""
    batch, height, width, channels = image.shape
    places = []
    for axis, side in ((1, height), (0, width)):
        moved = (grid[..., axis] + 1) / 2
        places.append(moved * (side - 1) if align_corners else moved * side - 0.5)
    values = np.zeros((2, *grid.shape[:3], channels))
    for down, across in ((0, 0), (0, 1), (1, 0), (1, 1)):
        row, column = (np.floor(place) + step for place, step in zip(places, (down, across), strict=True))
        share = (1 - np.abs(places[0] - row)) * (1 - np.abs(places[1] - column))
        share = share * ((row >= 0) & (row < height) & (column >= 0) & (column < width))
        row, column = np.clip(row, 0, height - 1).astype(int), np.clip(column, 0, width - 1).astype(int)
        pixels = image[np.arange(batch)[:, None, None], row, column]
        values += np.stack([pixels, np.abs(pixels)]) * share[..., None]
    return values[0], values[1]


SMALLEST: Final = 1e-37  # denormals are flushed
CUT_TO_TF32: Final = 2.0**-10  # of a float32 on its way through the matrix unit's registers
BLOCK_BITS: Final = {"bfloat8_b": 6, "bfloat4_b": 2}  # fraction bits of the largest number of a group


def rounding(values: Array, dtype: str) -> Array:
    """The error of one rounding to a data type, for each element; block floats may also be cut.

    The last place of an element of a block float follows from the largest of its 16 neighbors in a row.
    """
    magnitudes = np.abs(np.asarray(values, np.float64))
    if dtype not in BLOCK_BITS:
        share = {"bfloat16": 2.0**-8, "float32": CUT_TO_TF32}.get(dtype)
        return np.zeros_like(magnitudes) if share is None else magnitudes * share + SMALLEST
    rows = magnitudes.reshape(*magnitudes.shape[:-1], -1) if magnitudes.ndim else magnitudes.reshape(1)
    width = rows.shape[-1]
    groups = np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, -width % GROUP)])
    peak = groups.reshape(*rows.shape[:-1], -1, GROUP).max(-1)
    # 1 % above: a number that is rounded up to a power of 2 raises the exponent of its group
    exponents = np.floor(np.log2(np.maximum(peak * 1.01, 2.0**-126)))
    units = np.repeat(2.0 ** (exponents - BLOCK_BITS[dtype]), GROUP, axis=-1)[..., :width]
    return units.reshape(magnitudes.shape) + SMALLEST


def movement_error(values: Array, dtype: str) -> Array:
    """The error of a movement of numbers: none for bfloat16, the cut of a float32, a rounding of a block float.

    The elements of a block float may get other neighbors, perhaps in several passes: the error is that of the largest
    number of all.
    """
    if dtype == "float32":
        return np.abs(values) * CUT_TO_TF32 + SMALLEST
    return np.full(np.shape(values), 2 * regrouped_error(values, dtype) if dtype in BLOCK_BITS else 0.0)


def regrouped_error(values: Array, dtype: str) -> float:
    """The error of one rounding of any element to a data type, whatever its neighbors are."""
    return float(rounding(np.full(1, np.abs(values).max(initial=0.0)), dtype)[0])


def sums(product: Callable[[Array, Array], Array], a: Array, b: Array, row: Array | None) -> tuple[Array, Array, Array]:
    """A product with a row added, and the sums of its terms' magnitudes and of their squares."""
    added = np.zeros(1) if row is None else row.ravel()
    return product(a, b) + added, product(np.abs(a), np.abs(b)) + np.abs(added), product(a * a, b * b) + added**2


def sum_error(values: Array, terms: Array, squares: Array, count: int, dtype: str, *, low_fidelity: bool) -> Array:
    """The error of a sum of products in the matrix unit.

    Errors of single steps have no sign of their own, so they add up as the root of their number; a partial sum is as
    large as the result and three times its spread, or as the sum of all magnitudes. ``terms`` are the sums of the
    products' magnitudes, ``squares`` those of their squares, ``count`` the products of a sum. LoFi multiplies 5 and 7
    bits of the operands.
    """
    scale = np.minimum(terms, np.abs(values) + 3 * np.sqrt(squares))
    steps = 4 * (-(-count // 16) + 2)  # 16 products a step, in up to four fidelity phases
    error = scale * (2.0**-8 * (4 + 2 * np.sqrt(steps)) + (2.0**-4 if low_fidelity else 2.0**-6))
    # block floats: the partial sums of each block of products are packed, too
    packed = 4 * rounding(scale, dtype) if dtype in BLOCK_BITS else 2 * rounding(values, dtype)
    return np.asarray(error + packed)
