"""Rows written into blocks of a cache: numbers by hand, buffers and errors as ttnn 0.81.1 has them."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.ttsim.api.calls import captured, put, put_all, refusal
from ttsim.graph import RunMode

update, fill = ttnn.experimental.paged_update_cache, ttnn.experimental.paged_fill_cache
ROWS = "1x2x3x64 tile height/32x64/2"  # three heads of two users


def whole(device, numbers):
    return ttnn.from_numpy(np.array(numbers), ttnn.int32, device=device)


def held(call):
    """Sizes of the dataflow buffers of a call, which are shown without dispatch."""
    kind = "dataflow_buffer_allocate"
    return [int(node["params"]["size"]) for node in captured(call, RunMode.NO_DISPATCH)[2] if node["node_type"] == kind]


@pytest.mark.parametrize("by_tensor", [False, True])
def test_a_row_of_every_user(device, by_tensor):
    cache, keys = put_all(device, f"2x3x64x64 tile + {ROWS}")
    wanted = cache.to_numpy()
    wanted[0, :, 40], wanted[1, :, 2] = keys.to_numpy()[0]
    rows = {"update_idxs_tensor": whole(device, [40, 2])} if by_tensor else {"update_idxs": [40, 2]}
    assert update(cache, keys, **rows) is cache
    assert np.array_equal(cache.to_numpy(), wanted)


def test_a_row_of_minus_one_is_left_out(device):
    cache, keys = put_all(device, f"2x3x64x64 tile + {ROWS}")
    wanted = cache.to_numpy()
    wanted[1, :, 2] = keys.to_numpy()[0, 1]
    assert np.array_equal(update(cache, keys, update_idxs_tensor=whole(device, [-1, 2])).to_numpy(), wanted)


def test_users_share_one_cache(device):
    cache, keys = put_all(device, f"1x3x64x64 tile + {ROWS}")
    wanted = cache.to_numpy()
    wanted[0, :, [4, 5]] = keys.to_numpy()[0]
    assert np.array_equal(update(cache, keys, update_idxs=[4, 5], share_cache=True).to_numpy(), wanted)


def test_a_row_lies_in_the_block_that_the_table_names(device):
    """Row 70 of user 0 is row 6 of its third block of 32 rows, block 5; row 33 of user 1 is row 1 of block 0."""
    cache, keys = put_all(device, f"6x3x32x64 tile + {ROWS}")
    wanted = cache.to_numpy()
    wanted[5, :, 6], wanted[0, :, 1] = keys.to_numpy()[0]
    table = whole(device, [[1, 2, 5], [4, 0, 3]])
    update(cache, keys, update_idxs_tensor=whole(device, [70, 33]), page_table=table)
    assert np.array_equal(cache.to_numpy(), wanted)


@pytest.mark.parametrize("by_tensor", [False, True])
def test_rows_of_a_user_fill_its_blocks(device, by_tensor):
    """70 rows fill 96 with their padding: block 4, one that is left out, and block 3."""
    cache, keys = put_all(device, "6x3x32x64 tile + 1x3x70x64 tile")
    wanted, rows = cache.to_numpy(), keys.to_numpy()[0]
    wanted[4], wanted[3] = rows[:, :32], np.pad(rows[:, 64:], ((0, 0), (0, 26), (0, 0)))
    user = {"batch_idx_tensor": whole(device, [1])} if by_tensor else {"batch_idx": 1}
    assert fill(cache, keys, whole(device, [[1, 2, 5], [4, -1, 3]]), **user) is cache
    assert np.array_equal(cache.to_numpy(), wanted)


def test_rows_begin_again_in_a_cache_of_the_last_ones(device):
    """160 rows in two blocks of 32, 5 and 1: the last 32 rows fill block 5 and the 32 before them block 1."""
    cache, keys = put_all(device, "6x3x32x64 tile + 1x3x160x64 tile")
    wanted, rows = cache.to_numpy(), keys.to_numpy()[0]
    wanted[5], wanted[1] = rows[:, 128:], rows[:, 96:128]
    table = whole(device, [[5, 1, 2]])
    assert np.array_equal(fill(cache, keys, table, cache_position_modulo=64).to_numpy(), wanted)
    few = put(device, ROWS)
    wanted[1, :, 6], wanted[0, :, 1] = few.to_numpy()[0]
    table, last = whole(device, [[5, 1, 2], [4, 0, 3]]), whole(device, [102, 97])
    update(cache, few, update_idxs_tensor=last, page_table=table, cache_position_modulo=64)
    assert np.array_equal(cache.to_numpy(), wanted)


def test_rows_wider_than_those_of_the_cache(device):
    """Buffers of four tiles of float32 rows, whose numbers are not calculated."""
    cache, keys = put_all(device, f"2x3x64x64 tile + {ROWS.replace('tile', 'tile float32')}")
    sizes = held(lambda: update(cache, keys, update_idxs=[40, 2]))
    assert sizes == [4 * 2048, 2 * 4096, 4 * 2048, 4 * 2048, 4 * 2048]
    assert refusal(lambda: update(cache, keys, update_idxs=[40, 2])).startswith("NotSimulated: paged_update_cache")


def test_what_the_cores_hold(device):
    """Two rows of two tiles of the cache, a shard, both as elements, changed ones of two users; indices; blocks."""
    cache, keys, few = put_all(device, f"6x3x32x64 tile + {ROWS} + 1x3x70x64 tile")
    table, rows = whole(device, [[1, 2, 5], [4, 0, 3]]), whole(device, [70, 33])
    sizes = held(lambda: update(cache, keys, update_idxs_tensor=rows, page_table=table))
    assert sizes == [4 * 2048, 2 * 2048, 4 * 2048, 4 * 2048, 4 * 2048, 4096, 3 * 4]
    assert held(lambda: fill(cache, few, table)) == [4 * 2048, 32]
    assert held(lambda: fill(cache, few, table, batch_idx_tensor=whole(device, [1]))) == [4 * 2048, 32, 4]


REFUSED = [
    (lambda d, c, k: update(c, k), "Only an update tensor or an update vector can be provided. Not both or neither."),
    (lambda d, c, k: update(c, k, update_idxs=[1]), "Number of update_idxs (1) should match batch size (2)"),
    (lambda d, c, k: update(c, k, update_idxs=[1, 2], batch_offset=1), "batch_offset must be 0"),
    (lambda d, c, k: update(c, k, update_idxs=[1, 2], share_cache=True), "Share cache feature expects cache tensor to"),
    (lambda d, c, k: update(c, ttnn.to_memory_config(k, ttnn.DRAM_MEMORY_CONFIG), update_idxs=[1, 2]),
     "Expect input_tensor to be sharded"),
    (lambda d, c, k: update(c, put(d, "1x2x3x64 tile height/64x64/1"), update_idxs=[1, 2]),
     "Input tensor shard grid must have num_cores (1) equal to the number of users / batch (2)."),
    (lambda d, c, k: update(put(d, "3x3x64x64 tile"), k, update_idxs=[1, 2]), "Expect batch in input tensor match the"),
    (lambda d, c, k: update(c, k, update_idxs_tensor=whole(d, [1, 2]), page_table=whole(d, [[0, 1, 0], [0, 1, 1]])),
     "max_num_blocks_per_seq must be less than max_num_blocks: max_num_blocks_per_seq=3, max_num_blocks=2"),
    (lambda d, c, k: fill(c, put(d, "1x2x64x64 tile"), whole(d, [[0, 1]])), "paged_fill_cache geometry mismatch: cache "
     "has 12288 elems/block (kv_heads=3, block_size=64, head_dim=64) but input view is 8192 (kv_heads=2"),
    (lambda d, c, k: fill(c, put(d, "1x3x160x64 tile"), whole(d, [[0, 1]])),
     "Input seq_len (160) must fit in max_num_blocks_per_seq (2) * block_size (64)"),
    (lambda d, c, k: fill(c, put(d, "1x3x64x64 tile bfloat8_b"), whole(d, [[0, 1]])), "Input tensor dtype "
     "(DataType::BFLOAT8_B) must match cache tensor dtype (DataType::BFLOAT16) for paged_fill_cache;"),
    (lambda d, c, k: fill(c, put(d, "1x3x64x64 tile"), whole(d, [[0, 1]]), batch_idx=1),
     "Batch idx must be within the page_table batch size"),
    (lambda d, c, k: fill(c, put(d, "1x3x64x64 tile"), whole(d, [[0, 1]]), batch_idx=1, batch_idx_tensor=whole(d, [0])),
     "Batch idx must be within the page_table batch size"),
    (lambda d, c, k: fill(c, put(d, "1x3x64x64 tile"), whole(d, [[0, 1]]), batch_idx_tensor=whole(d, [0, 0])),
     "Batch idx tensor must have input_tensor batch dim (1) elements, got 2"),
    (lambda d, c, k: fill(c, put(d, "1x3x64x64 tile"), whole(d, [[0, 1]]), block_size=32), "paged_fill_cache geometry "
     "mismatch: cache has 12288 elems/block (kv_heads=3, block_size=64, head_dim=64) but input view is 6144 ("),
    (lambda d, c, k: fill(c, put(d, "1x3x64x64 tile"), whole(d, [[0, 1]]), cache_position_modulo=32),
     "cache_position_modulo (32) must be a positive multiple of effective block_size (64); otherwise"),
    (lambda d, c, k: fill(c, put(d, "1x3x64x64 tile"), whole(d, [[0, 1]]), valid_seq_len_tensor=whole(d, [64])),
     "valid_seq_len tensor is only supported when cache_position_modulo is set (bounded fill)"),
    (lambda d, c, k: fill(c, put(d, "2x3x64x64 tile"),
                          ttnn.to_memory_config(whole(d, [[0, 1]]), ttnn.L1_MEMORY_CONFIG)),
     "page table page size in bytes must be a multiple of 32 due to address alignment"),
    (lambda d, c, k: update(c, k, update_idxs=[1, 2], num_kv_heads=3),
     "num_kv_heads_override is only supported in paged mode (when page_table is provided)"),
    (lambda d, c, k: update(c, k, update_idxs_tensor=whole(d, [1, 2]), page_table=whole(d, [[0], [1]]),
                            cache_position_modulo=128),
     "cache_position_modulo (128) must fit in max_num_blocks_per_seq (1) * block_size (64)"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_errors_begin_as_those_of_the_real_library(device, call, text):
    cache, keys = put_all(device, f"2x3x64x64 tile + {ROWS}")
    assert refusal(lambda: call(device, cache, keys)).startswith(f"Device: {text}")


def test_a_strict_device_refuses_rows_and_blocks_that_there_are_not_and_cores_that_write_at_once():
    with ttnn.open_device(strict=True) as device:
        cache, keys = put_all(device, f"2x3x64x64 tile + {ROWS}")
        full, rows = put(device, "1x3x64x64 tile"), whole(device, [1, 31])
        for call, text in (
            (lambda: update(cache, keys, update_idxs=[1, 64]), "user 1 has no row 64, but 1 blocks of 64 rows"),
            (lambda: update(cache, keys, update_idxs_tensor=rows, page_table=whole(device, [[0], [2]])),
             "the cache has 2 blocks, and not block 2"),
            (lambda: update(cache, keys, update_idxs_tensor=rows, page_table=whole(device, [[1], [1]])),
             "several cores write into the same row of tiles at once"),
            (lambda: fill(cache, full, whole(device, [[3]])), "the cache has 2 blocks, and not block 3"),
            (lambda: fill(cache, full, whole(device, [[1]]), batch_idx_tensor=whole(device, [1])),
             "a table of 1 users does not have all of [1]"),
        ):  # fmt: skip
            with pytest.raises(ttnn.ArgumentError, match=f"^paged_(update|fill)_cache: {text}".replace("[", r"\[")):
                call()


def test_rows_fill_a_cache_of_as_many_tiles(device):
    """Of 32 columns the cache has 17; its padding takes the others."""
    cache = ttnn.zeros((2, 1, 32, 17), ttnn.bfloat16, ttnn.TILE_LAYOUT, device)
    fill(cache, ttnn.ones((1, 1, 32, 32), ttnn.bfloat16, ttnn.TILE_LAYOUT, device), whole(device, [[1]]))
    assert cache.to_numpy().sum(axis=(1, 2, 3)).tolist() == [0.0, 32 * 17]
