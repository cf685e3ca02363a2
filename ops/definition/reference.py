"""The definition of transposed convolution: plain loops, and a float64 twin fast enough for accuracy reports.

Both take the channels first form: src [N, I, *spatial], weights [I, O / groups, *kernel], bias [O]. Input channel i
belongs to group ``i // (I / groups)`` and feeds that group's O / groups consecutive outputs. The kernel is not
mirrored: input position p and tap k meet at output ``p * stride + k * dilation - pad_before``.
"""

from itertools import product
from types import EllipsisType
from typing import TypeAlias

import numpy as np

from device.numbers.formats import Array
from ops.definition.geometry import Geometry

Index: TypeAlias = tuple[EllipsisType | slice, ...]


def conv_transpose_loops(
    src: Array, weights: Array, geometry: Geometry, *, bias: Array | None = None, groups: int = 1
) -> Array:
    """Transposed convolution, one multiplication at a time in Python floats: the definition itself, and very slow.

    Returns:
        float64 [N, O, *output].
    """
    batch, in_channels = src.shape[:2]
    out_per_group = weights.shape[1]
    dst = np.zeros((batch, groups * out_per_group, *geometry.output_shape))
    for channel in range(groups * out_per_group):
        dst[:, channel] = 0.0 if bias is None else float(bias[channel])
    for image, in_channel, out_in_group in product(range(batch), range(in_channels), range(out_per_group)):
        out_channel = in_channel // (in_channels // groups) * out_per_group + out_in_group
        for position in np.ndindex(*geometry.input_shape):
            for tap in np.ndindex(*geometry.kernel_shape):
                target = tuple(
                    p * axis.stride + k * axis.dilation - axis.pad_before
                    for p, k, axis in zip(position, tap, geometry.axes, strict=True)
                )
                if all(0 <= t < size for t, size in zip(target, geometry.output_shape, strict=True)):
                    value = float(src[(image, in_channel, *position)]) * float(
                        weights[(in_channel, out_in_group, *tap)]
                    )
                    dst[(image, out_channel, *target)] += value
    return dst


def conv_transpose(
    src: Array, weights: Array, geometry: Geometry, *, bias: Array | None = None, groups: int = 1
) -> Array:
    """Transposed convolution in float64, one matrix product and one strided addition for every kernel tap.

    Returns:
        float64 [N, O, *output].
    """
    batch, in_channels = src.shape[:2]
    out_per_group = weights.shape[1]
    grouped = src.astype(np.float64).reshape(batch, groups, in_channels // groups, *geometry.input_shape)
    dst = np.zeros((batch, groups, out_per_group, *geometry.output_shape))
    matrices = weights.astype(np.float64).reshape(groups, in_channels // groups, out_per_group, *geometry.kernel_shape)
    for tap in np.ndindex(*geometry.kernel_shape):
        reaches = [axis.reach(k) for axis, k in zip(geometry.axes, tap, strict=True)]
        counts = tuple(reach.inputs for reach in reaches)
        if 0 in counts:
            continue
        sources: Index = (..., *(slice(reach.input_start, reach.input_stop) for reach in reaches))
        inputs = grouped[sources]
        matrix = matrices[(..., *tap)].swapaxes(-1, -2)
        products = matrix @ inputs.reshape(*inputs.shape[:3], -1)
        targets: Index = (
            ...,
            *(
                slice(reach.output_start, reach.output_start + (reach.inputs - 1) * axis.stride + 1, axis.stride)
                for reach, axis in zip(reaches, geometry.axes, strict=True)
            ),
        )
        dst[targets] += products.reshape(batch, groups, out_per_group, *counts)
    dst = dst.reshape(batch, groups * out_per_group, *geometry.output_shape)
    if bias is not None:
        dst += bias.astype(np.float64).reshape(-1, *(1 for _ in geometry.axes))
    return dst


def conv_transpose_channels_last(
    src: Array, weights: Array, geometry: Geometry, *, bias: Array | None = None, groups: int = 1
) -> Array:
    """``conv_transpose`` of src [N, *spatial, I], giving float64 [N, *output, O]; the weights stay as they are."""
    dst = conv_transpose(np.moveaxis(src, -1, 1), weights, geometry, bias=bias, groups=groups)
    return np.moveaxis(dst, 1, -1)
