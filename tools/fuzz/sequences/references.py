"""Convolutions and windows in float64."""

from typing import Final, NamedTuple

import numpy as np

from device.numbers.formats import GROUP, Array

Pair = tuple[int, int]


class Sides(NamedTuple):
    """Padding of an image."""

    top: int
    bottom: int
    left: int
    right: int


def framed(image: Array, sides: Sides, *, replicate: bool = False) -> Array:
    """An image [N, H, W, C] with padding around it; negative padding cuts rows and columns off."""
    rows = np.arange(-sides.top, image.shape[1] + sides.bottom)
    columns = np.arange(-sides.left, image.shape[2] + sides.right)
    inside_rows, inside_columns = np.clip(rows, 0, image.shape[1] - 1), np.clip(columns, 0, image.shape[2] - 1)
    result = image[:, inside_rows][:, :, inside_columns]
    if not replicate:
        result = result * (rows == inside_rows)[None, :, None, None] * (columns == inside_columns)[None, None, :, None]
    return np.asarray(result)


def zeros_between(image: Array, stride: Pair) -> Array:
    """An image [N, H, W, C] with zeros between its pixels."""
    batch, height, width, channels = image.shape
    result = np.zeros((batch, (height - 1) * stride[0] + 1, (width - 1) * stride[1] + 1, channels))
    result[:, :: stride[0], :: stride[1]] = image
    return result


def convolved(image: Array, weights: Array, stride: Pair, dilation: Pair, groups: int) -> Array:
    """[N, OH, OW, O] of an image that is padded already and weights [O, C / groups, kernel height, kernel width]."""
    out_channels, depth, rows, columns = weights.shape
    height = (image.shape[1] - dilation[0] * (rows - 1) - 1) // stride[0] + 1
    width = (image.shape[2] - dilation[1] * (columns - 1) - 1) // stride[1] + 1
    if height < 1 or width < 1:
        return np.zeros((len(image), max(height, 0), max(width, 0), out_channels))
    result = np.zeros((len(image), height, width, groups, out_channels // groups))
    kernels = weights.reshape(groups, out_channels // groups, depth, rows, columns)
    for row in range(rows):
        for column in range(columns):
            top, left = row * dilation[0], column * dilation[1]
            seen = image[:, top :: stride[0], left :: stride[1]][:, :height, :width]
            grouped = seen.reshape(len(image), height, width, groups, depth)
            result += np.einsum("nhwgc,goc->nhwgo", grouped, kernels[..., row, column], optimize=True)
    return result.reshape(len(image), height, width, out_channels)


def largest(image: Array, kernel: Pair, stride: Pair, sides: Sides, dilation: Pair, *, ceil_mode: bool) -> Array:
    """The largest number under each window of an image, [N, OH, OW, C]; padding is below all numbers."""
    counts = []
    ends = (sides.top + sides.bottom, sides.left + sides.right)
    for size, taps, step, ring, apart, first in zip(
        image.shape[1:3], kernel, stride, ends, dilation, (sides.top, sides.left), strict=True
    ):
        room = size + ring - apart * (taps - 1) - 1
        count = (room + (step - 1 if ceil_mode else 0)) // step + 1
        if ceil_mode and (count - 1) * step >= size + first:  # a window must begin in the image or its padding before
            count -= 1
        counts.append(count)
    height, width = counts
    reach = [
        (count - 1) * step + apart * (taps - 1) + 1
        for count, step, apart, taps in zip(counts, stride, dilation, kernel, strict=True)
    ]
    below = np.full(
        (
            len(image),
            max(reach[0], sides.top + image.shape[1]),
            max(reach[1], sides.left + image.shape[2]),
            image.shape[3],
        ),
        -np.inf,
    )
    below[:, sides.top : sides.top + image.shape[1], sides.left : sides.left + image.shape[2]] = image
    result = np.full((len(image), height, width, image.shape[3]), -np.inf)
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            seen = below[:, row * dilation[0] :: stride[0], column * dilation[1] :: stride[1]]
            result = np.maximum(result, seen[:, :height, :width])
    return result


def interpolated(image: Array, factors: Pair) -> Array:
    """An image [N, H, W, C] enlarged by bilinear interpolation between centers of pixels."""
    for axis, factor in ((1, factors[0]), (2, factors[1])):
        size = image.shape[axis]
        centers = np.clip((np.arange(size * factor) + 0.5) / factor - 0.5, 0, size - 1)
        low = np.floor(centers).astype(int)
        high = np.minimum(low + 1, size - 1)
        shape = [1, 1, 1, 1]
        shape[axis] = -1
        share = (centers - low).reshape(shape)
        image = image.take(low, axis) * (1 - share) + image.take(high, axis) * share
    return image


SMALLEST: Final = 1e-37  # denormals are flushed
CUT_TO_TF32: Final = 2.0**-10  # of a float32 on its way through the matrix unit's registers
BLOCK_BITS: Final = {"bfloat8_b": 6, "bfloat4_b": 2}  # fraction bits of the largest number of a group


def rounding(values: Array, dtype: str) -> Array:
    """The error of one rounding to a data type, for each element; block floats may also be cut."""
    magnitudes = np.abs(np.asarray(values, np.float64))
    if dtype in BLOCK_BITS:
        return block_units(magnitudes, BLOCK_BITS[dtype])
    if dtype == "bfloat16":
        return magnitudes * 2.0**-8 + SMALLEST
    if dtype == "float32":
        return magnitudes * CUT_TO_TF32 + SMALLEST
    return np.zeros_like(magnitudes)


def block_units(magnitudes: Array, bits: int) -> Array:
    """The last place of each element of a block float, by the largest of its 16 neighbors in a row."""
    rows = magnitudes.reshape(*magnitudes.shape[:-1], -1) if magnitudes.ndim else magnitudes.reshape(1)
    width = rows.shape[-1]
    groups = np.zeros((*rows.shape[:-1], -(-width // GROUP) * GROUP))
    groups[..., :width] = rows
    largest = groups.reshape(*rows.shape[:-1], -1, GROUP).max(-1)
    # 1 % above: a number that is rounded up to a power of 2 raises the exponent of its group
    exponents = np.floor(np.log2(np.maximum(largest * 1.01, 2.0**-126)))
    units = np.repeat(2.0 ** (exponents - bits), GROUP, axis=-1)[..., :width]
    return units.reshape(magnitudes.shape) + SMALLEST


def moving(values: Array, dtype: str, *, regrouped: bool = True) -> Array:
    """The error of a movement of numbers: none for bfloat16, the cut of a float32, a rounding of a block float.

    Args:
        values: What is moved, as it comes out.
        dtype: The data type that it keeps.
        regrouped: The elements of a block float may get other neighbors, perhaps in several passes: the error is
            then that of the largest number of all.
    """
    if dtype == "float32":
        return np.abs(values) * CUT_TO_TF32 + SMALLEST
    if dtype not in BLOCK_BITS or not values.size:
        return np.zeros(np.shape(values))
    if not regrouped:
        return rounding(values, dtype)
    everywhere: Array = 2 * block_units(np.full(np.shape(values), np.abs(values).max()), BLOCK_BITS[dtype])
    return everywhere


def regrouped(values: Array, dtype: str) -> float:
    """The error of one rounding of any element to a data type, whatever its neighbors are."""
    largest = np.full(1, np.abs(values).max(initial=0.0))
    return float(rounding(largest, dtype)[0])


def sum_error(values: Array, terms: Array, squares: Array, count: int, dtype: str, *, low_fidelity: bool) -> Array:
    """The error of a sum of products in the matrix unit.

    Errors of single steps have no sign of their own, so they add up as the root of their number; a partial sum is as
    large as the result and three times its spread, or as the sum of all magnitudes.

    Args:
        terms: The sums of the magnitudes of the products.
        squares: The sums of the squares of the products.
        count: How many products each sum has.
        dtype: Data type of the result.
        low_fidelity: Whether the matrix unit may run in LoFi, which multiplies 5 and 7 bits of the operands.
    """
    scale = np.minimum(terms, np.abs(values) + 3 * np.sqrt(squares))
    steps = 4 * (-(-count // 16) + 2)  # 16 products a step, in up to four fidelity phases
    error = scale * (2.0**-8 * (4 + 2 * np.sqrt(steps)) + (2.0**-4 if low_fidelity else 2.0**-6))
    # block floats: the partial sums of each block of products are packed, too
    packed = 4 * rounding(scale, dtype) if dtype in BLOCK_BITS else 2 * rounding(values, dtype)
    return np.asarray(error + packed)
