"""ttnn.untilize and ttnn.untilize_with_unpadding of tensors that do not fill their tiles, as users call them."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.shards import BLOCK, high, in_box, wide
from tests.ttsim.api.captured import captured

DRAM, L1 = ttnn.DRAM_MEMORY_CONFIG, ttnn.L1_MEMORY_CONFIG
VALUES = np.arange(2 * 50 * 60, dtype=np.float32).reshape(2, 50, 60) % 251
IMAGE = VALUES[:1]
BLOCKS = in_box(BLOCK, (32, 32), 2, 4)


def placed(device, values, dtype=ttnn.bfloat16, place=DRAM):
    return ttnn.from_torch(values, dtype, layout=ttnn.TILE_LAYOUT, device=device, memory_config=place)


@pytest.mark.parametrize(
    ("dtype", "options", "program"),
    [
        (ttnn.bfloat16, {}, "UntilizeCodegen"),
        (ttnn.bfloat8_b, {}, "UntilizeWithUnpadding"),
        (ttnn.float32, {}, "UntilizeWithUnpadding"),
        (ttnn.bfloat16, {"use_multicore": False}, "UntilizeWithUnpadding"),
        (ttnn.bfloat16, {"memory_config": high((32, 60), 4)}, "UntilizeWithUnpadding"),
    ],
)
def test_interleaved_tiles_lose_their_padding(device, dtype, options, program):
    source = placed(device, VALUES, dtype)
    names, result, _ = captured(lambda: ttnn.untilize(source, **options))
    assert (names, result.padded_shape) == ([program], result.shape)
    assert np.array_equal(result.to_numpy(), source.to_numpy())


@pytest.mark.parametrize("place", [high((32, 64), 4), wide((128, 32), 2), BLOCKS])
def test_tiles_in_shards_keep_their_padding_in_interleaved_rows(device, place):
    names, result, _ = captured(lambda: ttnn.untilize(placed(device, VALUES, place=place), memory_config=DRAM))
    assert (names, result.padded_shape) == (["Untilize"], (2, 64, 64))
    assert np.array_equal(result.to_numpy(), VALUES)


@pytest.mark.parametrize("place", [high((32, 64), 2), BLOCKS])
def test_rows_of_one_image_stay_in_their_shards(device, place):
    result = ttnn.untilize(placed(device, IMAGE, place=place))
    assert (result.memory_config(), result.padded_shape) == (place, (1, 50, 64))
    assert np.array_equal(result.to_numpy(), IMAGE)


def test_padding_between_images_in_shards_becomes_rows_of_the_result(device):
    place = high((32, 64), 4)
    with pytest.raises(ttnn.ArgumentError, match=r"^untilize: images of 50 rows are padded to 64 in the shards"):
        ttnn.untilize(placed(device, VALUES, place=place))
    with ttnn.open_device(strict=False) as lenient:
        result = ttnn.untilize(placed(lenient, VALUES, place=place)).to_numpy()
    assert np.array_equal(result[0], VALUES[0])
    assert not result[1, :14].any()  # the 14 rows of padding behind the first image
    assert np.array_equal(result[1, 14:], VALUES[1, :36])


def test_one_core_takes_whole_shards_alone(device):
    uneven = placed(device, IMAGE[:, :, :32], place=high((64, 32), 1))
    assert np.array_equal(ttnn.untilize(uneven, use_multicore=False).to_numpy(), IMAGE[:, :, :32])
    blocks = placed(device, np.zeros((96, 64), np.float32), place=in_box(BLOCK, (64, 32), 2, 2))
    with pytest.raises(ttnn.DeviceError, match=r"^Uneven input shard height 64 for tensor height 96 not supported"):
        ttnn.untilize(blocks, use_multicore=False)


def test_shards_of_rows_are_aligned(device):
    with pytest.raises(ttnn.DeviceError, match=r"^Output shard row size 120 bytes must be aligned to 16 bytes"):
        ttnn.untilize(placed(device, IMAGE, place=high((32, 64), 2)), memory_config=high((25, 60), 2))


@pytest.mark.parametrize(
    ("shape", "place", "first"),
    [
        ((1, 1, 2, 50, 60), DRAM, r"For valid non-interleaved buffers page size 128 must equal buffer size 12000\."),
        ((1, 1, 2, 64, 60), DRAM, r"MeshBuffer must be large enough to hold the tensor\."),
        ((1, 1, 1, 64, 96), in_box(BLOCK, (32, 64), 2, 2), "Changing the last dimension of a sharded tensor"),
        ((50,), high((32, 64), 1), "Shard shape must be 1D for 1D tensor!"),
    ],
)
def test_more_than_four_axes_and_shards_of_one_are_refused_as_by_the_library(device, shape, place, first):
    with pytest.raises(ttnn.DeviceError, match=f"^{first}"):
        ttnn.untilize(placed(device, np.zeros(shape, np.float32), place=place))


def test_five_axes_without_padding_are_untilized(device):
    values = np.arange(2 * 32 * 64, dtype=np.float32).reshape(1, 1, 2, 32, 64) % 251
    assert np.array_equal(ttnn.untilize(placed(device, values)).to_numpy(), values)


@pytest.mark.parametrize("place", [DRAM, high((32, 60), 4)])
def test_one_core_cuts_padding_off(device, place):
    result = ttnn.untilize_with_unpadding(placed(device, VALUES), [1, 39, 29], memory_config=place, use_multicore=False)
    assert np.array_equal(result.to_numpy(), VALUES[:, :40, :30])


def test_vectors_in_shards_of_tiles_have_no_rows(device):
    vector = placed(device, VALUES[0, 0, :32], place=high((64, 32), 1))
    with pytest.raises(ttnn.DeviceError, match=r"^Shard shape must be 1D for 1D tensor!"):
        ttnn.to_layout(vector, ttnn.ROW_MAJOR_LAYOUT)
