"""max_pool2d as users call it: numbers, device operations, places."""

import re

import numpy as np
import pytest

import ttsim as ttnn
from tests.ttsim.api.calls import captured, put, refusal

IMAGE = np.arange(2 * 6 * 6 * 16, dtype=np.float32).reshape(2, 6, 6, 16) % 113 - 50  # whole numbers are exact


def pooled(device, *, layout=ttnn.ROW_MAJOR_LAYOUT, place=None, **changes):
    x = ttnn.from_torch(IMAGE.reshape(1, 1, 72, 16), ttnn.bfloat16, layout=layout, device=device, memory_config=place)
    call = {
        "batch_size": 2, "input_h": 6, "input_w": 6, "channels": 16,
        "kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1), "dilation": (1, 1),
    }  # fmt: skip
    return ttnn.max_pool2d(input_tensor=x, **{**call, **changes})


def expected(padding=1, *, stride=2, size=3, outputs=3):
    framed = np.pad(IMAGE, ((0, 0), (padding, padding + 2), (padding, padding + 2), (0, 0)), constant_values=-np.inf)
    result = np.empty((2, outputs, outputs, 16), np.float32)
    for row in range(outputs):
        for column in range(outputs):
            window = framed[:, row * stride : row * stride + size, column * stride : column * stride + size]
            result[:, row, column] = window.max((1, 2))
    return result.reshape(1, 1, -1, 16)


@pytest.mark.parametrize("layout", [ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT])
def test_the_largest_number_under_every_window(device, layout):
    result = pooled(device, layout=layout)
    assert np.array_equal(result.to_numpy(), expected())
    assert tuple(result.shape) == (1, 1, 18, 16)


@pytest.mark.parametrize("layout", [ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT])
def test_an_image_without_axes_of_batches_and_channels(device, layout):
    image = np.arange(32 * 32, dtype=np.float32).reshape(32, 32) % 256  # bfloat16 holds them
    x = ttnn.from_numpy(image, ttnn.bfloat16, layout=layout, device=device)
    result = ttnn.max_pool2d(x, 1, 32, 32, 1, (2, 2), (2, 2), (0, 0), (1, 1))
    assert np.array_equal(result.to_numpy().reshape(16, 16), image.reshape(16, 2, 16, 2).max((1, 3)))


def test_windows_may_end_behind_the_image_with_ceil_mode(device):
    result = pooled(device, padding=(0, 0), ceil_mode=True)
    assert np.array_equal(result.to_numpy(), expected(0))


def test_a_nan_is_larger_than_infinity_and_packed_as_it(device):
    """A negative one is less than all others."""
    image = np.zeros((1, 1, 16, 16), np.float32)
    image[0, 0, 0, :4] = np.nan, -np.nan, 5, np.inf
    image[0, 0, 1, :3] = 7, 7, np.nan
    image[0, 0, [0, 1, 4, 5], 4] = -np.nan
    pooled = ttnn.max_pool2d(ttnn.Tensor(image, ttnn.bfloat16, device), 1, 4, 4, 16, (2, 2), (2, 2), (0, 0), (1, 1))
    assert pooled.to_numpy()[0, 0, 0, :6].tolist() == [np.inf, 7, np.inf, np.inf, -np.inf, 0]


def test_lists_in_dram_leave_l1_small_alone(device):
    """The images, the lists of the halo, and the one of the pool lie in DRAM."""
    names, result, nodes = captured(lambda: pooled(device, config_tensor_in_dram=True))
    assert np.array_equal(result.to_numpy(), expected())
    made = [node["params"]["type"] for node in nodes if node["node_type"] == "buffer_allocate"]
    assert (names, made.count("DRAM"), "L1_SMALL" in made) == (
        ["InterleavedToSharded", "Halo", "Move"],
        1 + 4 + 1,
        False,
    )


def test_tiled_images_are_dealt_by_their_rows_with_padding(device):
    """Twelve rows of pixels are 384 rows of tiles, but lie in 72 rows once they are flattened."""
    x = ttnn.from_torch(IMAGE, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    call = {"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1), "dilation": (1, 1)}
    by_height = ttnn.TensorMemoryLayout.HEIGHT_SHARDED
    result = ttnn.max_pool2d(x, 2, 6, 6, 16, **call, applied_shard_scheme=by_height)
    assert np.array_equal(result.to_numpy(), expected())


def test_the_average_of_every_window(device):
    """Of 3 x 3 windows in the middle: 1/9 is cut to 227/2048. At the edge, less counts."""
    x = ttnn.from_torch(IMAGE.reshape(1, 1, 72, 16), ttnn.bfloat16, device=device)
    call = {"batch_size": 2, "input_h": 6, "input_w": 6, "channels": 16, "stride": (2, 2)}
    means = IMAGE.reshape(2, 3, 2, 3, 2, 16).mean((2, 4)).reshape(1, 1, 18, 16)
    whole = ttnn.avg_pool2d(x, **call, kernel_size=(2, 2), padding=(0, 0))
    assert np.array_equal(whole.to_numpy(), means.astype(ttnn.bfloat16.format.storage))
    inside = ttnn.avg_pool2d(x, **call, kernel_size=(3, 3), padding=(1, 1), count_include_pad=False).to_numpy()
    corner, middle = IMAGE[0, :2, :2, 0].mean(), IMAGE[0, 1:4, 1:4, 0].sum() * 227 / 2048
    assert (inside[0, 0, 0, 0], inside[0, 0, 4, 0]) == pytest.approx((corner, middle), rel=2**-7)


def test_places_of_maxima(device):
    """The first of equal numbers; uint16, in rows of 6 pixels."""
    values, places = pooled(device, return_indices=True)
    assert np.array_equal(values.to_numpy(), expected())
    assert places.dtype == ttnn.uint16
    flat, shown = IMAGE.reshape(2, 36, 16), places.to_numpy().reshape(2, 9, 16)
    assert np.array_equal(np.take_along_axis(flat, shown.astype(int), 1).reshape(1, 1, 18, 16), expected())


def test_adaptive_pools(device):
    x = ttnn.from_torch(IMAGE.reshape(1, 1, 72, 16), ttnn.bfloat16, device=device)
    means, blocks = ttnn.adaptive_avg_pool2d(x, 2, 6, 6, 16, (3, 3)), IMAGE.reshape(2, 3, 2, 3, 2, 16)
    assert np.array_equal(means.to_numpy().ravel(), blocks.mean((2, 4)).astype(ttnn.bfloat16.format.storage).ravel())
    largest = ttnn.adaptive_max_pool2d(x, 2, 6, 6, 16, (3, 3))
    assert np.array_equal(largest.to_numpy().ravel(), blocks.max((2, 4)).ravel())


@pytest.mark.parametrize(
    ("layout", "programs"),
    [(ttnn.ROW_MAJOR_LAYOUT, ["Reduce"]), (ttnn.TILE_LAYOUT, ["UntilizeWithUnpadding", "Reduce"])],
)
def test_a_window_that_is_the_image_is_a_sum(device, layout, programs):
    """36 pixels are no whole tiles, so tiles become rows."""
    x = ttnn.from_torch(IMAGE.reshape(1, 1, 72, 16), ttnn.bfloat16, layout=layout, device=device)
    names, result, _ = captured(lambda: ttnn.avg_pool2d(x, 2, 6, 6, 16, (6, 6), (1, 1), (0, 0)))
    assert names == programs
    assert tuple(result.shape) == (1, 1, 2, 16)
    assert not result.is_sharded()
    assert np.allclose(result.to_numpy()[0, 0], IMAGE.mean((1, 2)), rtol=2**-7, atol=0.1)


@pytest.mark.parametrize(
    ("rows", "channels", "scheme", "error"),
    [
        (
            64,
            24,
            None,
            "Argument: max_pool2d: Input tensor shape [1, 1, 64, 16] does not match expected shape (1, 1, 64",
        ),
        (64, 264, None, "Device: For width and block sharding, input channels (16) should be divisible by num_shards"),
        (64, 24, "height/8x16/8", "Device: Cannot set circular buffer size to 576. This is larger than the"),
        (60, 16, None, "Device: Input tensor shape [1, 1, 60, 16] does not match expected shape (1, 1, 64, 16)"),
    ],
)
def test_channels_that_the_tensor_does_not_have(device, rows, channels, scheme, error):
    """The library looks at them where a program does; it reads others where none does."""
    x = put(device, f"1x1x{rows}x16 {scheme or ''}")
    assert refusal(lambda: ttnn.max_pool2d(x, 1, 8, 8, channels, (2, 2), (2, 2), (0, 0), (1, 1))).startswith(error)


def test_images_that_l1_does_not_hold_are_sliced():
    """Images in DRAM are pooled in two slices of columns, unless the places of maxima are wanted."""
    with ttnn.open_device(values="off", l1_small_size=32768) as device:
        x = ttnn.zeros((1, 1, 1024 * 512, 64), layout=ttnn.ROW_MAJOR_LAYOUT, device=device)
        call = (x, 1, 1024, 512, 64, (3, 3), (2, 2), (1, 1), (1, 1))
        names, result, _ = captured(lambda: ttnn.max_pool2d(*call))
        assert names == ["PaddedSlice", "Halo", "Move", "SliceWrite"] * 2
        assert (tuple(result.shape), result.is_sharded()) == ((1, 512, 256, 64), False)
        with pytest.raises(ttnn.OutOfMemoryError):
            ttnn.max_pool2d(*call, return_indices=True)


def test_slices_in_width_shards_pass_the_dataflow_buffers_of_interleaved_rows():
    """16 cores have 8 rows of 32 columns, of 16 channels each."""
    with ttnn.open_device(values="off", l1_small_size=32768) as device:
        x = ttnn.zeros((1, 1, 1024, 256), layout=ttnn.ROW_MAJOR_LAYOUT, device=device)
        slices = ttnn.Conv2dSliceConfig(slice_type=ttnn.Conv2dDRAMSliceHeight, num_slices=4)
        options = {"applied_shard_scheme": ttnn.TensorMemoryLayout.WIDTH_SHARDED, "dram_slice_config": slices}
        call = (x, 1, 32, 32, 256, (3, 3), (1, 1), (1, 1), (1, 1))
        _, _, nodes = captured(lambda: ttnn.max_pool2d(*call, **options), ttnn.graph.RunMode.NO_DISPATCH)
        sizes = [node["params"]["size"] for node in nodes if node["node_type"] == "dataflow_buffer_allocate"]
        assert sizes == [8 * 32 * 16 * 2] * 4


@pytest.mark.parametrize("axis", [ttnn.Conv2dDRAMSliceHeight, ttnn.Conv2dDRAMSliceWidth])
@pytest.mark.parametrize(
    "options", [{"count_include_pad": False, "ceil_mode": True}, {"kernel_size": (2, 3), "stride": (1, 1)}]
)
def test_slices_hold_the_numbers_of_the_whole(device, axis, options):
    x = ttnn.from_torch(IMAGE, ttnn.bfloat16, layout=ttnn.ROW_MAJOR_LAYOUT, device=device)
    call = {"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1)} | options
    slices = ttnn.Conv2dSliceConfig(slice_type=axis, num_slices=2)
    whole, sliced = (ttnn.avg_pool2d(x, 2, 6, 6, 16, **call, dram_slice_config=part) for part in (None, slices))
    assert tuple(sliced.shape) == (2, whole.shape[2] // 2 // sliced.shape[2], sliced.shape[2], 16)
    assert np.array_equal(sliced.to_numpy().ravel(), whole.to_numpy().ravel())


@pytest.mark.parametrize(("kernel", "padding", "slices", "size"), [(2, 0, 7, 1), (5, 2, 3, 4)])
def test_slices_that_no_window_fits(device, kernel, padding, slices, size):
    x = ttnn.from_torch(IMAGE, ttnn.bfloat16, layout=ttnn.ROW_MAJOR_LAYOUT, device=device)
    parts = ttnn.Conv2dSliceConfig(slice_type=ttnn.Conv2dDRAMSliceHeight, num_slices=slices)
    call = (x, 2, 6, 6, 16, (kernel, kernel), (1, 1), (padding, padding), (1, 1))
    first = f"Cannot fit Pool2D operation in L1 memory with DRAM slicing. The smallest input slice (size={size})"
    with pytest.raises(ttnn.DeviceError, match=re.escape(first)):
        ttnn.max_pool2d(*call, dram_slice_config=parts)


def test_many_rows_are_summed_up_in_parts_and_written_as_rows(device):
    x = ttnn.ones((1, 1, 1024, 32), layout=ttnn.TILE_LAYOUT, device=device)
    names, result, _ = captured(lambda: ttnn.avg_pool2d(x, 1, 32, 32, 32, (32, 32), (1, 1), (0, 0)))
    assert (names, result.layout, result.to_numpy().max()) == (["Reduce", "Reduce"], ttnn.ROW_MAJOR_LAYOUT, 1)


def test_many_rows_of_block_floats_are_summed_up_in_parts_and_written_as_rows_of_bfloat16(device):
    """Parts are added in tiles, since block floats have no rows."""
    image = ttnn.ones((1, 1, 1024, 32), dtype=ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT, device=device)
    result = ttnn.adaptive_avg_pool2d(image, 1, 1, 1024, 32, (1, 1))
    assert (result.dtype, result.layout) == (ttnn.bfloat16, ttnn.ROW_MAJOR_LAYOUT)
    assert np.all(result.to_numpy() == 1)


def test_averages_of_whole_numbers_are_cut_off(device):
    x = ttnn.from_numpy(np.arange(32 * 32).reshape(1, 1, 32, 32), ttnn.uint32, layout=ttnn.TILE_LAYOUT, device=device)
    result = ttnn.avg_pool2d(x, 1, 4, 8, 32, (4, 8), (1, 1), (0, 0)).to_numpy()
    assert result.ravel().tolist() == [31 * 32 // 2 + column for column in range(32)]


def test_global_averages_lie_in_tiles(device):
    x = ttnn.from_torch(IMAGE, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    result = ttnn.global_avg_pool2d(x)
    assert (tuple(result.shape), result.layout) == ((2, 1, 1, 16), ttnn.TILE_LAYOUT)
    assert np.allclose(result.to_numpy()[:, 0, 0], IMAGE.mean((1, 2)), rtol=2**-7, atol=0.1)
    with pytest.raises(ttnn.ArgumentError, match="expects rank 2, 3, or 4 input, got rank 5"):
        ttnn.global_avg_pool2d(ttnn.ones((1, 1, 1, 32, 32), layout=ttnn.TILE_LAYOUT, device=device))


@pytest.mark.parametrize(("data_type", "first"), [(ttnn.bfloat8_b, "Pad"), (ttnn.bfloat16, "Interleaved")])
def test_block_floats_are_pooled_from_rows_that_fill_all_shards(device, data_type, first):
    """40 channels on two cores are 48, to which the real library pads the rows for block floats alone."""
    image = np.arange(16 * 40, dtype=np.float32).reshape(1, 1, 16, 40) % 61
    x = ttnn.Tensor(image, ttnn.bfloat16, device)
    names, result, _ = captured(lambda: ttnn.max_pool2d(
        x, 1, 4, 4, 40, (2, 2), (2, 2), (0, 0), (1, 1), output_layout=ttnn.TILE_LAYOUT, dtype=data_type,
        applied_shard_scheme=ttnn.TensorMemoryLayout.WIDTH_SHARDED,
    ))  # fmt: skip
    assert names[0].startswith(first)
    largest = image.reshape(2, 2, 2, 2, 40).max((1, 3)).reshape(1, 1, 4, 40)
    assert np.array_equal(result.to_numpy(), largest)


@pytest.mark.parametrize("layout", [ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT])
def test_images_of_another_volume_are_planned_where_no_numbers_are_asked(layout):
    """The library reads what the sizes say, whatever the tensor holds."""
    with ttnn.open_device(values="off", strict=False, l1_small_size=32768) as device:
        x = ttnn.ones((1, 1, 192, 32), ttnn.bfloat16, layout=layout, device=device)
        assert ttnn.avg_pool2d(x, 3, 8, 4, 32, (2, 2), (2, 2), (0, 0)).shape == [1, 1, 24, 32]
    with ttnn.open_device(strict=False, l1_small_size=32768) as device:
        x = ttnn.ones((1, 1, 192, 32), ttnn.bfloat16, layout=layout, device=device)
        with pytest.raises(ttnn.DeviceError, match=r"^Input tensor shape"):
            ttnn.avg_pool2d(x, 3, 8, 4, 32, (2, 2), (2, 2), (0, 0))


def test_a_pool_whose_copy_of_the_output_is_refused_has_no_result():
    with ttnn.open_device(values="off", l1_small_size=32768) as device:
        x = ttnn.ones((1, 1, 336, 128), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
        cores = [
            ttnn.CoreRange(ttnn.CoreCoord(0, row), ttnn.CoreCoord(column, row)) for column, row in ((7, 0), (1, 1))
        ]
        shards = ttnn.ShardSpec(ttnn.CoreRangeSet(cores), [32, 128], ttnn.ShardOrientation.ROW_MAJOR)
        place = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.DRAM, shards)
        with pytest.raises(ttnn.DeviceError, match=r"^Invalid DRAM shard grid: shard core \(0, 1\) is not on row 0"):
            ttnn.avg_pool2d(x, 2, 21, 8, 128, (3, 3), (1, 1), (0, 1, 0, 0), memory_config=place)


@pytest.mark.parametrize(
    ("sides", "line"),
    [
        ((1, 1, 1, 64, 32), "Pool2D: Input tensor must be rank 2, 3, or 4, got rank 5"),
        ((64, 32), "Pool2D: For rank-2 input [H, W], batch_size and channels must be 1"),
    ],
)
def test_axes_are_looked_at_before_windows(sides, line):
    with ttnn.open_device(values="off", l1_small_size=32768) as device:
        x = ttnn.ones(sides, device=device)
        with pytest.raises(ttnn.DeviceError, match=f"^{re.escape(line)}"):
            ttnn.max_pool2d(x, 1, 8, 8, 32, (9, 0), (2, 2), (0, 0), (1, 1), dtype=ttnn.bfloat8_b)


def test_images_with_more_padding_than_tiles_need():
    """Weights prepared for BLOCK shards: three rows of a kernel of 40 channels, each filled up to 64."""
    with ttnn.open_device(values="off", l1_small_size=32768) as device:
        x = ttnn.ones((1, 1, 120, 32), layout=ttnn.TILE_LAYOUT, device=device)
        weights = x.seen_as(x.spec.changed(padded_shape=(1, 1, 192, 32)))
        line = "Padded input tensor shape Shape([1, 1, 192, 32]) does not match expected shape (1, 1, 128, 32)"
        with pytest.raises(ttnn.DeviceError, match=f"^{re.escape(line)}"):
            ttnn.max_pool2d(weights, 1, 1, 120, 32, (1, 2), (1, 2), (0, 0), (1, 1))


def test_images_in_columns_that_do_not_share_the_sticks_of_a_halo():
    """A halo of 98 sticks, of which three images share 99."""
    image = np.random.default_rng(0).integers(-50, 50, (3, 1, 33, 64)).astype(np.float32)
    cores = ttnn.CoreRangeSet({ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 0))})
    shards = ttnn.ShardSpec(cores, (99, 32), ttnn.ShardOrientation.ROW_MAJOR)
    place = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.WIDTH_SHARDED, ttnn.BufferType.L1, shards)
    with ttnn.open_device(l1_small_size=32768) as device:
        x = ttnn.from_numpy(image, ttnn.bfloat16, device=device, memory_config=place)
        pooled = ttnn.max_pool2d(x, 3, 1, 33, 64, (1, 2), (2, 3), (0, 0), (1, 1)).to_numpy()
    windows = [image[:, 0, start : start + 2].max(1) for start in range(0, 32, 3)]
    assert np.array_equal(pooled.reshape(3, 11, 64), np.stack(windows, 1))


def test_images_that_do_not_share_the_sticks_of_a_halo_leave_room_for_more():
    """Recorded from ttnn 0.81.1 on Blackhole: three images in 7 x 32 sticks are 3 x 75, of which a core has 33."""
    image = np.random.default_rng(0).integers(-50, 50, (3, 1, 32, 96)).astype(np.float32)
    cores = ttnn.CoreRangeSet({ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(6, 0))})
    shards = ttnn.ShardSpec(cores, (32, 96), ttnn.ShardOrientation.ROW_MAJOR)
    place = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, shards)
    with ttnn.open_device(spec="blackhole_p150", l1_small_size=32768) as device:
        x = ttnn.from_numpy(image, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device, memory_config=place)
        ask = ttnn.graph.query_op_constraints
        response = ask(ttnn.max_pool2d, device, x, 3, 1, 32, 96, (1, 32), (1, 32), (0, 0), (1, 1))
        assert response.resource_usage[1] == 33 * 192 + 192 + 16  # beside the images: sticks, maxima, indices
        result = ttnn.max_pool2d(x, 3, 1, 32, 96, (1, 4), (1, 4), (0, 0), (1, 1)).to_numpy()
        np.testing.assert_array_equal(result.reshape(3, 8, 96), image.reshape(3, 8, 4, 96).max(2))
