"""References are those of the definitions, and bounds hold without being wide."""

import numpy as np
import pytest

from device.numbers.formats import FORMATS, quantize
from ops.reference import conv_transpose_channels_last, plan_geometry
from tools.random_calls.convolutions import Convolution
from tools.random_calls.references import Sides, interpolated, largest, regrouped_error, rounding, sum_error

NUMBERS = np.random.default_rng(0).standard_normal((64, 40)).astype(np.float32) * np.float32(37)
IMAGE = np.arange(12.0).reshape(1, 3, 4, 1)


@pytest.mark.parametrize("name", ["bfloat16", "bfloat8_b", "bfloat4_b"])
def test_a_rounding_stays_within_its_bound_and_near_it(name):
    rounded = quantize(NUMBERS, FORMATS[name]).astype(np.float64)
    error, bound = np.abs(rounded - NUMBERS), rounding(NUMBERS, name)
    assert (error <= bound).all()
    assert (error / bound).max() > 0.45


def test_the_unit_of_a_block_float_is_that_of_its_largest_neighbor():
    values = np.zeros((1, 20))
    values[0, 3], values[0, 17] = 4.0, 0.5
    bound = rounding(values, "bfloat8_b")[0]
    assert (bound[0], bound[16]) == (pytest.approx(2.0**-4), pytest.approx(2.0**-7))
    assert regrouped_error(values, "bfloat8_b") == pytest.approx(2.0**-4)


def test_the_error_of_a_sum_shows_a_single_wrong_element():
    """A sum of 288 products of normal numbers, of a spread of 17: one that is zero instead is mostly seen."""
    generator = np.random.default_rng(1)
    a, b = generator.standard_normal((64, 288)), generator.standard_normal((288, 64))
    values = a @ b
    error = sum_error(values, np.abs(a) @ np.abs(b), a**2 @ b**2, 288, "bfloat16", low_fidelity=False)
    assert (np.abs(values) > error).mean() > 0.6


@pytest.mark.parametrize("mirrored", [True, False])
def test_a_transposed_convolution_is_that_of_the_definition(mirrored):
    generator = np.random.default_rng(0)
    image, weights = generator.standard_normal((2, 3, 4, 4)), generator.standard_normal((4, 3, 2, 3))
    call = Convolution(
        function="conv_transpose2d", batch=2, size=(3, 4), channels=(4, 6), kernel=(2, 3), stride=(2, 1),
        sides=Sides(1, 0, 2, 1), dilation=(1, 2), output_padding=(1, 0), groups=2, mirrored=mirrored,
    )  # fmt: skip
    geometry = plan_geometry(
        (3, 4), (2, 3), stride=(2, 1), pad_before=(1, 2), pad_after=(0, 1), output_padding=(1, 0), dilation=(1, 2)
    )
    kernels = weights if mirrored else weights[:, :, ::-1, ::-1]
    wanted = conv_transpose_channels_last(image, kernels, geometry, groups=2)
    assert call.output_size == wanted.shape[1:3]
    assert np.allclose(call.result(image, weights), wanted.reshape(1, 1, -1, 6))


def test_windows_by_hand():
    for kernel, ring, ceil_mode, wanted in (
        (2, 0, False, [[5, 7]]),
        (2, 0, True, [[5, 7], [9, 11]]),
        (3, 1, True, [[5, 7, 7], [9, 11, 11]]),
    ):
        found = largest(IMAGE, (kernel, kernel), (2, 2), Sides(*[ring] * 4), (1, 1), ceil_mode=ceil_mode)
        assert found[0, :, :, 0].tolist() == wanted
    assert interpolated(IMAGE, (1, 2))[0, 0, :, 0].tolist() == [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]
