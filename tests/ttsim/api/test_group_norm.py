"""group_norm: numbers, buffers, errors, and what prepares its weights, masks and shards."""

import numpy as np
import pytest

import ttsim as ttnn

HEIGHT, BLOCK = ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.TensorMemoryLayout.BLOCK_SHARDED


def sharded(layout, shape, across, down, orientation=ttnn.ShardOrientation.ROW_MAJOR):
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(across - 1, down - 1))])
    return ttnn.MemoryConfig(layout, ttnn.BufferType.L1, ttnn.ShardSpec(cores, shape, orientation))


def normalized(x, groups):
    batch, _, pixels, channels = x.shape
    grouped = x.reshape(batch, pixels, groups, channels // groups)
    centered = grouped - grouped.mean((1, 3), keepdims=True)
    return (centered / np.sqrt((centered**2).mean((1, 3), keepdims=True) + 1e-5)).reshape(x.shape)


@pytest.mark.parametrize("values", ["exact", "fast"])
def test_two_images_whose_channels_two_cores_share(values):
    """24 channels a group and 48 a core: weights are padded to two tiles for each core."""
    rng = np.random.default_rng(3)
    torch = pytest.importorskip("torch")
    weights = torch.from_numpy(rng.normal(size=96).astype(np.float32))
    place = sharded(BLOCK, (32, 48), 2, 4)
    with ttnn.open_device(spec="wormhole_n150", values=values) as device:
        x = ttnn.from_numpy(
            rng.normal(1, 2, (2, 1, 64, 96)).astype(np.float32), ttnn.bfloat16, device=device, memory_config=place
        )
        mask = ttnn.create_group_norm_input_mask(96, 4, 2).to(device)
        prepared = ttnn.create_group_norm_weight_bias_rm(weights, 96, 2)
        weight = ttnn.from_torch(prepared, ttnn.bfloat16, device=device)
        before = x.to_numpy().astype(float)
        result = ttnn.group_norm(x, num_groups=4, epsilon=1e-5, input_mask=mask, weight=weight)
        assert result.buffer_address() == x.buffer_address()
        got = result.to_numpy().astype(float)
    assert prepared.shape == (1, 1, 4, 32)
    assert np.abs(got - normalized(before, 4) * weights.numpy()).max() < 0.06


@pytest.mark.parametrize(
    ("channels", "groups", "parts", "columns"),
    [
        (96, 4, 1, [(0, 24), (24, 48), (16, 40), (8, 32)]),
        (96, 4, 2, [(0, 24), (24, 48), (0, 24), (24, 48)]),
        (512, 32, 1, [(0, 16), (16, 32)] * 16),
    ],
)
def test_masks(channels, groups, parts, columns):
    mask = ttnn.create_group_norm_input_mask(channels, groups, parts).to_numpy().astype(int)
    negative = ttnn.create_group_norm_input_negative_mask(channels, groups, parts).to_numpy().astype(int)
    assert [(row.argmax(), row.argmax() + row.sum()) for row in mask[0, :, 31]] == columns
    assert np.array_equal(mask + negative, np.ones_like(mask))


@pytest.mark.parametrize(
    ("images", "by_height", "by_rows", "shape", "grid"),
    [
        ((96, 2, 4096), False, True, [512, 48], (2, 8)),
        ((1920, 8, 1568), False, True, [224, 240], (8, 7)),
        ((1280, 5, 16384), False, False, [256, 2048], (8, 5)),
        ((640, 8, 16384), True, True, [256, 640], (8, 8)),
    ],
)
def test_shards_of_the_real_library(device, images, by_height, by_rows, shape, grid):
    channels, groups, pixels = images
    place, cores = ttnn.determine_expected_group_norm_sharded_config_and_grid_size(
        device=device, num_channels=channels, num_groups=groups, input_nhw=pixels, is_height_sharded=by_height,
        is_row_major=by_rows,
    )  # fmt: skip
    assert (place.shard_spec.shape, (cores.x, cores.y)) == (shape, grid)


def test_cores_of_interleaved_images(device):
    """Three images of 128 rows of tiles do not share 4 cores or more evenly."""
    find = ttnn.determine_expected_group_norm_dram_grid_size
    grids = [
        find(device=device, num_channels=channels, num_groups=groups, input_nhw=pixels, num_batches=batches)
        for channels, groups, pixels, batches in ((96, 2, 4096, 3), (1920, 8, 1568, 1), (1280, 5, 16384, 1))
    ]
    assert [(grid.x, grid.y) for grid in grids] == [(2, 1), (4, 7), (5, 8)]


def grouped(device, sides=(1, 1, 128, 64), layout=ttnn.ROW_MAJOR_LAYOUT, groups=2, **named):
    place = sharded(HEIGHT, (sides[2] * sides[0] // 4, sides[3]), 2, 2)
    x = ttnn.from_numpy(np.ones(sides, np.float32), ttnn.bfloat16, layout=layout, device=device, memory_config=place)
    mask = ttnn.create_group_norm_input_mask(64, 2, 1).to(device)
    return ttnn.group_norm(x, **{"num_groups": groups, "input_mask": mask} | named)


def test_buffers_of_the_real_library(device):
    """A shard of 1 x 2 tiles in rows: its tiles before and after, three constants, a mask of two tiles, sums."""
    ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NORMAL)
    grouped(device)
    nodes = ttnn.graph.end_graph_capture()
    sizes = [int(node["params"]["size"]) for node in nodes if node["node_type"] == "circular_buffer_allocate"]
    assert sizes == [4096, 4096, 4096, 2048, 2048, 2048, 4096, 2048, 2048, 2048, 2048, 2048, 2048]


def circular_buffers(call):
    """Bytes of the circular buffers of a call, and its result."""
    ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NORMAL)
    result = call()
    nodes = ttnn.graph.end_graph_capture()
    sizes = [int(node["params"]["size"]) for node in nodes if node["node_type"] == "circular_buffer_allocate"]
    return sizes, result


def test_the_program_of_two_passes_keeps_masks_and_sums_of_all_groups(device):
    """Recorded of the real library: 8 groups in a shard of 8 x 8 tiles, and 4 of 32 on a core of interleaved images."""
    place = sharded(HEIGHT, (256, 256), 4, 1)
    x = ttnn.zeros((1, 1, 1024, 256), device=device, memory_config=place)
    sizes, _ = circular_buffers(lambda: ttnn.group_norm(x, num_groups=8, use_welford=True))
    tiles = [64, 64, 64, 2, 1, 8, 1, 2, 16, 8, 1]  # two tiles of differences, epsilon, masks, x, means and variances
    assert sizes == [2048 * count for count in tiles]
    y = ttnn.zeros((1, 1, 4096, 512), layout=ttnn.TILE_LAYOUT, device=device)
    sizes, _ = circular_buffers(lambda: ttnn.group_norm(y, num_groups=32, use_welford=True, inplace=False))
    assert sizes == [2048 * count for count in [32, 16, 16, 1, 4, 1, 2, 16, 2, 8, 4]]
    with pytest.raises(ttnn.DeviceError, match=r"^num_groups_per_core \(32\) must be <= 16 when use_welfords is true"):
        ttnn.group_norm(y, num_groups=32, use_welford=True, inplace=False, core_grid=ttnn.CoreGrid(x=1, y=1))


def test_a_mask_of_padded_images_is_followed_by_that_of_their_last_tiles(device):
    """48 pixels: the mask times 16 rows of ones, behind the mask itself, is what the program reads."""
    rng = np.random.default_rng(3)
    numbers = rng.normal(size=(2, 1, 48, 64)).astype(np.float32)
    x = ttnn.from_numpy(numbers, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    mask = ttnn.create_group_norm_input_mask(64, 2, 1).to(device)
    named = {"num_groups": 2, "epsilon": 1e-5, "inplace": False, "core_grid": ttnn.CoreGrid(x=1, y=2)}
    with ttnn.profile(device) as profiled:
        result = ttnn.group_norm(x, input_mask=mask, **named)
    ran = [op.name for call in profiled.report().calls for op in call.operations]
    assert ran == ["BinaryNgDeviceOperation", "ConcatDeviceOperation", "GroupNormDeviceOperation"]
    assert np.abs(result.to_numpy().astype(float) - normalized(x.to_numpy().astype(float), 2)).max() < 0.06


def test_rows_that_do_not_fit_twice_are_written_where_the_tiles_were(device):
    """Shards of 13 and of 14 rows of 16 tiles: beside the larger ones there is room for a negative mask alone."""
    for rows, second in ((13, 13 * 16 * 2048), (14, 2048)):
        place = sharded(HEIGHT, (32 * rows, 512), 4, 1)
        x = ttnn.zeros((1, 1, 128 * rows, 512), device=device, memory_config=place)
        sizes, _ = circular_buffers(lambda x=x: ttnn.group_norm(x, num_groups=16))
        assert sizes[1:3] == [rows * 16 * 2048, second]
        x.deallocate()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"layout": ttnn.TILE_LAYOUT}, "In-place operation not supported: Tile layout requires non-inplace tensors."),
        ({"groups": 3}, "Invalid channel configuration: Number of channels (64) must be divisible by the number of"),
        ({"groups": 4}, "Input mask dim1 must be 4 (num_groups=4), got: 2"),
        ({"inplace": False}, "Only L1 buffers can have an associated circular buffer!"),
        ({"dtype": ttnn.float32}, "group_norm output dtype must match input dtype (DataType::BFLOAT16), got dtype="),
    ],
)
def test_errors_begin_as_those_of_the_real_library(device, arguments, line):
    with pytest.raises(ttnn.TTSimError) as refused:
        grouped(device, **arguments)
    assert str(refused.value).startswith(line)


@pytest.mark.parametrize("dtype", [ttnn.bfloat16, ttnn.float32])
def test_interleaved_images(device, dtype):
    """Two parts of 3 tiles of channels, groups of 12 in up to two tiles; 4 rows of tiles on 4 rows of cores."""
    rng = np.random.default_rng(3)
    x = ttnn.from_numpy(
        rng.normal(1, 2, (2, 1, 64, 192)).astype(np.float32), dtype, layout=ttnn.TILE_LAYOUT, device=device
    )
    mask = ttnn.create_group_norm_input_mask(192, 16, 2).to(device)
    grid, before = ttnn.CoreGrid(x=2, y=4), x.to_numpy().astype(float)
    ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NORMAL)
    result = ttnn.group_norm(x, num_groups=16, epsilon=1e-5, input_mask=mask, core_grid=grid, inplace=False)
    nodes = ttnn.graph.end_graph_capture()
    sizes = [int(node["params"]["size"]) for node in nodes if node["node_type"] == "circular_buffer_allocate"]
    tile, block = (2048, 4096) if dtype is ttnn.bfloat16 else (4096, 8192)
    assert sizes == [block] * 3 + [tile, 2048, tile, 8192] + [block] * 4 + [tile] * 6
    assert np.abs(result.to_numpy().astype(float) - normalized(before, 16)).max() < 0.06


def test_a_core_of_whole_images_makes_room_for_another_group(device):
    x = ttnn.zeros((2, 1, 64, 32), layout=ttnn.TILE_LAYOUT, device=device)
    mask = ttnn.create_group_norm_input_mask(32, 1, 1).to(device)
    ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NORMAL)
    ttnn.group_norm(x, num_groups=1, input_mask=mask, core_grid=ttnn.CoreGrid(x=1, y=2), inplace=False)
    nodes = ttnn.graph.end_graph_capture()
    sizes = [int(node["params"]["size"]) for node in nodes if node["node_type"] == "circular_buffer_allocate"]
    assert sizes == [4096, 4096, 0, 0, 4096, 0, *[2048] * 3, 4096, *[4096, 0] * 4, *[2048] * 6]


def test_a_grid_that_does_not_divide_the_rows_of_tiles(device):
    x = ttnn.zeros((1, 1, 160, 32), layout=ttnn.TILE_LAYOUT, device=device)
    mask = ttnn.create_group_norm_input_mask(32, 1, 1).to(device)
    with pytest.raises(ttnn.DeviceError, match=r"core_grid \(x=8, y=1\) is invalid .* that fits is \(x=5, y=1\)\."):
        ttnn.group_norm(x, num_groups=1, input_mask=mask, core_grid=ttnn.CoreGrid(x=8, y=1), inplace=False)


def test_the_kernel_makes_a_mask_that_is_not_given(device):
    """A buffer of two tiles of bfloat16, and no tensor; rows of padding do not count."""
    rng = np.random.default_rng(3)
    x = ttnn.from_numpy(
        rng.normal(size=(1, 1, 40, 32)).astype(np.float32), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device
    )
    ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NORMAL)
    result = ttnn.group_norm(x, num_groups=2, epsilon=1e-5, inplace=False, core_grid=ttnn.CoreGrid(x=1, y=1))
    nodes = ttnn.graph.end_graph_capture()
    assert sum(node["node_type"] == "buffer_allocate" for node in nodes) == 1
    assert np.abs(result.to_numpy().astype(float) - normalized(x.to_numpy().astype(float), 2)).max() < 0.06


def test_interleaved_rows_are_refused_on_blackhole_as_by_the_real_library():
    with ttnn.open_device(spec="blackhole_p150") as device:
        x = ttnn.zeros((1, 1, 64, 64), device=device)
        with pytest.raises(ttnn.DeviceError, match=r"^group_norm: interleaved \(non-sharded\) input must be in TILE"):
            ttnn.group_norm(x, num_groups=2, inplace=False)


def test_interleaved_results_in_rows_are_refused_on_blackhole():
    with ttnn.open_device(spec="blackhole_p150") as device:
        images = ttnn.ones((1, 1, 128, 128), ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
        with pytest.raises(ttnn.DeviceError, match=r"^group_norm: interleaved \(non-sharded\) output must be in TILE"):
            ttnn.group_norm(images, num_groups=4, inplace=False, output_layout=ttnn.ROW_MAJOR_LAYOUT)
