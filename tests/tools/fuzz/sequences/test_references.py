import numpy as np
import pytest

from ops.reference import conv_transpose_channels_last, plan_geometry
from tools.fuzz.sequences.convolutions import Convolution
from tools.fuzz.sequences.references import Sides, convolved, framed, interpolated, largest, zeros_between

GENERATOR = np.random.default_rng(0)
IMAGE = np.arange(12.0).reshape(1, 3, 4, 1)


def test_a_frame_pads_repeats_and_cuts():
    assert framed(IMAGE, Sides(1, 0, 0, 1))[0, :, :, 0].tolist() == [
        [0, 0, 0, 0, 0],
        [0, 1, 2, 3, 0],
        [4, 5, 6, 7, 0],
        [8, 9, 10, 11, 0],
    ]
    assert framed(IMAGE, Sides(1, 0, 0, 0), replicate=True)[0, 0, :, 0].tolist() == [0, 1, 2, 3]
    assert framed(IMAGE, Sides(0, -1, -2, 0))[0, :, :, 0].tolist() == [[2, 3], [6, 7]]
    assert zeros_between(IMAGE, (2, 1)).shape == (1, 5, 4, 1)
    assert zeros_between(IMAGE, (2, 1))[0, :, 1, 0].tolist() == [1, 0, 5, 0, 9]


def test_a_convolution_by_hand():
    weights = np.array([1.0, 10.0]).reshape(1, 1, 1, 2)
    assert convolved(IMAGE, weights, (1, 1), (1, 2), 1)[0, 0, :, 0].tolist() == [20, 31]
    assert convolved(IMAGE, weights, (2, 2), (1, 1), 1)[0, :, :, 0].tolist() == [[10, 32], [98, 120]]


@pytest.mark.parametrize("mirrored", [True, False])
def test_a_transposed_convolution_is_that_of_the_definition(mirrored):
    image, weights = GENERATOR.standard_normal((2, 3, 4, 4)), GENERATOR.standard_normal((4, 3, 2, 3))
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
    assert np.allclose(call.result(image, weights), wanted)


def test_the_largest_of_windows_by_hand():
    plain = largest(IMAGE, (2, 2), (2, 2), Sides(0, 0, 0, 0), (1, 1), ceil_mode=False)
    assert plain[0, :, :, 0].tolist() == [[5, 7]]
    upwards = largest(IMAGE, (2, 2), (2, 2), Sides(0, 0, 0, 0), (1, 1), ceil_mode=True)
    assert upwards[0, :, :, 0].tolist() == [[5, 7], [9, 11]]
    ringed = largest(-IMAGE, (3, 3), (2, 2), Sides(1, 1, 1, 1), (1, 1), ceil_mode=False)
    assert ringed[0, :, :, 0].tolist() == [[0, -1], [-4, -5]]
    # a window that would begin in the padding behind the image is none
    assert largest(IMAGE[:, :2, :2], (2, 2), (2, 2), Sides(1, 1, 1, 1), (1, 1), ceil_mode=True).shape == (1, 2, 2, 1)


def test_interpolation_by_hand():
    assert interpolated(IMAGE, (1, 2))[0, 0, :, 0].tolist() == [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]
    assert interpolated(IMAGE, (2, 1))[0, :, 0, 0].tolist() == [0, 1, 3, 5, 7, 8]
