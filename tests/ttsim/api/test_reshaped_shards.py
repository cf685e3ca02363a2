"""Sharded inputs [N, H, W, C] in tiles whose rows a reshape deals anew, as calls of the real library go."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.shards import BLOCK, HEIGHT, WIDTH, in_box
from tests.sizes import conv_sizes


def device(values="off"):
    return ttnn.open_device(l1_small_size=32768, spec="wormhole_n150", values=values)


def call(on, image, memory, kernel=2, dtype=ttnn.bfloat16, seed=None, **more):
    """A transposed convolution of stride 2 to 32 channels."""
    images, height, width, channels = image
    rng = np.random.default_rng(seed)
    pixels = rng.integers(-3, 4, image).astype(np.float32)
    weights = rng.integers(-3, 4, (channels, 32, kernel, kernel)).astype(np.float32)
    placed = ttnn.Tensor(pixels, dtype, layout=ttnn.TILE_LAYOUT).to(on, memory)
    return ttnn.conv_transpose2d(
        input_tensor=placed,
        weight_tensor=ttnn.Tensor(weights, ttnn.bfloat16),
        device=on,
        **conv_sizes(height, width, channels, 32, kernel, kernel, batch=images),
        stride=(kernel, kernel),
        **more,
    )


@pytest.mark.parametrize(
    ("memory", "dtype"),
    [
        (in_box(HEIGHT, (32, 32), 8), ttnn.bfloat16),
        (in_box(WIDTH, (160, 32), 4), ttnn.bfloat16),
        (in_box(WIDTH, (160, 32), 4), ttnn.bfloat8_b),
        (in_box(BLOCK, (160, 32), 1), ttnn.float32),
    ],
)
def test_numbers_do_not_depend_on_the_shards(memory, dtype):
    with device("exact") as on:
        wanted = call(on, (1, 5, 15, 32), ttnn.L1_MEMORY_CONFIG, dtype=dtype, seed=1, conv_config=HEIGHT_CONFIG)
        got = call(on, (1, 5, 15, 32), memory, dtype=dtype, seed=1)
        np.testing.assert_array_equal(got.to_numpy(), wanted.to_numpy())


HEIGHT_CONFIG = ttnn.Conv2dConfig(shard_layout=ttnn.TensorMemoryLayout.HEIGHT_SHARDED)


@pytest.mark.parametrize(
    ("image", "memory", "kernel", "text"),
    [
        (
            (1, 5, 5, 32),
            in_box(HEIGHT, (32, 32), 8),
            2,
            "Shard height 47 must match physical height 376 for width sharded",
        ),
        (
            (1, 5, 15, 32),
            in_box(BLOCK, (32, 32), 1, 5),
            2,
            "Number of shards along height 5 must not exceed number of rows 3 for row major orientation!",
        ),
        (
            (1, 6, 5, 96),
            in_box(HEIGHT, (32, 96), 5, 6),
            1,
            "MatmulMultiCoreReuseMultiCast1DProgramConfig: input A must be HEIGHT_SHARDED, got: "
            "TensorMemoryLayout::WIDTH_SHARDED",
        ),
        (
            (2, 1, 32, 288),
            in_box(WIDTH, (64, 32), 3, 3),
            1,
            "Invalid shard grid: shard core (8, 0) has no L1 bank on this device, which has 64 of them. Derive the "
            "shard grid from the device (dram_grid_size() for DRAM, compute_with_storage_grid_size() for L1) rather "
            "than assuming a fixed size -- a harvested device exposes fewer banks than an unharvested one of the same "
            "type. An L1 shard core outside the compute grid is legal only while it is claimed via ServiceCoreManager.",
        ),
        (
            (2, 1, 32, 192),
            in_box(WIDTH, (64, 32), 3, 2),
            1,
            "MatmulMultiCoreReuseMultiCastProgramConfig: Num output blocks along x (6) must be smaller than or equal "
            "to the number of columns in compute grid (3)!",
        ),
    ],
)
def test_shards_that_do_not_fit_are_refused_in_the_real_library_s_words(image, memory, kernel, text):
    with device() as on, pytest.raises(ttnn.TTSimError) as caught:
        call(on, image, memory, kernel)
    assert str(caught.value).splitlines()[0] == text


def test_a_matmul_lies_on_as_many_cores_as_it_has_blocks():
    with device() as on:
        result = call(on, (1, 6, 37, 160), in_box(HEIGHT, (32, 160), 3, 6), 1).memory_config().shard_spec
    assert str(result.grid) == "{[0-0 - 2-1], [0-2 - 0-2]}"


def test_a_grid_that_is_no_rectangle_leaves_no_shards_to_a_convolution():
    row, rest = (ttnn.CoreRange(ttnn.CoreCoord(0, y), ttnn.CoreCoord(x, y)) for x, y in ((3, 0), (0, 1)))
    spec = ttnn.ShardSpec(ttnn.CoreRangeSet([row, rest]), (32, 32))
    memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, spec)
    with device() as on, pytest.raises(ttnn.TTSimError, match=r"^bad optional access\n"):
        call(on, (1, 5, 15, 32), memory)
