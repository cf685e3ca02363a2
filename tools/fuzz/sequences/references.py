"""Convolutions and windows in float64."""

from typing import NamedTuple

import numpy as np

from device.numbers.formats import Array

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
