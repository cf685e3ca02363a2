"""Heads that are split and joined, as users call it: numbers and refusals."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.ttsim.api.calls import buffers, numbers, put, refusal

RANDOM = np.random.default_rng(7)


def on(device, *shape, dtype=ttnn.bfloat16, place=None):
    numbers = RANDOM.integers(-8, 8, shape).astype(np.float32)
    return ttnn.from_numpy(numbers, dtype, layout=ttnn.TILE_LAYOUT, device=device, memory_config=place)


def heads(array, count):
    """[batch, rows, columns] as [batch, heads, rows, head size]."""
    batch, rows, _ = array.shape
    return array.reshape(batch, rows, count, -1).transpose(0, 2, 1, 3)


@pytest.mark.parametrize("transposed", [True, False])
def test_queries_keys_and_values_lie_side_by_side(device, transposed):
    x = on(device, 2, 60, 256)
    query, key, value = ttnn.transformer.split_query_key_value_and_split_heads(
        x, num_heads=4, num_kv_heads=2, transpose_key=transposed
    )
    numbers = x.to_numpy()
    assert np.array_equal(query.to_numpy(), heads(numbers[..., :128], 4))
    want = heads(numbers[..., 128:192], 2)
    assert np.array_equal(key.to_numpy(), want.swapaxes(2, 3) if transposed else want)
    assert np.array_equal(value.to_numpy(), heads(numbers[..., 192:], 2))
    assert np.array_equal(ttnn.transformer.concatenate_heads(query).to_numpy(), numbers[..., :128])


def test_queries_alone_leave_keys_and_values_empty(device):
    """Decoders split a projection of one kind by heads so, and take the first result."""
    x = on(device, 2, 1, 64, 96)
    query, key, value = ttnn.experimental.nlp_create_qkv_heads(x, num_heads=3, num_kv_heads=0)
    assert np.array_equal(query.to_numpy(), heads(x.to_numpy()[:, 0], 3))
    assert (key.shape, value.shape) == ([2, 0, 32, 64], [2, 0, 64, 32])
    with pytest.raises(ttnn.DeviceError, match=r"^num_q_heads must be greater than 0"):
        ttnn.experimental.nlp_create_qkv_heads(x, num_heads=0, num_kv_heads=3)


def test_blocks_hold_groups_of_heads(device):
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(1, 1))])
    place = ttnn.MemoryConfig(
        ttnn.TensorMemoryLayout.BLOCK_SHARDED, ttnn.BufferType.L1, ttnn.ShardSpec(cores, (32, 128))
    )
    x = on(device, 2, 32, 256, place=place)
    query, key, value = ttnn.transformer.split_query_key_value_and_split_heads(
        x, num_heads=4, num_kv_heads=2, memory_config=ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG
    )
    parts = heads(x.to_numpy(), 8)  # two queries, a key and a value, twice
    assert np.array_equal(query.to_numpy(), parts[:, [0, 1, 4, 5]])
    assert np.array_equal(key.to_numpy(), parts[:, [2, 6]].swapaxes(2, 3))
    assert np.array_equal(value.to_numpy(), parts[:, [3, 7]])


@pytest.mark.parametrize("orientation", [ttnn.ShardOrientation.ROW_MAJOR, ttnn.ShardOrientation.COL_MAJOR])
def test_cores_hold_two_queries_two_keys_and_two_values(device, orientation):
    images, pairs = 3, 2
    row_wise = orientation is ttnn.ShardOrientation.ROW_MAJOR
    end = ttnn.CoreCoord(pairs - 1, images - 1) if row_wise else ttnn.CoreCoord(images - 1, pairs - 1)
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), end)])
    shards = ttnn.ShardSpec(cores, (32, 192), orientation)
    place = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.BLOCK_SHARDED, ttnn.BufferType.L1, shards)
    x = on(device, images, 1, 32, 384, place=place)
    split = ttnn.experimental.split_query_key_value_and_split_heads
    heights = ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG
    query, key, value = split(x, ttnn.CoreCoord(8, 8), num_heads=4, memory_config=heights)
    parts = heads(x.to_numpy()[:, 0], 12)
    assert np.array_equal(query.to_numpy(), parts[:, [0, 1, 6, 7]])
    assert np.array_equal(key.to_numpy(), parts[:, [2, 3, 8, 9]].swapaxes(2, 3))
    assert np.array_equal(value.to_numpy(), parts[:, [4, 5, 10, 11]])
    assert [one.memory_config().shard_spec.shape for one in (query, key)] == [[64, 32], [64, 32]]
    with pytest.raises(ttnn.TTSimError, match=r"^Bounding box end coordinates .* must be less than grid size \(1, 1\)"):
        split(x, ttnn.CoreCoord(1, 1), num_heads=4, memory_config=heights)
    with pytest.raises(ttnn.TTSimError, match=r"^Cannot set circular buffer size to 4096\. This is larger than"):
        split(x, ttnn.CoreCoord(8, 8), num_heads=4, memory_config=ttnn.L1_MEMORY_CONFIG)


def test_keys_and_values_of_another_tensor(device):
    x, other = on(device, 1, 1, 32, 128), on(device, 1, 1, 32, 128)
    query, key, value = ttnn.experimental.nlp_create_qkv_heads(
        x, other, num_heads=2, num_kv_heads=1, transpose_k_heads=False
    )
    assert np.array_equal(query.to_numpy(), heads(x.to_numpy()[:, 0], 2))
    assert np.array_equal(key.to_numpy()[0, 0], other.to_numpy()[0, 0, :, :64])
    assert np.array_equal(value.to_numpy()[0, 0], other.to_numpy()[0, 0, :, 64:])


def test_heads_of_segformer_and_vit(device):
    x, wide = on(device, 1, 1, 64, 96), on(device, 1, 1, 32, 2304)
    assert np.array_equal(ttnn.experimental.nlp_create_qkv_heads_segformer(x)[0].to_numpy(), heads(x.to_numpy()[0], 3))
    parts = heads(wide.to_numpy()[0], 36)
    for number, tensor in enumerate(ttnn.experimental.nlp_create_qkv_heads_vit(wide)):
        assert np.array_equal(tensor.to_numpy(), parts[:, 12 * number : 12 * number + 12])


def test_the_softmax_of_attention(device):
    scores, mask = on(device, 1, 2, 32, 64), on(device, 1, 1, 32, 64)
    want = np.exp(scores.to_numpy() / 8 + mask.to_numpy()[:, :, :1])
    want /= want.sum(-1, keepdims=True)
    result = ttnn.transformer.attention_softmax(scores, head_size=64, attention_mask=mask)
    assert np.abs(result.to_numpy() - want).max() < 0.01 * want.max()
    ttnn.transformer.attention_softmax_(scores, head_size=64, attention_mask=mask)
    assert np.array_equal(scores.to_numpy(), result.to_numpy())


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda x: ttnn.transformer.split_query_key_value_and_split_heads(x, num_heads=1),
            "Invalid input tensor: expected 3 dimensions, but found 4.",
        ),
        (
            lambda x: ttnn.transformer.split_query_key_value_and_split_heads(ttnn.squeeze(x, 0), num_heads=3),
            r"Invalid head size: 10. The head size must be a multiple of the tile width \(32\)",
        ),
        (lambda x: ttnn.experimental.nlp_create_qkv_heads(x, num_heads=5), "Unsupported input shape"),
        (
            lambda x: ttnn.experimental.nlp_create_qkv_heads(x, num_heads=1),
            "Unsupported input sequence length 2 is not equal to 1",
        ),
        (
            lambda x: ttnn.transformer.concatenate_heads(ttnn.squeeze(x, 0)),
            r"Input tensor must have rank 4. Shape: Shape\(\[2, 32, 96\]\)",
        ),
        (
            lambda x: ttnn.transformer.attention_softmax_(x, head_size=8),
            r"Cannot apply divide by sqrt\(head_size\) using in-place version when attention_mask is not set.",
        ),
        (lambda x: ttnn.transformer.attention_softmax(x, head_size=0), "attention_softmax: head_size must be at least"),
    ],
)
def test_an_error_begins_as_that_of_the_real_library(device, call, text):
    with pytest.raises(ttnn.TTSimError, match=f"^{text}"):
        call(on(device, 1, 2, 32, 96))


def separate(device, **options):
    """Two images of 2 heads of 32 columns on 2 x 2 cores, with other rows of keys and values."""
    queries = put(device, "2x1x64x64 tile block/64x32/2x2")
    pairs = put(device, "2x1x32x128 tile block/32x64/2x2", first=5)
    place = ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG
    split = ttnn.experimental.create_qkv_heads_from_separate_tensors
    return lambda: split(queries, pairs, **{"num_heads": 2, "memory_config": place} | options)


@pytest.mark.parametrize("turned", [True, False])
def test_keys_and_values_lie_in_pairs_in_a_tensor_of_their_own(device, turned):
    call = separate(device, transpose_k_heads=turned)
    if turned:
        assert buffers(call) == [*[(4096, 1)] * 3, (2048, 1), (2048, 1), (2048, 0)]
    query, key, value = call()
    rows, pairs = numbers(2, 1, 64, 64), numbers(2, 1, 32, 128, first=5).reshape(2, 32, 2, 2, 32)
    keys = pairs[:, :, :, 0].transpose(0, 2, 3, 1) if turned else pairs[:, :, :, 0].transpose(0, 2, 1, 3)
    assert (query.to_numpy() == rows.reshape(2, 64, 2, 32).transpose(0, 2, 1, 3)).all()
    assert (key.to_numpy() == keys).all()
    assert (value.to_numpy() == pairs[:, :, :, 1].transpose(0, 2, 1, 3)).all()
    assert query.memory_config().shard_spec.shape == [64, 32]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_heads": 3}, "Flattened Q hidden dimension 64 must be a multiple of Q heads 3"),
        ({"num_kv_heads": 1}, "Physical shard shape (16, 32) must be tile {32, 32} sized!"),
        ({"num_kv_heads": 4}, "Head dims must be equal in size! Q 64 num_heads 2 KV 128 num_heads 4"),
    ],
)
def test_separate_heads_that_the_real_library_refuses(device, options, text):
    assert refusal(separate(device, **options)).startswith(f"Device: {text}")


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_keys_that_are_the_values(device, apart, turned):
    x, other = on(device, 1, 1, 64, 7 * 64), on(device, 1, 1, 64, 128)
    if apart:
        x = on(device, 1, 1, 64, 5 * 64)
    query, key, value = ttnn.experimental.nlp_create_qkv_heads(
        x, other if apart else None, num_heads=5, num_kv_heads=2, transpose_k_heads=turned, kv_tied=True
    )
    numbers = x.to_numpy()[0]
    want = heads(other.to_numpy()[0] if apart else numbers[..., 5 * 64 :], 2)
    assert np.array_equal(query.to_numpy(), heads(numbers[..., : 5 * 64], 5))
    assert np.array_equal(value.to_numpy(), want)
    assert np.array_equal(key.to_numpy(), want.swapaxes(2, 3) if turned else want)


@pytest.mark.parametrize(
    ("columns", "counts", "text"),
    [
        (384, (4, 2), "Ambiguous kv_tied fused input shape: width 384 is divisible by both 6 (tied) and 8 (untied)"),
        (480, (5, 2), "Unsupported input shape"),
        (32, (5, 40), "num_q_heads (5) + num_kv_heads (40) exceeds the fused width (32)"),
    ],
)
def test_tied_keys_that_the_columns_do_not_hold(device, columns, counts, text):
    x, (count, kv_count) = on(device, 1, 1, 32, columns), counts
    options = {"num_heads": count, "num_kv_heads": kv_count, "kv_tied": True}
    assert refusal(lambda: ttnn.experimental.nlp_create_qkv_heads(x, **options)).startswith(f"Device: {text}")


def test_heads_of_falcon(device):
    """The whole projection lies in 146 tiles, twice."""
    x = on(device, 1, 40, 73 * 64)
    options = {"num_heads": 71, "num_kv_heads": 1, "transpose_key": False, "use_falcon7b_backend": True}
    results = ttnn.transformer.split_query_key_value_and_split_heads(x, **options)
    parts = heads(x.to_numpy(), 73)
    for result, want in zip(results, np.split(parts, [71, 72], axis=1), strict=True):
        assert np.array_equal(result.to_numpy(), want)


@pytest.mark.parametrize(
    ("columns", "options", "text"),
    [
        (4672, {"num_kv_heads": 1, "transpose_key": True}, "Invalid configuration: Transpose is set to true"),
        (4672, {}, "Invalid configuration: use_falcon7b_backend requires num_kv_heads to be set and no separate KV"),
        (100, {"num_kv_heads": 1}, "Invalid head size: 1 is not a multiple of tile size 32."),
        (73 * 32, {"num_kv_heads": 1}, "Unsupported input shape"),
        (4672, {"num_kv_heads": 0}, "num_kv_heads must be greater than 0"),
    ],
)
def test_projections_that_are_not_of_falcon(device, columns, options, text):
    call = {"num_heads": 71, "transpose_key": False, "use_falcon7b_backend": True} | options
    x = on(device, 1, 32, columns)
    found = refusal(lambda: ttnn.transformer.split_query_key_value_and_split_heads(x, **call))
    assert found.startswith(f"Device: {text}")


def test_heads_are_moved_into_given_shards(device):
    """The program's own shards lie on one core; 64 rows a core are asked for."""
    x = put(device, "1x128x768 tile block/128x768/1x1")
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(7, 1))])
    spec = ttnn.ShardSpec(cores, (64, 64), ttnn.ShardOrientation.ROW_MAJOR)
    place = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, spec)
    split = ttnn.transformer.split_query_key_value_and_split_heads
    options = {"num_heads": 8, "num_kv_heads": 2, "memory_config": place}
    results = split(x, transpose_key=False, **options)
    assert [tensor.memory_config() for tensor in results] == [place] * 3
    parts = heads(x.to_numpy(), 12).reshape(1, 2, 6, 128, 64)  # four queries, a key and a value, twice
    assert np.array_equal(results[0].to_numpy(), parts[:, :, :4].reshape(1, 8, 128, 64))
    assert np.array_equal(results[2].to_numpy(), parts[:, :, 5])
    found = refusal(lambda: split(x, **options))
    assert found.startswith("Device: Shard width 64 must match physical width 128 for height sharded")
    ragged = put(device, "1x100x768 tile block/128x768/1x1")  # whose heads stay where they are
    assert split(ragged, **options)[0].memory_config().shard_spec.num_cores() == 1


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda d: separate(d, memory_config=ttnn.L1_MEMORY_CONFIG)(), "Cannot set circular buffer size to 4096."),
        (lambda d: separate(d, memory_config=ttnn.DRAM_MEMORY_CONFIG)(), "Only L1 buffers can have an"),
        (
            lambda d: ttnn.experimental.split_query_key_value_and_split_heads(
                put(d, "1x1x32x384 tile block/32x384/1x1"), ttnn.CoreCoord(8, 8), num_heads=2,
                memory_config=ttnn.DRAM_MEMORY_CONFIG,
            ),
            "Only L1 buffers can have an associated circular buffer!",
        ),
        (
            lambda d: ttnn.experimental.split_query_key_value_and_split_heads(
                on(d, 1, 1, 32, 384), ttnn.CoreCoord(2, 1), num_heads=4,
                memory_config=ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG,
            ),
            "bad optional access",
        ),
        (
            lambda d: ttnn.experimental.create_qkv_heads(put(d, "2x1x1x64x96 tile height/64x96/2"), num_heads=1),
            "Flattened hidden dimension 64 must be a multiple of the combined Q 1, K 1 and V 1 heads",
        ),
        (lambda d: ttnn.experimental.nlp_create_qkv_heads_vit(on(d, 1, 64, 2304)), "Unsupported input shape"),
        (lambda d: ttnn.experimental.nlp_create_qkv_heads_vit(on(d, 64, 2304)), "ShapeBase[] index out of range. 2"),
        (
            lambda d: ttnn.experimental.nlp_create_qkv_heads_segformer(on(d, 1, 1, 1, 64, 96)),
            "Input shape[2] (1) must be divisible by TILE_HEIGHT (32)",
        ),
        (
            lambda d: ttnn.experimental.nlp_concat_heads(
                put(d, "4x8x32x64 tile height/288x64/4"), memory_config=ttnn.L1_MEMORY_CONFIG
            ),
            "Input tensor padded height (8) must be divisible by shard height / padded height (288 / 32)",
        ),
    ],
)  # fmt: skip
def test_places_and_shapes_that_programs_of_heads_refuse(device, call, text):
    assert refusal(lambda: call(device)).startswith(f"Device: {text}")


@pytest.mark.parametrize(
    ("text", "count", "bytes_"),
    [
        # Two cores of 8 heads each, as large as 4 tiles; a column of 2 tiles on its way through the matrix unit
        ("2x1x64x768 tile block/64x384/2x2", 8, 2 * 2 * 2048),
        # A core of one head: parts of two heads of half a tile have no tiles
        ("1x1x32x96 tile block/32x96/1x1", 1, 2 * 2048),
    ],
)
def test_other_heads_than_the_kernels_take_are_planned_without_values(device, text, count, bytes_):
    x, heights = put(device, text), ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG

    def split(tensor):
        cores = ttnn.CoreCoord(8, 8)
        return ttnn.experimental.split_query_key_value_and_split_heads(
            tensor, cores, num_heads=count, memory_config=heights
        )

    assert ttnn.graph.query_op_constraints(split, device, x).resource_usage.cb_peak_size_per_core == bytes_
    with pytest.raises(ttnn.NotSimulatedError, match="the kernels of ttnn take 2 heads of one image on each core"):
        split(x)


def test_shards_of_fewer_heads_than_cores_have_no_rows(device):
    x = put(device, "1x1x32x126 tile block/32x32/4x1")
    line = r"^Physical shard shape \(0, 42\) must be tile {32, 32} sized!"
    with pytest.raises(ttnn.DeviceError, match=line):
        ttnn.experimental.split_query_key_value_and_split_heads(
            x, ttnn.CoreCoord(8, 8), num_heads=1, memory_config=ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG
        )
