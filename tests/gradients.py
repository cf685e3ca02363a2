"""Gradients of a transposed convolution in float64, by the taps of its definition."""

import numpy as np

from ops.reference import meetings


def data_gradient(diff_dst, weights, geometry, *, groups=1):
    """The gradient of the source, [N, I, *input], with weights [I, O / groups, *kernel]."""
    batch, ins = len(diff_dst), weights.shape[0]
    diff = diff_dst.astype(np.float64).reshape(batch, groups, -1, *geometry.output_shape)
    matrices = weights.astype(np.float64).reshape(groups, ins // groups, -1, *geometry.kernel_shape)
    result = np.zeros((batch, groups, ins // groups, *geometry.input_shape))
    for tap, inputs, outputs in meetings(geometry):
        result[inputs] += np.einsum("gio,bgo...->bgi...", matrices[tap], diff[outputs])
    return result.reshape(batch, ins, *geometry.input_shape)


def weights_gradient(src, diff_dst, geometry, *, groups=1):
    """The gradient of the weights, [I, O / groups, *kernel], with a source [N, I, *input]."""
    batch, ins = src.shape[:2]
    source = src.astype(np.float64).reshape(batch, groups, ins // groups, *geometry.input_shape)
    diff = diff_dst.astype(np.float64).reshape(batch, groups, -1, *geometry.output_shape)
    result = np.zeros((groups, ins // groups, diff.shape[2], *geometry.kernel_shape))
    for tap, inputs, outputs in meetings(geometry):
        left, right = (array.reshape(*array.shape[:3], -1) for array in (source[inputs], diff[outputs]))
        result[tap] = np.einsum("bgip,bgop->gio", left, right)
    return result.reshape(ins, -1, *geometry.kernel_shape)
