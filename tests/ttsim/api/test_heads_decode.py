"""Heads of one token for each user: numbers by numpy; buffers, places and errors as ttnn 0.81.1 has them."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.ttsim.api.calls import captured, numbers, put, refusal

SPLIT, JOIN = ttnn.experimental.nlp_create_qkv_heads_decode, ttnn.experimental.nlp_concat_heads_decode
WIDTH = ttnn.TensorMemoryLayout.WIDTH_SHARDED
SPREAD = "1x1x4x192 tile width/32x32/6x1"  # 4 users of 4 heads, 1 of keys and 1 of values, of 32 columns


def grid(*corners):
    return ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(a, b), ttnn.CoreCoord(c, d)) for a, b, c, d in corners])


def height(shape, *corners, layout=ttnn.TensorMemoryLayout.HEIGHT_SHARDED):
    shards = ttnn.ShardSpec(grid(*corners), shape, ttnn.ShardOrientation.ROW_MAJOR)
    return ttnn.MemoryConfig(layout, ttnn.BufferType.L1, shards)


def on(device, place, *shape):
    """Whole numbers on given cores."""
    return ttnn.from_numpy(numbers(*shape), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device, memory_config=place)


def sizes(call):
    """Sizes of the dataflow buffers, which a capture shows where nothing is dispatched."""
    nodes = captured(call, ttnn.graph.RunMode.NO_DISPATCH)[2]
    return [int(node["params"]["size"]) for node in nodes if node["node_type"] == "dataflow_buffer_allocate"]


def places(results):
    return [str(tensor.memory_config().shard_spec.grid) for tensor in results]


@pytest.mark.parametrize("words", ["1x1x4x192 tile", SPREAD])
def test_each_user_has_queries_then_keys_then_values(device, words):
    results = SPLIT(put(device, words), num_heads=4, num_kv_heads=1)
    rows = numbers(1, 1, 4, 192).reshape(1, 4, 6, 32)
    for tensor, wanted in zip(results, np.split(rows, [4, 5], axis=2), strict=True):
        assert (tensor.to_numpy() == wanted).all()
        assert tensor.memory_config() == height([32, 32], (0, 0, 3, 0))
    joined = JOIN(results[0], num_heads=3).to_numpy()
    assert joined.shape == (1, 1, 32, 96)
    assert (joined[0, 0, :4] == rows[0, :, :3].reshape(4, 96)).all()
    assert not joined[0, 0, 4:].any()


def test_some_users_from_an_offset_on(device):
    offset = ttnn.from_numpy(np.array([1]), ttnn.int32, device=device)
    query, _, value = SPLIT(put(device, SPREAD), num_heads=4, num_kv_heads=1, batch_offset=offset, slice_size=2)
    rows = numbers(1, 1, 4, 192).reshape(1, 4, 6, 32)[:, 1:3]
    assert (query.to_numpy() == rows[:, :, :4]).all()
    assert (value.to_numpy() == rows[:, :, 5:]).all()
    beyond = ttnn.from_numpy(np.array([3]), ttnn.int32, device=device)
    with ttnn.open_device(strict=True) as strict:
        tensors = put(strict, SPREAD), ttnn.from_numpy(beyond.to_numpy(), ttnn.int32, device=strict)
        text = refusal(lambda: SPLIT(tensors[0], num_heads=4, num_kv_heads=1, batch_offset=tensors[1], slice_size=2))
    assert text.startswith(
        "Argument: nlp_create_qkv_heads_decode: batch_offset 3 and slice_size 2 ask for users beyond"
    )


def test_keys_on_other_cores(device):
    """They begin behind the cores of queries; shards that begin elsewhere take any cores."""
    apart = {"num_heads": 4, "num_kv_heads": 1, "overlap_qk_coregrid": False}
    row, elsewhere = put(device, SPREAD), on(device, height([32, 32], (1, 0, 6, 0), layout=WIDTH), 1, 1, 4, 192)
    assert places(SPLIT(row, **apart)) == ["{[0-0 - 3-0]}", "{[4-0 - 7-0]}", "{[0-0 - 3-0]}"]
    uneven = height([32, 32], (1, 0, 3, 3))
    found = places(SPLIT(elsewhere, **apart, memory_config=uneven))
    assert found == ["{[1-0 - 3-0], [1-1 - 1-1]}", "{[2-1 - 3-1], [1-2 - 2-2]}", "{[1-0 - 3-0], [1-1 - 1-1]}"]
    offset = ttnn.from_numpy(np.array([1]), ttnn.int32, device=device)
    assert sizes(lambda: SPLIT(row, **apart, batch_offset=offset, slice_size=2)) == [4096, 2048, 2048, 2048]


def test_half_rows_are_aligned_where_dram_aligns_more():
    """Blackhole's DRAM aligns 64 bytes, and half a row of bfloat16 has 32: one more than the tiles of a head."""
    for spec, dtype, more in (("blackhole_p150", "bfloat16", [192] * 2), ("blackhole_p150", "float32", []),
                              ("wormhole_n150", "bfloat16", [])):  # fmt: skip
        with ttnn.open_device(spec=spec) as device:
            x = put(device, f"1x1x8x384 tile {dtype}")
            found = sizes(lambda x=x: SPLIT(x, num_heads=4, num_kv_heads=1))
        assert found == [2 * 1024 * (4 if dtype == "float32" else 2)] * 3 + more


REFUSED = [
    (lambda d: SPLIT(put(d, "1x1x8x768 tile"), num_heads=7), "Input shape 768 must be divisible by num_heads + 2*num_"),
    (lambda d: SPLIT(put(d, "1x1x33x96 tile"), num_heads=1), "Unsupported input shape = Shape([1, 1, 33, 96])"),
    (lambda d: SPLIT(put(d, "1x1x8x96"), num_heads=1), "Only tile layout is supported for input tensor"),
    (lambda d: SPLIT(put(d, "1x1x8x96 tile bfloat8_b"), num_heads=1), "Unsupported data format"),
    (lambda d: SPLIT(put(d, "1x1x8x320 tile"), num_heads=2, num_kv_heads=4),
     "num_q_heads=2 must be greater than or equal to num_kv_heads=4"),
    (lambda d: SPLIT(put(d, "1x1x8x96 tile"), num_heads=3, num_kv_heads=0),
     "Shard shape must be greater than 0 in each sharded dim, got [0, 32]"),
    (lambda d: SPLIT(put(d, "1x1x8x96 tile"), num_heads=1, memory_config=height([32, 32], (0, 0, 3, 0))),
     "Target number of cores 8 is greater than total available cores 4"),
    (lambda d: SPLIT(put(d, "1x1x8x96 tile"), num_heads=1, batch_offset=ttnn.from_numpy([0], ttnn.int32, device=d),
                     slice_size=2, memory_config=height([32, 32], (0, 0, 3, 0))),
     "Grid Size is 4. Need at least 32 cores for decode"),
    (lambda d: SPLIT(put(d, "1x1x4x96 tile"), num_heads=1, memory_config=height([32, 32], (1, 0, 6, 0))),
     "Kernel 'reader' is setting runtime_arg_values for node 0-0, but the kernel does not run on that node."),
    (lambda d: SPLIT(put(d, "1x1x4x384 tile width/32x64/6x1"), num_heads=10, num_kv_heads=1, overlap_qk_coregrid=False),
     "We don't support partial heads in shards when q and k heads are not overlapping coregrid"),
    (lambda d: SPLIT(put(d, SPREAD), num_heads=4, num_kv_heads=1, slice_size=2),
     "Both batch_offset and slice_size must be provided or neither"),
    (lambda d: JOIN(put(d, "1x4x8x64 tile"), num_heads=8), "Input tensor must be sharded"),
    (lambda d: JOIN(put(d, "1x4x8x64 tile height/32x64/4x1"), num_heads=40), "head_dim must be multiple of TILE_WIDTH"),
    (lambda d: JOIN(put(d, "1x4x8x64 tile height/32x64/5x1"), num_heads=8),
     "Input core grid num_cores must be equal to num users"),
    (lambda d: JOIN(put(d, "1x4x8x64 tile height/64x64/2x1"), num_heads=8),
     "Shard spec shape[0] (64) must match input tensor padded shape[-2] (32)"),
    (lambda d: JOIN(on(d, height([32, 64], (1, 0, 4, 0)), 1, 4, 8, 64), num_heads=8), "bad optional access"),
    (lambda d: JOIN(put(d, "4x8x64 tile"), num_heads=8), "ShapeBase[] index out of range. 3 not in [-4, 3)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_errors_begin_as_those_of_the_real_library(device, call, text):
    assert refusal(lambda: call(device)).startswith(f"Device: {text}")


def test_calls_without_heads_are_refused_by_name(device):
    text = refusal(lambda: SPLIT(put(device, "1x1x8x96 tile"), num_heads=0))
    assert text.startswith("NotSimulated: nlp_create_qkv_heads_decode: ")


def test_heads_are_joined_on_given_cores(device):
    x = on(device, height([32, 64], (1, 0, 4, 0)), 1, 4, 8, 64)
    joined = JOIN(x, num_heads=6, sub_core_grids=grid((0, 0, 4, 3)))
    assert places([joined]) == ["{[1-0 - 4-0], [0-1 - 1-1]}"]
    assert (joined.to_numpy()[0, 0, :4] == numbers(1, 4, 8, 64)[0, :, :6].reshape(4, 384)).all()


def test_columns_of_other_ranks_are_those_of_the_fourth_axis(device):
    x = ttnn.zeros((1, 1, 1, 32, 640), ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
    with pytest.raises(
        ttnn.DeviceError, match=r"^Input shape 32 must be divisible by num_heads \+ 2\*num_kv_heads = 20"
    ):
        ttnn.experimental.nlp_create_qkv_heads_decode(x, num_heads=16, num_kv_heads=2)
