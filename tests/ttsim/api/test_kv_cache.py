"""Rows written into a cache of keys: numbers by numpy, buffers and errors as ttnn 0.81.1 has them."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.build import place
from tests.ttsim.api.calls import captured, put, put_all, refusal
from ttsim.graph import RunMode


def held(call):
    """Sizes of the dataflow buffers of a call, which are shown without dispatch."""
    kind = "dataflow_buffer_allocate"
    return [int(node["params"]["size"]) for node in captured(call, RunMode.NO_DISPATCH)[2] if node["node_type"] == kind]


@pytest.mark.parametrize("words", ["", "bfloat8_b", "float32"])
def test_rows_of_one_user(device, words):
    cache, keys = put_all(device, f"2x3x96x64 tile {words} + 1x3x32x64 tile {words}")
    wanted = cache.to_numpy()
    wanted[1, :, 64:] = keys.to_numpy()[0]
    assert ttnn.fill_cache(cache, keys, 1, update_idx=64) is cache
    assert np.array_equal(cache.to_numpy(), wanted)


@pytest.mark.parametrize(("first", "words"), [(0, "32x64/3"), (7, "")])
def test_one_row_of_every_user(device, first, words):
    shards = place(f"height/{words}") if words else ttnn.DRAM_MEMORY_CONFIG
    cache, keys = put_all(device, "2x3x96x64 tile + 1x3x32x64 tile")
    keys, wanted = ttnn.to_memory_config(keys, shards), cache.to_numpy()
    wanted[:, :, 40] = keys.to_numpy()[0, :, first : first + 2].swapaxes(0, 1)
    ttnn.update_cache(cache, keys, update_idx=40, batch_offset=first)
    assert np.array_equal(cache.to_numpy(), wanted)


def test_names_of_the_module_write_the_same(device):
    cache, keys = put_all(device, "2x3x96x64 tile + 1x3x32x64 tile")
    wanted = cache.to_numpy()
    wanted[1, :, 32:64], wanted[:, :, 5] = keys.to_numpy()[0], keys.to_numpy()[0, :, 3:5].swapaxes(0, 1)
    assert ttnn.kv_cache.fill_cache_for_user_(cache, keys, 1, update_idx=32) is cache
    assert ttnn.kv_cache.update_cache_for_token_(cache, keys, 5, 3) is cache
    assert np.array_equal(cache.to_numpy(), wanted)


@pytest.mark.parametrize(
    ("users", "words", "tiles"),
    [
        (8, "", [8, 4, 8, 8, 64]),  # two users' rows of two tiles, twice; 32 rows of tiles that were changed
        (7, "", [4, 4, 4, 4, 64]),
        (8, "float32", [16, 4, 16, 4, 128]),
    ],
)
def test_what_the_cores_hold(device, users, words, tiles):
    cache, keys = put_all(device, f"{users}x2x96x64 tile {words} + 1x2x32x64 tile {words}")
    assert held(lambda: ttnn.update_cache(cache, keys, 3)) == [2048 * count for count in tiles]
    assert held(lambda: ttnn.fill_cache(cache, keys, 3)) == [2 * 2048 * (2 if words else 1)]


def test_a_row_behind_a_head_is_one_of_the_next_and_is_refused_by_a_strict_device():
    for strict in (True, False):
        with ttnn.open_device(strict=strict) as device:
            cache, keys = put_all(device, "2x1x32x32 tile + 1x1x2x32 tile")
            if strict:
                with pytest.raises(ttnn.ArgumentError, match="update_cache: the cache has 32 rows; the real library"):
                    ttnn.update_cache(cache, keys, 33)
            else:
                wanted = cache.to_numpy()
                wanted[1, 0, 1] = keys.to_numpy()[0, 0, 0]
                assert np.array_equal(ttnn.update_cache(cache, keys, 33).to_numpy(), wanted)


CACHE = "4x1x160x64 tile"
REFUSED = [
    (f"{CACHE} + 1x1x96x64 tile", (4,), "Batch index (4) must be less than cache tensor batch size (4)"),
    (f"{CACHE} + 1x1x96x64 tile", (1, 5), "Fill update_idx (5) must be a multiple of TILE_HEIGHT (32)"),
    (f"{CACHE} + 1x1x96x64 tile", (1, 96), "Fill update_idx (96) + input tensor height (96) must be <= cache tensor "
     "height (160)"),
    (f"{CACHE} + 1x1x96x64 tile bfloat8_b", (1,), "Input and cache tensors must have same dtype!"),
    (f"{CACHE} + 1x2x96x64 tile", (1,), "Input tensor height (2) must equal cache tensor height (1)"),
    (f"{CACHE} + 2x1x1x96x64 tile", (1,), "Input tensor batch size must be 1 but got 2"),
    (f"{CACHE} + 1x1x96x64 rows", (1,), "Inputs to update_cache must be tilized"),
    (f"{CACHE} + 1x1x96x64 tile height/64x64/2", (1,), "Seq len must be divisible by shard height!"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "numbers", "text"), REFUSED)
def test_errors_begin_as_those_of_the_real_library(device, words, numbers, text):
    cache, keys = put_all(device, words)
    user, *row = numbers
    named = {"update_idx": row[0]} if row else {}
    assert refusal(lambda: ttnn.fill_cache(cache, keys, user, **named)).startswith(f"Device: {text}")


def test_users_and_rows_that_do_not_fit(device):
    cache, keys = put_all(device, "32x1x32x32 tile + 1x1x32x32 tile")
    few = put(device, "8x1x32x32 tile")
    for call, text in (
        (
            lambda: ttnn.update_cache(cache, keys, 3, batch_offset=2),
            "Device: Batch offset must be 0 when cache tensor batch size",
        ),
        (
            lambda: ttnn.update_cache(few, keys, 3, batch_offset=25),
            "Device: Batch offset (25) + cache tensor batch size (8) must",
        ),
        (lambda: ttnn.update_cache(few, keys, -1), "ArgumentType: ttnn.update_cache(): incompatible function"),
    ):
        assert refusal(call).startswith(text)


def test_a_cache_takes_rows_of_as_many_tiles(device):
    """Of 32 columns the cache has 17; its padding takes the others."""
    keys = ttnn.ones((1, 1, 32, 32), ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
    for call, rows in (
        (lambda cache: ttnn.fill_cache(cache, keys, 1), 32),
        (lambda c: ttnn.update_cache(c, keys, 3), 1),
    ):
        cache = ttnn.zeros((2, 1, 32, 17), ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
        call(cache)
        assert cache.to_numpy()[1].sum() == 17 * rows


def test_the_row_has_the_name_of_the_library_s_signature(device):
    cache, keys = put_all(device, "32x1x32x32 tile + 1x1x32x32 tile")
    wanted = cache.to_numpy()
    wanted[:, 0, 5] = keys.to_numpy()[0, 0]
    assert np.array_equal(ttnn.update_cache(cache, keys, update_idx=5).to_numpy(), wanted)
    with pytest.raises(TypeError):
        ttnn.update_cache(cache, keys, update_index=5)


def test_rows_of_caches_of_more_axes_are_estimated():
    with ttnn.open_device(values="off") as device:
        cache, keys = (
            ttnn.zeros(shape, layout=ttnn.TILE_LAYOUT, device=device) for shape in ((1, 2, 2, 64, 32), (1, 2, 32, 32))
        )
        response = ttnn.graph.query_op_runtime(lambda *tensors: ttnn.update_cache(*tensors, 5), device, cache, keys)
    assert response.error_message is None
    assert response.runtime > 0
