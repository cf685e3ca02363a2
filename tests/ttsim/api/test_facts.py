"""What functions say of tensors and data types."""

import numpy as np
import pytest

import ttsim as ttnn


def test_padding_of_the_last_two_axes():
    rows = ttnn.Tensor(np.zeros((1, 3, 32)), ttnn.bfloat16)
    tiles = rows.to(ttnn.TILE_LAYOUT)
    assert [ttnn.has_tile_padding(one) for one in (rows, tiles)] == [False, True]
    assert [ttnn.has_tile_padding(tiles, dim=axis) for axis in (0, 1, -1)] == [False, True, False]


def test_bytes_of_tiles_and_elements():
    assert [ttnn.tile_size(one) for one in (ttnn.bfloat16, ttnn.bfloat8_b, ttnn.int8)] == [2048, 1088, 1024]
    assert [ttnn.element_size(one) for one in (ttnn.float32, ttnn.uint16, ttnn.int8)] == [4, 2, 1]
    with pytest.raises(ttnn.ArgumentError, match=r"^datum for bfp2, bfp4, bfp8 is invalid"):
        ttnn.element_size(ttnn.bfloat8_b)


def test_where_a_tensor_is():
    host = ttnn.Tensor(np.zeros((1, 1, 32, 32)), ttnn.bfloat16)
    assert not ttnn.is_sharded(host)
    assert not ttnn.has_storage_type_of(host, ttnn.DEVICE_STORAGE_TYPE)
    with ttnn.open_device() as device:
        assert ttnn.has_storage_type_of(host.to(device), ttnn.DEVICE_STORAGE_TYPE)


def test_outputs_of_a_convolution():
    assert ttnn.get_conv_output_dim(8, 3, 2, 1) == 4
    assert ttnn.get_conv_output_dim(8, 3, dilation=2) == 4
