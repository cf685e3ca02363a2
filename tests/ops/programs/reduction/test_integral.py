"""Numbers of integral images, by hand."""

import numpy as np
import pytest

import ttsim


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_small_integers_are_summed_across_blocks_and_tiles(dtype):
    numbers = np.zeros((1, 50, 40, 256), np.float32)
    numbers[0, [0, 47, 48, 49], [0, 31, 32, 39]] = np.array([[1], [2], [4], [8]])  # blocks have 48 tiles, tiles 32 rows
    with ttsim.open_device() as device:
        image = ttsim.Tensor(numbers, ttsim.DataType[dtype.upper()], device, ttsim.TILE_LAYOUT)
        sums = ttsim.experimental.intimg(image).to_numpy()
    assert np.array_equal(sums, np.cumsum(np.cumsum(numbers, 1), 2))


def test_sums_are_rounded_where_blocks_and_tiles_meet():
    numbers = np.zeros((1, 49, 33, 256), np.float32)
    numbers[0, 0, 0], numbers[0, 48, 0], numbers[0, 0, 32] = 256, 1, 1  # bfloat16 has no 257: ties go up
    with ttsim.open_device() as device:
        sums = ttsim.experimental.intimg(ttsim.Tensor(numbers, ttsim.bfloat16, device, ttsim.TILE_LAYOUT)).to_numpy()
    assert sums[0, :, :, 0][[0, 48, 0, 48], [0, 0, 32, 32]].tolist() == [256, 258, 258, 260]


def test_other_numbers_of_channels_are_refused_by_a_strict_device():
    with ttsim.open_device() as device, pytest.raises(ttsim.ArgumentError, match="sums 225 to 256 channels"):
        ttsim.experimental.intimg(ttsim.zeros((1, 2, 2, 224), layout=ttsim.TILE_LAYOUT, device=device))
