"""ttnn.fold as users call it."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.shards import BLOCK, high, in_box

IMAGE = np.arange(2 * 8 * 12 * 16, dtype=np.float32).reshape(2, 8, 12, 16) % 251


def placed(device, layout=ttnn.ROW_MAJOR_LAYOUT, place=None):
    return ttnn.from_torch(IMAGE, ttnn.bfloat16, layout=layout, device=device, memory_config=place)


def windows(array, rows, columns):
    batch, height, width, channels = array.shape
    split = array.reshape(batch, height // rows, rows, width // columns, columns, channels)
    return split.transpose(0, 1, 3, 2, 4, 5).reshape(batch, height // rows, width // columns, -1)


@pytest.mark.parametrize("layout", [ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT])
def test_windows_become_channels(device, layout):
    folded = ttnn.fold(placed(device, layout), 2, 3)
    assert folded.layout is ttnn.ROW_MAJOR_LAYOUT
    assert np.array_equal(folded.to_numpy(), windows(IMAGE, 2, 3))


def test_shards_are_dealt_anew_and_collapsed(device):
    shards = high((64, 16), 3)
    folded = ttnn.fold(placed(device, place=shards), 2, 2, collapse_output=True)
    assert folded.memory_config().shard_spec.shape == [6, 64]  # eight rows of windows, of 24 pixels each
    assert np.array_equal(folded.to_numpy(), windows(IMAGE, 2, 2).reshape(1, 1, 48, 64))


def test_zeros_around(device):
    folded = ttnn.fold(placed(device), 2, 2, padding=(1, 1, 0, 0, 0, 16), override_memory_config=ttnn.L1_MEMORY_CONFIG)
    assert folded.memory_config().buffer_type is ttnn.BufferType.L1
    assert np.array_equal(folded.to_numpy(), windows(np.pad(IMAGE, ((0, 0), (1, 1), (0, 0), (0, 16))), 2, 2))


def test_zeros_around_shards_are_a_halo(device):
    shards = high((64, 16), 3)
    folded = ttnn.fold(placed(device, place=shards), 2, 2, padding=(1, 3, 2, 0))
    assert np.array_equal(folded.to_numpy(), windows(np.pad(IMAGE, ((0, 0), (1, 3), (2, 0), (0, 0))), 2, 2))
    with pytest.raises(ttnn.ArgumentError, match="pad the images before"):
        ttnn.fold(placed(device, place=shards), 2, 2, padding=(1, 1, 1, 1, 0, 16))


def test_what_is_refused(device):
    with pytest.raises(ttnn.DeviceError, match=r"^Fold: logical H \(8\) must be divisible by stride_h \(3\)\."):
        ttnn.fold(placed(device), 3, 2)
    with pytest.raises(ttnn.DeviceError, match=r"^Fold: stride_h \(0\) and stride_w \(2\) must be > 0"):
        ttnn.fold(placed(device), 0, 2)
    with pytest.raises(ttnn.ArgumentError, match="use_transpose_as_fold"):
        ttnn.fold(placed(device), 2, 2, use_transpose_as_fold=True)
    with pytest.raises(ttnn.ArgumentTypeError, match="padding must be 2, 4 or 6 numbers"):
        ttnn.fold(placed(device), 2, 2, padding=(1, 2, 3))


@pytest.mark.parametrize("dtype", [ttnn.bfloat16, ttnn.bfloat8_b])
def test_windows_higher_than_a_tiled_image_are_refused(device, dtype):
    image = ttnn.from_torch(np.zeros((4, 1, 16, 32), np.float32), dtype, layout=ttnn.TILE_LAYOUT, device=device)
    with pytest.raises(ttnn.DeviceError, match=r"^Fold: logical H \(1\) must be divisible by stride_h \(2\)\."):
        ttnn.fold(image, 2, 1)


def test_shards_of_the_result_are_checked_before_those_of_the_image(device):
    """400 pixels in BLOCK shards of 57 rows fill 7 rows of cores; their 100 windows, 14 to a shard, fill 8."""
    image = ttnn.from_torch(np.zeros((1, 20, 20, 16), np.float32), ttnn.bfloat16, device=device)
    blocks = ttnn.to_memory_config(image, in_box(BLOCK, (58, 8), 2, 7))
    with pytest.raises(ttnn.DeviceError, match=r"^Number of shards along height 8 must not exceed number of rows 7"):
        ttnn.fold(blocks, 2, 2)
