"""Padding on the host: shapes and refusals as the real library has them."""

import numpy as np
import pytest

import ttsim as ttnn

OUT_OF_RANGE = "Last 2 dims of output must be within range to have been padded to input"


def tensor(*shape, dtype=ttnn.bfloat16):
    return ttnn.Tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), dtype)


@pytest.mark.parametrize(
    ("shape", "filled"), [((1, 1, 3, 4), (1, 1, 32, 32)), ((4,), (32, 32)), ((2, 1, 33, 64), (2, 1, 64, 64))]
)
def test_the_last_two_axes_are_filled_up_to_tiles(shape, filled):
    made = tensor(*shape).pad_to_tile(0.0)
    assert (made.shape, made.padded_shape, made.layout) == (shape, filled, ttnn.ROW_MAJOR_LAYOUT)
    assert np.array_equal(made.to_numpy(), tensor(*shape).to_numpy())
    if len(shape) > 1:
        assert made.unpad_from_tile(shape).padded_shape == shape


def test_a_part_that_fills_the_same_tiles_is_cut_out():
    made = tensor(1, 1, 32, 32).unpad_from_tile([1, 1, 2, 3])
    assert made.to_list() == [[[[0.0, 1.0, 2.0], [32.0, 33.0, 34.0]]]]
    assert tensor(1, 1, 32, 32).unpad_from_tile([3, 4]).shape == (1, 1, 3, 4)


@pytest.mark.parametrize(
    ("given", "wanted", "line"),
    [
        (tensor(1, 1, 64, 64), [1, 1, 3, 4], OUT_OF_RANGE),
        (
            tensor(1, 1, 32, 32),
            [1, 1, 40, 4],
            OUT_OF_RANGE,
        ),
        (tensor(2, 1, 32, 32), [1, 1, 3, 4], "Input shape must match output shape apart from last 2 dims"),
        (tensor(1, 1, 32, 32).to(ttnn.TILE_LAYOUT), [1, 1, 3, 4], "Tensor layout must be ROW_MAJOR for unpadding"),
    ],
)
def test_parts_that_can_not_be_cut_out(given, wanted, line):
    with pytest.raises(ttnn.DeviceError) as refused:
        given.unpad_from_tile(wanted)
    assert str(refused.value).splitlines()[0] == line


def test_tensors_on_a_device_are_refused():
    with ttnn.open_device() as device, pytest.raises(ttnn.DeviceError, match="must be on host for pad_to_tile"):
        tensor(1, 1, 3, 4).to(device).pad_to_tile(0.0)


def test_tensors_have_numbers_of_their_own():
    one, other = tensor(2, 2), tensor(2, 2)
    assert other.tensor_id + 1 == one.tensor_id  # in the order in which they are asked
    assert one.tensor_id == one.tensor_id


def test_eight_bits_with_a_sign():
    whole = ttnn.Tensor(np.array([[1, -2, 127, -128]], np.int8))
    assert (whole.dtype, whole.to_list()) == (ttnn.int8, [[1, -2, 127, -128]])
    assert ttnn.Tensor(np.array([1.7, -2.5, 300, -300]), ttnn.int8).to_list() == [1, -2, 44, -44]
    assert str(ttnn.int8) == "DataType.INT8"
    with ttnn.open_device() as device, pytest.raises(ttnn.DeviceError, match="RELU does not support integer input"):
        ttnn.relu(whole.to(ttnn.TILE_LAYOUT).to(device))
