"""What oneDNN's operations lose where numbers are multiplied in slices."""

import ml_dtypes
import numpy as np
import pytest

import ttsim
from ops.reference import conv_transpose, data_gradient, plan_geometry, weights_gradient
from ttsim import onednn

PLAIN = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "dilations": [1, 1]}


@pytest.mark.parametrize(
    ("dtype", "lost", "rounding"),
    [(np.float32, 2.0**-22, 2.0**-20), (np.float16, 2.0**-16, 2.0**-11), (ml_dtypes.bfloat16, 2.0**-16, 2.0**-8)],
)
@pytest.mark.parametrize("seed", range(3))
def test_what_slices_lose_is_measured_by_the_largest_numbers(dtype, lost, rounding, seed):
    """Numbers of a wide range, so that most products are small beside the largest, in all directions."""
    rng = np.random.default_rng(seed)

    def wide(shape):
        return (rng.standard_normal(shape) * np.exp2(rng.integers(-9, 3, shape))).astype(dtype)

    def within(got, want, products, first, second):
        largest = (np.abs(one.astype(np.float64)).max() for one in (first, second))
        bound = products * np.prod(list(largest)) * lost + np.abs(want) * rounding
        return (np.abs(got.astype(np.float64) - want) <= bound).all()

    geometry = plan_geometry([4, 4], [3, 3], stride=[1, 1], pad_before=[0, 0], pad_after=[0, 0])
    src, weights, diff = wide((1, 4, 4, 4)), wide((4, 6, 3, 3)), wide((1, 6, 6, 6))
    x, w, g = (one.astype(np.float64) for one in (np.moveaxis(src, -1, 1), weights, np.moveaxis(diff, -1, 1)))
    with ttsim.open_device(values="exact") as opened:
        common = {**PLAIN, "weights_format": "IOX", "device": opened}
        forward = onednn.conv_transpose(src, weights, **common)
        of_data = onednn.conv_transpose_backward_data(diff, weights, **common)
        of_weights = onednn.conv_transpose_backward_weights(src, diff, weights.shape, **common)
    assert within(np.moveaxis(forward, -1, 1), conv_transpose(x, w, geometry), 9 * 4, src, weights)
    assert within(np.moveaxis(of_data, -1, 1), data_gradient(g, w, geometry), 9 * 6, diff, weights)
    assert within(of_weights, weights_gradient(x, g, geometry), 4 * 4, src, diff)
