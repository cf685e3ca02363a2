"""max_pool2d as users call it: numbers, device operations, places, refusals."""

import numpy as np
import pytest

import ttsim as ttnn
from ttsim.graph import RunMode, begin_graph_capture, end_graph_capture

IMAGE = np.arange(2 * 6 * 6 * 16, dtype=np.float32).reshape(2, 6, 6, 16) % 113 - 50  # whole numbers are exact


def pooled(device, *, layout=ttnn.ROW_MAJOR_LAYOUT, place=None, **changes):
    x = ttnn.from_torch(IMAGE.reshape(1, 1, 72, 16), ttnn.bfloat16, layout=layout, device=device, memory_config=place)
    call = {
        "batch_size": 2, "input_h": 6, "input_w": 6, "channels": 16,
        "kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1),
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


def test_windows_may_end_behind_the_image_with_ceil_mode(device):
    result = pooled(device, padding=(0, 0), ceil_mode=True)
    assert np.array_equal(result.to_numpy(), expected(0))


def test_it_shards_frames_moves_and_pools(device):
    begin_graph_capture(RunMode.NORMAL)
    pooled(device, memory_config=ttnn.DRAM_MEMORY_CONFIG)
    names = [one["params"]["name"] for one in end_graph_capture() if one["node_type"] == "function_start"]
    programs = [name for name in names if name.endswith("DeviceOperation") or name == "Pool2D"]
    assert [name.removesuffix("DeviceOperation") for name in programs] == [
        "InterleavedToSharded", "Halo", "Move", "Pool2D", "ShardedToInterleaved",
    ]  # fmt: skip


def test_the_result_lies_on_the_cores_of_its_rows(device):
    shards = pooled(device, applied_shard_scheme=ttnn.TensorMemoryLayout.HEIGHT_SHARDED).memory_config().shard_spec
    assert (shards.num_cores(), shards.shape) == (18, (1, 16))  # eighteen outputs, dealt row by row


def test_every_program_takes_time(device):
    with ttnn.profile(device) as profile:
        pooled(device)
    (call,) = profile.report().calls
    assert call.operations[-1].name == "Pool2D"
    assert all(operation.cycles > 0 for operation in call.operations)


@pytest.mark.parametrize(
    ("changes", "first_line"),
    [
        ({"padding": (2, 1)}, r"^Pool2D: Padding \(2, 2, 1\) should not exceed half of kernel size \(3, 3\)"),
        ({"stride": (0, 1)}, r"^Pool2D: Stride must be greater than 0 in both dimensions, got \(0, 1\)"),
        ({"kernel_size": (9, 9), "padding": (0, 0)}, "^Pool2D: Computed output dimensions must be positive"),
        ({"dtype": ttnn.bfloat8_b}, "^BFLOAT8_B/BFLOAT4_B output data format is not supported with ROW_MAJOR layout"),
    ],
)
def test_refusals_begin_with_the_librarys_words(device, changes, first_line):
    with pytest.raises(ttnn.DeviceError, match=first_line):
        pooled(device, **changes)


def test_what_is_not_simulated_is_refused_by_name(device):
    with pytest.raises(ttnn.ArgumentError, match="return_indices is not simulated"):
        pooled(device, return_indices=True)
