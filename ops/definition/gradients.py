"""The gradients by their definition, in float64: one matrix product for every kernel tap.

Both take the channels first form of `ops.definition.reference`: src [N, I, *spatial], weights [I, O / groups, *kernel].
"""

from collections.abc import Iterator
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from device.numbers.formats import Array
from ops.definition.geometry import Geometry

Index: TypeAlias = Any  # what picks a part of an array: an ellipsis and slices, or an ellipsis and indices


def data_gradient(diff_dst: Array, weights: Array, geometry: Geometry, *, groups: int = 1) -> Array:
    """The gradient with respect to the source.

    Args:
        diff_dst: [N, O, *output].
        weights: [I, O / groups, *kernel].
        geometry: Of the forward operation.

    Returns:
        float64 [N, I, *input].
    """
    batch, ins, outs = len(diff_dst), weights.shape[0], weights.shape[1]
    grouped = diff_dst.astype(np.float64).reshape(batch, groups, outs, *geometry.output_shape)
    matrices = weights.astype(np.float64).reshape(groups, ins // groups, outs, *geometry.kernel_shape)
    result = np.zeros((batch, groups, ins // groups, *geometry.input_shape))
    for tap, inputs, outputs in _meetings(geometry):
        met = grouped[outputs]
        products = matrices[tap] @ met.reshape(*met.shape[:3], -1)
        result[inputs] += products.reshape(batch, groups, ins // groups, *met.shape[3:])
    return result.reshape(batch, ins, *geometry.input_shape)


def weights_gradient(src: Array, diff_dst: Array, geometry: Geometry, *, groups: int = 1) -> Array:
    """The gradient with respect to the weights.

    Args:
        src: [N, I, *input].
        diff_dst: [N, O, *output].
        geometry: Of the forward operation.

    Returns:
        float64 [I, O / groups, *kernel].
    """
    batch, ins, outs = len(src), src.shape[1] // groups, diff_dst.shape[1] // groups
    source = src.astype(np.float64).reshape(batch, groups, ins, *geometry.input_shape)
    target = diff_dst.astype(np.float64).reshape(batch, groups, outs, *geometry.output_shape)
    result = np.zeros((groups, ins, outs, *geometry.kernel_shape))
    for tap, inputs, outputs in _meetings(geometry):
        left, right = source[inputs], target[outputs]
        pixels = left.reshape(batch, groups, ins, -1) @ right.reshape(batch, groups, outs, -1).swapaxes(-1, -2)
        result[tap] = pixels.sum(axis=0)
    return result.reshape(groups * ins, outs, *geometry.kernel_shape)


def _meetings(geometry: Geometry) -> Iterator[tuple[Index, Index, Index]]:
    """The index of every tap that meets anything, the inputs under it, and the outputs they meet there."""
    for tap in product(*(range(axis.kernel) for axis in geometry.axes)):
        reaches = [axis.reach(k) for axis, k in zip(geometry.axes, tap, strict=True)]
        if all(reach.inputs for reach in reaches):
            inputs = tuple(slice(reach.input_start, reach.input_stop) for reach in reaches)
            outputs = tuple(
                slice(reach.output_start, reach.output_start + (reach.inputs - 1) * axis.stride + 1, axis.stride)
                for reach, axis in zip(reaches, geometry.axes, strict=True)
            )
            yield (..., *tap), (..., *inputs), (..., *outputs)
