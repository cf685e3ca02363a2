"""Scaled dot product attention: numbers against float64, buffers as recorded, refusals."""

import numpy as np
import pytest

import ttsim as ttnn
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.plan import Operation
from device.spec.device_spec import load_spec
from ops.planners.attention.sdpa import AttentionArguments, plan_attention
from tests.ttsim.api.calls import put

RANDOM = np.random.default_rng(11)


def on(device, *shape):
    numbers = RANDOM.standard_normal(shape)
    return ttnn.from_numpy(numbers, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)


def attention(query, key, value, added):
    query, key, value = (tensor.to_numpy().astype(np.float64) for tensor in (query, key, value))
    share = query.shape[1] // key.shape[1]
    scores = query @ key.repeat(share, 1).swapaxes(2, 3) / np.sqrt(query.shape[-1]) + added
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ value.repeat(share, 1)


@pytest.mark.parametrize("kind", ["causal", "plain", "masked"])
def test_numbers_are_those_of_float64(device, kind):
    query, key, value, mask = on(device, 1, 4, 70, 32), on(device, 1, 2, 70, 32), on(device, 1, 2, 70, 32), None
    added = np.triu(np.full((70, 70), -np.inf), 1) if kind == "causal" else 0.0
    if kind == "masked":
        mask = on(device, 1, 1, 70, 70)
        added = mask.to_numpy().astype(np.float64)
    result = ttnn.transformer.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=kind == "causal"
    ).to_numpy()
    want = attention(query, key, value, added)
    assert np.abs(result - want).max() < 0.01 * np.abs(want).max()


@pytest.mark.parametrize("causal", [True, False])
def test_queries_see_keys_of_a_window(device, causal):
    """The last five keys, or two on either side of the own one."""
    query, key, value = on(device, 1, 4, 70, 32), on(device, 1, 2, 70, 32), on(device, 1, 2, 70, 32)
    behind = np.arange(70)[:, None] - np.arange(70)
    seen = (behind >= 0) & (behind < 5) if causal else np.abs(behind) <= 2
    result = ttnn.transformer.scaled_dot_product_attention(
        query, key, value, is_causal=causal, sliding_window_size=5, output_concat_heads=True
    ).to_numpy()
    want = attention(query, key, value, np.where(seen, 0.0, -np.inf)).transpose(0, 2, 1, 3).reshape(1, 1, 70, 128)
    assert np.abs(result - want).max() < 0.01 * np.abs(want).max()


def test_a_sink_takes_its_share_of_the_weights(device):
    """Without other scores, of 31 keys and a sink of as many weights each takes a 62nd, or a half."""
    query, value = ttnn.zeros((1, 2, 32, 64), ttnn.bfloat16, ttnn.TILE_LAYOUT, device), on(device, 1, 2, 31, 64)
    key = ttnn.zeros((1, 2, 31, 64), ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
    sinks = ttnn.from_numpy(
        np.array([[[[np.log(31)]], [[-1e9]]]]) * 8, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device
    )
    result = ttnn.transformer.scaled_dot_product_attention(query, key, value, is_causal=False, attention_sink=sinks)
    want = value.to_numpy().mean(2, keepdims=True) * np.array([[[[0.5]], [[1.0]]]])
    assert np.abs(result.to_numpy() - want).max() < 0.01 * np.abs(want).max()


@pytest.mark.parametrize(
    ("options", "tiles"),
    [
        ({"causal": False, "chunks": (64, 128)}, [4, 16, 16, 1, 1, 1, 8, 4, 4, 2, 2, 2, 2, 2, 8]),
        ({"causal": False}, [4, 4, 4, 1, 1, 1, 1, 2, 2, 1, 1, 1, 1, 1, 4]),
        ({"causal": True, "chunks": (128, 64)}, [16, 8, 8, 2, 1, 1, 1, 8, 8, 8, 4, 4, 4, 4, 4, 8]),
        (
            {"causal": False, "chunks": (64, 128), "fp32_dest": True},
            [4, 16, 16, 1, 1, 16, 4, 4, 2, 2, 4, 4, 2, 4],
        ),
        (
            {"causal": False, "chunks": (64, 128), "mask": (1, 1, 512, 512)},
            [4, 16, 16, 16, 1, 1, 1, 8, 4, 4, 2, 2, 2, 2, 2, 8],
        ),
        # masks of a window: five tiles; with a 32-bit Dst two chunks of block floats, and a sink for each row of tiles
        (
            {"causal": True, "chunks": (128, 64), "window": 100},
            [16, 8, 8, 5, 1, 1, 1, 8, 8, 8, 4, 4, 4, 4, 4, 8],
        ),
        (
            {"causal": False, "chunks": (64, 128), "window": 100, "fp32_dest": True, "sinks": (1, 8, 1, 1)},
            [4, 16, 16, 16 * 576 / 2048, 2, 1, 1, 16, 4, 4, 2, 2, 4, 4, 2, 4],
        ),
    ],
)
def test_buffers_as_ttnn_planned_them(options, tiles):
    def spec(*shape):
        return TensorSpec(shape, BFLOAT16, Layout.TILE, DRAM_MEMORY_CONFIG)

    options = options | {name: spec(*options[name]) for name in ("mask", "sinks") if name in options}
    tensor = spec(1, 8, 512, 64)
    call = AttentionArguments(query=tensor, key=tensor, value=tensor, **options)
    (step,) = [step for step in plan_attention(call, load_spec("wormhole_n150")).steps if isinstance(step, Operation)]
    assert [buffer.size_bytes / 2048 for buffer in step.circular_buffers] == tiles


@pytest.mark.parametrize(
    ("batch", "heads", "rows", "causal", "held"),
    [
        (2, 12, 64, False, 2),  # 24 chunks on 16 cores, each of one head
        (2, 8, 64, False, 1),
        (1, 12, 128, False, 2),
        (4, 4, 64, True, 1),
        (5, 4, 64, True, 2),
        (1, 1, 128, True, 2),  # two chunks that go together
    ],
)
def test_queries_are_held_twice_if_a_core_has_more_than_one_chunk_of_all(batch, heads, rows, causal, held):
    tensor = TensorSpec((batch, heads, rows, 64), BFLOAT16, Layout.TILE, DRAM_MEMORY_CONFIG)
    call = AttentionArguments(query=tensor, key=tensor, value=tensor, causal=causal, chunks=(64, 64), grid=(4, 4))
    (step,) = [step for step in plan_attention(call, load_spec("wormhole_n150")).steps if isinstance(step, Operation)]
    assert step.circular_buffers[0].size_bytes == held * 4 * 2048


@pytest.mark.parametrize(
    ("shapes", "options", "text"),
    [
        (
            [(1, 2, 64, 32), (1, 2, 32, 32), (1, 2, 32, 32)],
            {},
            "Causal SDPA requires Q and K to have the same sequence",
        ),
        ([(1, 2, 64, 32), (1, 2, 64, 32), (1, 1, 64, 32)], {}, "K and V num_heads must match. Got K: 2, V: 1"),
        (
            [(2, 2, 32, 64), (1, 2, 2, 32, 64), (2, 2, 32, 64)],
            {},
            "Causal SDPA requires Q and K to have the same sequence",
        ),
        ([(1, 2, 64, 16)] * 3, {}, "Padding is not supported on the head_dim dimension"),
        (
            [(1, 3, 64, 32), (1, 2, 64, 32), (1, 2, 64, 32)],
            {},
            "Q num_heads must be >= K num_heads and divisible by K num_heads, and K num_heads must be greater",
        ),
    ],
)
def test_an_error_begins_as_that_of_the_real_library(device, shapes, options, text):
    with pytest.raises(ttnn.DeviceError, match=f"^{text}"):
        ttnn.transformer.scaled_dot_product_attention(*(on(device, *shape) for shape in shapes), **options)


@pytest.mark.parametrize(
    ("sides", "layout", "options", "text"),
    [
        ((2, 2, 1, 1), "TILE", {}, "Attention sink batch dimension must be 1. Got 2"),
        ((1, 3, 1, 1), "TILE", {}, "Attention sink num_heads must match Q num_heads. Got sink: 3, Q: 2"),
        ((1, 2, 32, 1), "TILE", {}, "Attention sink sequence dimension must be 1. Got 32"),
        ((1, 2, 1, 1), "ROW_MAJOR", {}, "Attention sink must be tilized"),
        ((1, 2, 1, 1), "TILE", {"attn_mask": (1, 1, 64, 64), "sliding_window_size": 3, "is_causal": False},
         "sliding_window_size and attn_mask cannot both be present; bake the sliding-window mask into attn_mask."),
    ],
)  # fmt: skip
def test_sinks_and_windows_that_the_real_library_refuses(device, sides, layout, options, text):
    if "attn_mask" in options:
        options = options | {"attn_mask": on(device, *options["attn_mask"])}
    sinks = ttnn.to_layout(on(device, *sides), ttnn.Layout[layout])
    operands = [on(device, 1, 2, 64, 32) for _ in range(3)]
    with pytest.raises(ttnn.DeviceError, match=f"^{text}"):
        ttnn.transformer.scaled_dot_product_attention(*operands, attention_sink=sinks, **options)


def test_shards_are_refused_before_the_rank():
    with ttnn.open_device() as device:
        query, key = (put(device, "1x2x32x64 tile") for _ in range(2))
        value = put(device, "64x64 tile height/32x64/2")
        with pytest.raises(ttnn.DeviceError, match=r"^Operands to SDPA need to be DRAM/L1 interleaved"):
            ttnn.transformer.scaled_dot_product_attention(query, key, value)


def test_block_floats_are_counted_by_their_tiles():
    tensor = TensorSpec((1, 8, 512, 128), BFLOAT8_B, Layout.TILE, DRAM_MEMORY_CONFIG)
    call = AttentionArguments(query=tensor, key=tensor, value=tensor, chunks=(64, 64))
    (step,) = [step for step in plan_attention(call, load_spec("wormhole_n150")).steps if isinstance(step, Operation)]
    assert [buffer.size_bytes / 2048 for buffer in step.circular_buffers][:4] == [8.5, 8.5, 8.5, 2]


@pytest.mark.parametrize(
    ("rows", "chunks", "grid", "tiles"),
    [  # Pairs of chunks of queries meet 3 chunks of keys each; 2 or 3; and too few cores, or too high chunks, for steps
        (128, (32, 64), (8, 8), [4, 8, 8, 96, 2]),
        (128, (32, 96), (8, 8), [4, 12, 12, 2, 1]),
        (512, (128, 256), (8, 8), [16, 48, 48, 128, 2]),
        (512, (128, 512), (8, 8), [16, 64, 64, 96, 2]),
        (128, (32, 64), (9, 7), [4, 8, 8, 2, 1]),
        (512, (160, 32), (8, 8), [20, 4, 4, 2, 1]),
    ],
)
def test_cores_walk_through_keys_in_step_on_blackhole(rows, chunks, grid, tiles):
    """As recorded: tiles of queries, keys, values and a mask; a scratch of 32 bytes for each chunk and one more."""
    tensor = TensorSpec((1, 1, rows, 64), BFLOAT16, Layout.TILE)
    call = AttentionArguments(query=tensor, key=tensor, value=tensor, causal=True, chunks=chunks, grid=grid)
    (step,) = [step for step in plan_attention(call, load_spec("blackhole_p150")).steps if isinstance(step, Operation)]
    sizes = [buffer.size_bytes for buffer in step.circular_buffers[: len(tiles)]]
    assert [size // 2048 if size >= 2048 else size for size in sizes] == tiles
