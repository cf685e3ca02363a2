"""Attention of one token for each user: numbers by numpy, buffers and errors as ttnn 0.81.1 has them."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.build import place
from tests.ttsim.api.calls import buffers, captured, put, refusal

attend = ttnn.transformer.scaled_dot_product_attention_decode
paged = ttnn.transformer.paged_scaled_dot_product_attention_decode
TENSORS = "1x2x4x32 tile", "2x2x64x32 tile"  # two users of four heads, of which two share a head of 64 keys


def random(device, text, seed):
    shape = [int(side) for side in text.partition(" ")[0].split("x")]
    return put(device, text, np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def whole(device, numbers):
    return ttnn.from_numpy(np.array(numbers), ttnn.int32, device=device)


def expected(query, key, value, seen):
    """[1, users, heads, size] of numpy's softmax; each user sees so many keys."""
    query, key, value = (
        tensor if isinstance(tensor, np.ndarray) else tensor.to_numpy() for tensor in (query, key, value)
    )
    result, share = np.empty_like(query), query.shape[2] // key.shape[1]
    for user, head in np.ndindex(query.shape[1:3]):
        own = slice(0, seen[user])
        powers = np.exp(key[user, head // share, own] @ query[0, user, head] / np.sqrt(query.shape[-1]))
        result[0, user, head] = powers @ value[user, head // share, own] / powers.sum()
    return result


@pytest.mark.parametrize("how", ["list", "tensor", "all"])
def test_each_user_sees_the_keys_up_to_its_position(device, how):
    query, (key, value) = random(device, TENSORS[0], 1), (random(device, TENSORS[1], seed) for seed in (2, 3))
    named = {
        "list": {"cur_pos": [5, 40]},
        "tensor": {"cur_pos_tensor": whole(device, [5, 40])},
        "all": {"is_causal": False},
    }
    found = attend(query, key, value, **named[how]).to_numpy()
    wanted = expected(query, key, value, (64, 64) if how == "all" else (6, 41))
    assert np.abs(found - wanted).max() < 0.03
    assert np.abs(found - expected(query, key, value, (7, 42))).max() > 0.1


def test_keys_lie_in_the_blocks_that_the_table_names(device):
    query, (key, value) = random(device, TENSORS[0], 1), (random(device, "4x2x32x32 tile", seed) for seed in (2, 3))
    table = [[3, 1], [0, 2]]
    joined = (
        np.stack([np.concatenate([cache.to_numpy()[block] for block in blocks], 1) for blocks in table])
        for cache in (key, value)
    )
    found = paged(query, key, value, whole(device, table), cur_pos_tensor=whole(device, [40, 20])).to_numpy()
    assert np.abs(found - expected(query, *joined, (41, 21))).max() < 0.03


@pytest.mark.parametrize("in_blocks", [False, True])
def test_each_user_sees_the_last_keys_and_a_sink(device, in_blocks):
    """A sink of 3 / scale weighs e^3 beside the powers of the last ten keys up to 5 and 40."""
    query, (key, value) = random(device, TENSORS[0], 1), (random(device, TENSORS[1], seed) for seed in (2, 3))
    scale = 32**-0.5
    sinks = ttnn.full((4, 1), 3 / scale, ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
    options = {"cur_pos_tensor": whole(device, [5, 40]), "sliding_window_size": 10, "attention_sink": sinks}
    table = (whole(device, [[0], [1]]),) if in_blocks else ()
    found = (paged if in_blocks else attend)(query, key, value, *table, **options).to_numpy()
    wanted, (queries, keys, values) = np.empty_like(found), (tensor.to_numpy() for tensor in (query, key, value))
    for user, head in np.ndindex(2, 4):
        own = (slice(0, 6), slice(31, 41))[user]
        powers = np.exp(keys[user, head // 2, own] @ queries[0, user, head] * scale)
        wanted[0, user, head] = powers @ values[user, head // 2, own] / (powers.sum() + np.exp(3))
    assert np.abs(found - wanted).max() < 0.03


@pytest.mark.parametrize(
    ("heads", "options", "more"),
    [  # four tiles of scores; a row of tiles of heads
        (8, {"cur_pos": [5, 9], "sliding_window_size": 40}, 4 * 1024),
        (8, {"cur_pos": [5, 9], "attention_sink": "8x32 tile"}, 1024),
        (40, {"is_causal": False, "sliding_window_size": 40}, 8 * 2048),
        (40, {"is_causal": False, "attention_sink": "40x32 tile"}, 2 * 2048),
        (8, {"is_causal": False, "attn_mask": "1x2x8x128 tile bfloat8_b"}, 4 * (1088 - 2048)),
    ],
)
def test_what_windows_sinks_and_masks_take(heads, options, more):
    with ttnn.open_device(values="off") as device:
        call = [put(device, f"1x2x{heads}x32 tile"), *(put(device, "2x1x128x32 tile") for _ in "kv")]
        options = {name: put(device, text) if isinstance(text, str) else text for name, text in options.items()}
        plain = {name: value for name, value in options.items() if name in ("cur_pos", "is_causal")}
        assert sum(sizes(lambda: attend(*call, **options))) - sum(sizes(lambda: attend(*call, **plain))) == more


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"attn_mask": "1x2x8x128 tile"}, "attn_mask must not be provided when is_causal=True. Pass is_causal=False"),
        (
            {"is_causal": False, "attn_mask": "1x2x9x128 tile"},
            "Expect same number of heads in mask as in Q, got 9 and 8",
        ),
        ({"is_causal": False, "attn_mask": "1x2x8x96 tile"}, "Expect same sequence length in mask as in K, got 96 and"),
        (
            {"is_causal": False, "attn_mask": "1x2x8x128 tile float32"},
            "Unsupported data type for mask tensor: DataType",
        ),
        ({"cur_pos": [5, 9], "attention_sink": "1x1x8x1 tile"}, "Attention sink must have 2 dimensions"),
        ({"cur_pos": [5, 9], "attention_sink": "8x33 tile"}, "Attention sink must be a single tile wide, but got 64"),
        ({"cur_pos": [5, 9], "attention_sink": "40x1 tile"}, "Attention sink must have the same padded num heads as Q"),
    ],
)
def test_masks_and_sinks_that_the_real_library_refuses(device, options, text):
    call = [put(device, "1x2x8x32 tile"), *(put(device, "2x1x128x32 tile") for _ in "kv")]
    options = {name: put(device, value) if isinstance(value, str) else value for name, value in options.items()}
    assert refusal(lambda: attend(*call, **options)).startswith(f"Device: {text}")


def some_cores(device, rectangle, shape="1x2x8x32 tile height/32x32/2"):
    """A call on 16 cores of a grid of 4x4."""
    x0, y0, x1, y1 = rectangle
    cores = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(x0, y0), ttnn.CoreCoord(x1, y1))])
    config = ttnn.SDPAProgramConfig(
        compute_with_storage_grid_size=(4, 4), q_chunk_size=32, k_chunk_size=64, sub_core_grids=cores
    )
    call = [put(device, shape), *(put(device, "2x1x128x32 tile") for _ in "kv")]
    return lambda: attend(*call, cur_pos=[5, 9], program_config=config)


def test_cores_beside_the_grid_s_corner(device):
    nodes = captured(some_cores(device, (1, 1, 4, 4)))[2]
    held = [node["params"]["core_range_set"] for node in nodes if node["node_type"] == "circular_buffer_allocate"]
    assert set(held) == {"{[1-1 - 4-4]}"}


@pytest.mark.parametrize(
    ("rectangle", "shape", "text"),
    [
        ((0, 0, 1, 1), "1x2x8x32 tile", "sub_core_grids cores (4) must match compute_with_storage_grid_size (16)"),
        ((0, 0, 3, 3), "1x2x8x32 tile", "Subcoregrids require sharded Q or output"),
        ((6, 6, 9, 9), "1x2x8x32 tile height/32x32/2", "No core coordinate found at location: (8, 6, TENSIX, LOGICAL)"),
    ],
)
def test_cores_that_the_real_library_refuses(device, rectangle, shape, text):
    assert refusal(some_cores(device, rectangle, shape)).startswith(f"Device: {text}")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"cache_position_modulo": 32}, "cache_position_modulo (32) must be a multiple of effective block_size (64)"),
        (
            {"cache_position_modulo": 64, "sliding_window_size": 65},
            "cache_position_modulo (64) must be >= sliding_window",
        ),
        ({"spec_multi_pos_tiles": 1}, "spec_multi_pos_tiles requires full 32x32 tiles (use_half_tile must be false)"),
        ({"spec_multi_pos_tiles": 2}, "spec_multi_pos_tiles=2: Q must have 64 padded rows per batch"),
    ],
)
def test_positions_that_caches_in_blocks_cannot_have(device, options, text):
    call = [put(device, "1x2x8x32 tile"), *(put(device, "2x1x64x32 tile") for _ in "kv"), whole(device, [[0], [1]])]
    options = options | {"cur_pos_tensor": whole(device, [5, 9])}
    assert refusal(lambda: paged(*call, **options)).startswith(f"Device: {text}")


def sizes(call):
    return [size for size, _ in buffers(call)]


def test_what_the_cores_hold(device):
    """Half tiles of 1,024 bytes for 8 heads; 64 keys in two tiles, twice; 32 cores of each user send 31 parts."""
    query, key, value = put(device, "1x2x8x32 tile"), put(device, "2x1x64x32 tile"), put(device, "2x1x64x32 tile")
    half = [1024] * 3
    many = [
        1024,
        4 * 2048,
        4 * 2048,
        2048,
        *half,
        1024,
        2048,
        1024,
        2048,
        1024,
        1024,
        *[1024] * 7,
        1024,
        *half,
        31 * 3 * 1024,
        2048,
    ]
    assert sizes(lambda: attend(query, key, value, cur_pos=[3, 9])) == many
    positions = whole(device, [3, 9])
    assert sizes(lambda: attend(query, key, value, cur_pos_tensor=positions)) == [*many[:7], 32, 32, *many[7:]]
    few = ttnn.SDPAProgramConfig(
        compute_with_storage_grid_size=(2, 1), q_chunk_size=32, k_chunk_size=32, max_cores_per_head_batch=1
    )
    alone = sizes(lambda: attend(query, key, value, cur_pos=[3, 9], program_config=few))
    assert alone == [
        1024,
        2 * 2048,
        2 * 2048,
        1024,
        *half,
        1024,
        2048,
        1024,
        1024,
        1024,
        1024,
        *[1024] * 7,
        1024,
        *half,
        2048,
    ]


REFUSED = [
    (lambda d, q, k: attend(q, k, k, cur_pos=[1, 64]), "cur_pos must be <= K sequence dim"),
    (lambda d, q, k: attend(q, k, k, cur_pos=[1, 2], share_cache=True),
     "Share cache expects K to have batch size of 1, but got 2"),
    (lambda d, q, k: attend(put(d, "1x2x3x32 tile"), k, k, cur_pos=[1, 2]),
     "GQA expects Q to have a multiple of K heads, but got 3 and 2"),
    (lambda d, q, k: attend(put(d, "1x3x4x32 tile"), k, k, cur_pos=[1, 2, 3]),
     "K tensor batch size (2) must equal B (3)"),
    (lambda d, q, k: attend(put(d, "1x2x4x32 tile l1"), k, k, cur_pos=[1, 2]),
     "Q tensor buffer type must be DRAM when not sharded but got BufferType::L1"),
    (lambda d, q, k: attend(put(d, "1x2x4x64 tile"), k, k, cur_pos=[1, 2]),
     "K tensor hidden dimension (32) must equal Q tensor hidden dimension (64)"),
    (lambda d, q, k: attend(q, put(d, "2x2x50x32 tile"), k, cur_pos=[1, 2]),
     "Chunk size must be multiple of 32, but the maximum calculated k_chunk_size is: 2"),
    (lambda d, q, k: attend(put(d, "1x2x68x32 tile"), k, k, cur_pos=[1, 2]),
     "MUL_BCAST_GRANULARITY (6) must be power of 2"),
    (lambda d, q, k: paged(q, k, k, whole(d, [[0], [1]])),
     "Must have cur_pos tensor for paged attention in causal mode"),
    (lambda d, q, k: paged(q, k, k, whole(d, [[0]]), cur_pos_tensor=whole(d, [1, 2])),
     "cur_pos must have batch size equal to Q, got 2 and 1"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_errors_begin_as_those_of_the_real_library(device, call, text):
    query, key = (put(device, words) for words in TENSORS)
    assert refusal(lambda: call(device, query, key)).startswith(f"Device: {text}")


def test_more_cores_of_a_head_than_are_joined_are_refused():
    with ttnn.open_device(spec="blackhole_p150") as device:
        query, key = put(device, "1x1x4x32 tile"), put(device, "1x1x64x32 tile")
        text = refusal(lambda: attend(query, key, key, cur_pos=[1]))
        assert text.startswith("Device: Tree reduction max 6 rounds (64 cores/head), got 130 cores/head")


def test_a_strict_device_refuses_users_without_a_result_and_keys_beside_the_cache():
    with ttnn.open_device(strict=True) as device:
        query, key = (put(device, words) for words in TENSORS)
        for last, text in (([4, -1], "user 1 is left out"), ([64, 3], "user 0 has no key 64")):
            with pytest.raises(ttnn.ArgumentError, match=f"^scaled_dot_product_attention_decode: {text}"):
                attend(query, key, key, cur_pos_tensor=whole(device, last))
        with pytest.raises(ttnn.ArgumentError, match=r"^paged_scaled_dot_product_attention_decode: user 1 .* 3"):
            paged(query, key, key, whole(device, [[0], [2]]), cur_pos_tensor=whole(device, [1, 3]))


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((), "Chunk size must be multiple of 32, but the maximum calculated k_chunk_size is: 2"),
        ((32,), "Chunk size must be multiple of 32, but the maximum calculated k_chunk_size is: 2"),
        ((64, 32), r"K tensor batch size \(64\) must equal B \(5\)"),
        ((5, 1, 48, 32), "Chunk size must be multiple of 32, but the maximum calculated k_chunk_size is: 16"),
    ],
)
def test_keys_of_other_ranks_are_refused_in_the_library_s_words(device, shape, text):
    query, value = put(device, "1x5x1x32 tile"), put(device, "5x1x64x32 tile")
    keys = ttnn.zeros(shape, ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
    with pytest.raises(ttnn.TTSimError, match=f"^{text}"):
        attend(query, keys, value, is_causal=False)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("1x2x8x64", "ROW_MAJOR Q is only supported when Q is HEIGHT_SHARDED in L1; interleaved ROW_MAJOR Q is not"),
        ("1x2x8x64 height/8x64/2", "ROW_MAJOR Q produces a ROW_MAJOR output, which requires a HEIGHT_SHARDED output"),
    ],
)
def test_queries_in_rows_are_refused_in_the_library_s_words(device, query, text):
    call = [put(device, query), *(put(device, f"2x1x128x64 tile {place}") for place in ("dram", "l1"))]
    assert refusal(lambda: attend(*call, cur_pos=[5, 9])).startswith(f"Device: {text}")


HELD = r"cur_pos tensor must hold all positions in its last dim (e.g. [B] or [1, B]), got shape Shape([2, 1])"
FEW = "cur_pos tensor must have at least one position per batch (2), got shape Shape([1])"


@pytest.mark.parametrize(
    ("query", "key", "positions", "text"),
    [
        ("8x64 tile", "2x1x64x64 tile float32", [5, 9], "ShapeBase[] index out of range. 2 not in [-4, 2)"),
        ("1x2x8x64 tile", "1x64x64 tile l1", [5, 9], "Input tensor 1 buffer type must be DRAM but got BufferType::L1"),
        ("1x2x8x64 tile", "2x64x64 tile", [5, 9], "Flash decode expects K and V to have same number of heads, but got"),
        ("1x2x8x64 tile width/64x32/2", "2x1x64x64 tile", [5, 9], "Q tensor memory layout must be HEIGHT_SHARDED when"),
        ("1x2x8x64 tile", "3x1x64x64 tile", [[5], [9]], HELD),
        ("1x2x8x64 tile", "2x1x64x64 tile", [5], FEW),
        ("1x2x8x64 tile", "3x1x64x64 tile", [5], "K tensor batch size (3) must equal B (2)"),
    ],
)
def test_shapes_are_read_in_the_library_s_order(device, query, key, positions, text):
    call = [put(device, words) for words in (query, key, "2x1x64x64 tile")]
    found = refusal(lambda: attend(*call, cur_pos_tensor=whole(device, positions)))
    assert found.startswith(f"Device: {text}")


def test_tables_of_another_rank_are_refused_after_the_keys_that_they_name(device):
    query, key, value = (put(device, words) for words in ("1x2x8x64 tile", "2x1x64x64 tile", "2x1x32x64 tile"))
    call = query, key, value, whole(device, [[[0], [1]]])
    found = refusal(lambda: paged(*call, cur_pos_tensor=whole(device, [5])))
    assert found.startswith("Device: K and V must have same block size")


def test_keys_may_lie_in_shards_in_dram(device):
    query, key, value = [put(device, f"{shape}x64 tile") for shape in ("1x2x8", "2x1x128", "2x1x128")]
    plain = attend(query, key, value, cur_pos=[5, 9]).to_numpy()
    sharded = [put(device, "2x1x128x64 tile height/32x64/8 dram") for _ in "kv"]
    assert np.array_equal(attend(query, *sharded, cur_pos=[5, 9]).to_numpy(), plain)


def test_candidates_are_looked_at_before_the_layout_of_queries(device):
    query, key, value = put(device, "1x2x8x64"), put(device, "2x1x64x64 tile"), put(device, "2x1x64x64 tile")
    options = {"is_causal": False, "spec_multi_pos_tiles": 1}
    found = refusal(lambda: paged(query, key, value, whole(device, [[0], [1]]), **options))
    assert found.startswith("Device: spec_multi_pos_tiles requires is_causal")


def decoded(device, query, kept):
    """The result of queries of 64 columns, of two users, in shards, and its memory."""
    key, value = (put(device, "2x1x64x64 tile", first=first) for first in (3, 5))
    call = ttnn.transformer.scaled_dot_product_attention_decode
    return call(put(device, query), key, value, cur_pos=[5, 60], memory_config=place(kept))


@pytest.mark.parametrize(("heads", "high"), [(8, 32), (40, 64)])
def test_queries_in_rows_have_the_results_of_tiles(device, heads, high):
    kept = f"height/{high}x64/2"
    rows = decoded(device, f"1x2x{heads}x64 rows height/{heads}x64/2", kept)
    assert rows.layout is ttnn.ROW_MAJOR_LAYOUT
    assert np.array_equal(rows.to_numpy(), decoded(device, f"1x2x{heads}x64 tile height/{high}x64/2", kept).to_numpy())


def test_results_in_rows_take_shards_of_whole_tiles(device):
    with pytest.raises(ttnn.DeviceError, match=r"^Cannot set circular buffer size to 4096\. This is larger than"):
        decoded(device, "1x2x8x64 rows height/8x64/2", "height/8x64/2")
