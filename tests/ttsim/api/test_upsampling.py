"""ttnn.upsample as users call it."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.shards import BLOCK, HEIGHT, high, in_box, wide

IMAGE = np.arange(2 * 3 * 32 * 64, dtype=np.float32).reshape(2, 3, 32, 64) % 251


def placed(device, array=IMAGE, layout=ttnn.ROW_MAJOR_LAYOUT, place=None):
    return ttnn.from_torch(array, ttnn.bfloat16, layout=layout, device=device, memory_config=place)


@pytest.mark.parametrize(
    ("layout", "place"),
    [
        (ttnn.ROW_MAJOR_LAYOUT, None),
        (ttnn.TILE_LAYOUT, None),
        (ttnn.ROW_MAJOR_LAYOUT, high((96, 64), 2)),
        (ttnn.ROW_MAJOR_LAYOUT, wide((192, 32), 2)),
    ],
)
def test_pixels_are_repeated_down_and_across(device, layout, place):
    result = ttnn.upsample(placed(device, layout=layout, place=place), (2, 3))
    assert np.array_equal(result.to_numpy(), IMAGE.repeat(2, axis=1).repeat(3, axis=2))
    if place is not None:
        rows, columns = place.shard_spec.shape
        assert result.memory_config().shard_spec.shape == [rows * 6, columns]


def test_rows_grow_by_fractions_of_a_pixel(device):
    result = ttnn.upsample(placed(device), [1.0, 1.5])
    assert np.array_equal(result.to_numpy(), IMAGE[:, :, np.arange(48) * 2 // 3])


def test_refusals_begin_as_those_of_the_library(device):
    rows, tiles = placed(device), placed(device, layout=ttnn.TILE_LAYOUT)
    shards = placed(device, place=high((96, 64), 2))
    with pytest.raises(ttnn.DeviceError, match=r"^Tiled input must be tile-aligned"):
        ttnn.upsample(placed(device, IMAGE[:, :, :20], ttnn.TILE_LAYOUT), 2)
    with pytest.raises(ttnn.DeviceError, match=r"^Unsupported upsample configuration:"):
        ttnn.upsample(tiles, 1.5)
    with pytest.raises(ttnn.DeviceError, match=r"^bad optional access"):
        ttnn.upsample(shards, 2, memory_config=ttnn.DRAM_MEMORY_CONFIG)
    with pytest.raises(ttnn.DeviceError, match=r"^Output memory config is sharded but input memory config is not"):
        ttnn.upsample(rows, 2, memory_config=shards.memory_config())
    with pytest.raises(ttnn.DeviceError, match=r"^scale_factor_w must be positive, got 0"):
        ttnn.upsample(rows, (1, 0))
    with pytest.raises(ttnn.ArgumentError, match="mode 'bilinear' is not simulated"):
        ttnn.upsample(rows, 2, mode="bilinear")
    with pytest.raises(ttnn.DeviceError, match=r"^mode must be 'nearest' or 'bilinear'"):
        ttnn.upsample(rows, 2, mode="cubic")
    with pytest.raises(ttnn.ArgumentTypeError, match="must be a number or two of them"):
        ttnn.upsample(rows, (1, 2, 3))


def test_lists_lie_beside_all_channel_cores(device):
    """64 pixels of 40 channels in shards of 32 x 16: 2 x 3 of 4 x 5 cores hold pixels, 2 x 5 get a list."""
    grid = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(4, 3))])
    shards = ttnn.ShardSpec(grid, (32, 16), ttnn.ShardOrientation.ROW_MAJOR)
    place = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.BLOCK_SHARDED, ttnn.BufferType.L1, shards)
    image = IMAGE.reshape(-1)[: 8 * 8 * 40].reshape(1, 8, 8, 40)
    source = placed(device, image, place=place)
    ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NORMAL)
    result = ttnn.upsample(source, 2)
    events = ttnn.graph.end_graph_capture()
    sizes = [event["params"]["size"] for event in events if event["node_type"] == "buffer_allocate"]
    assert sizes[-1] == 2 * 5 * 48
    assert np.array_equal(result.to_numpy(), image.repeat(2, axis=1).repeat(2, axis=2))


def test_tiles_of_float32_are_cut_and_refused_by_a_strict_device():
    """1 + 2^-10 has ten bits behind the point, of which bfloat16 keeps seven."""
    for strict in (True, False):
        with ttnn.open_device(l1_small_size=32768, strict=strict) as device:
            image = np.full((1, 1, 32, 32), 1 + 2**-10, np.float32)
            rows, tiles = (
                ttnn.Tensor(image, ttnn.float32, device, layout) for layout in (ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT)
            )
            assert (ttnn.upsample(rows, (2, 1)).to_numpy() == 1 + 2**-10).all()
            if not strict:
                assert (ttnn.upsample(tiles, (2, 1)).to_numpy() == 1).all()
                continue
            with pytest.raises(ttnn.ArgumentError, match=r"^upsample: tiles of float32 come out cut to bfloat16"):
                ttnn.upsample(tiles, (2, 1))
            ragged = ttnn.from_torch(IMAGE[..., :16], ttnn.float32, layout=ttnn.TILE_LAYOUT, device=device)
            with pytest.raises(ttnn.DeviceError, match=r"^Tiled input must be tile-aligned"):
                ttnn.upsample(ragged, 2)


def test_views_of_shards_are_no_larger_than_the_shards(device):
    """72 padded channels on 2 columns of cores are 72 bytes a stick, 80 aligned; shards of 24 channels have 48."""
    place = in_box(BLOCK, (32, 24), 2, 3, ttnn.ShardOrientation.COL_MAJOR)
    with pytest.raises(
        ttnn.DeviceError, match=r"^DFB 'upsample_shard_in' \(entry_size 80 \* num_entries 32 = 2560 bytes\)"
    ):
        ttnn.upsample(placed(device, IMAGE.reshape(1, 6, 32, 64)[:, :2], place=place), 2)


def test_sticks_of_the_result_are_as_long_as_those_of_shards(device):
    place = in_box(BLOCK, (64, 24), 3, 3)  # 72 channels with padding
    with pytest.raises(ttnn.DeviceError, match=r"^Input and output sticks should have same size"):
        ttnn.upsample(placed(device, place=place), 2, memory_config=ttnn.L1_MEMORY_CONFIG)


@pytest.mark.parametrize(
    ("shape", "dtype", "layout", "place", "scale", "first"),
    [
        (
            (1, 8, 8, 32),
            ttnn.bfloat16,
            ttnn.ROW_MAJOR_LAYOUT,
            None,
            1.5,
            r"bilinear mode requires integer scale factors",
        ),
        ((1, 8, 8, 32), ttnn.bfloat16, ttnn.TILE_LAYOUT, None, 2, r"Physical shard shape \(1, 32\) must be tile"),
        ((1, 8, 8, 40), ttnn.float32, ttnn.ROW_MAJOR_LAYOUT, None, 2, "Bilinear upsample requires BFLOAT16 input"),
        ((1, 8, 8, 40), ttnn.bfloat16, ttnn.ROW_MAJOR_LAYOUT, None, 2, "input channels should be divisible by 32"),
        (
            (1, 8, 8, 128),
            ttnn.float32,
            ttnn.ROW_MAJOR_LAYOUT,
            wide((64, 24), 6),
            2,
            "Changing the last dimension of a sharded tensor is not supported",
        ),
        (
            (1, 8, 8, 32),
            ttnn.float32,
            ttnn.ROW_MAJOR_LAYOUT,
            in_box(HEIGHT, (16, 32), 2, 2, ttnn.ShardOrientation.COL_MAJOR),
            2,
            "Sliding-window shard grid core 1 is 0-1 but the origin-anchored row walk addresses it as 1-0",
        ),
    ],
)
def test_bilinear_calls_that_the_library_refuses_are_refused_in_its_words(
    device, shape, dtype, layout, place, scale, first
):
    image = ttnn.from_torch(np.zeros(shape, np.float32), dtype, layout=layout, device=device, memory_config=place)
    with pytest.raises(ttnn.DeviceError, match=f"^{first}"):
        ttnn.upsample(image, scale, mode="bilinear")
