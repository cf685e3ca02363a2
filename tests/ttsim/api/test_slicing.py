"""Boxes of tensors, by ttnn.slice and by an index."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.shards import BLOCK, high, in_box

IMAGE = np.arange(2 * 3 * 40 * 64, dtype=np.float32).reshape(2, 3, 40, 64) % 251
L1 = ttnn.L1_MEMORY_CONFIG


def placed(device, layout=ttnn.ROW_MAJOR_LAYOUT, place=None, dtype=ttnn.bfloat16):
    return ttnn.from_torch(IMAGE, dtype, layout=layout, device=device, memory_config=place)


@pytest.mark.parametrize("layout", [ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT])
@pytest.mark.parametrize(
    "index",
    [
        np.s_[..., 32:64],
        np.s_[:, 1:, 3:17],
        np.s_[0],
        np.s_[1, ..., 5],
        np.s_[:, :, ::2, 1::3],
        np.s_[..., -7:-2],
        np.s_[:],
    ],
)
def test_an_index_names_a_box(device, layout, index):
    part = placed(device, layout)[index]
    assert part.layout is layout
    assert np.array_equal(part.to_numpy(), IMAGE[index])
    assert np.array_equal(ttnn.from_torch(IMAGE, ttnn.bfloat16, layout=layout)[..., 3:5].to_numpy(), IMAGE[..., 3:5])


def test_steps_have_names(device):
    tensor = placed(device)
    wanted = IMAGE[:, :, ::2]
    assert np.array_equal(ttnn.slice(tensor, [0] * 4, IMAGE.shape, [1, 1, 2, 1]).to_numpy(), wanted)
    named = ttnn.slice(tensor, starts=(0,) * 4, ends=IMAGE.shape, steps=(1, 1, 2, 1), memory_config=L1)
    assert named.memory_config().buffer_type is ttnn.BufferType.L1
    assert np.array_equal(named.to_numpy(), wanted)


def test_block_floats_that_begin_within_tiles_become_bfloat16(device):
    tensor = placed(device, ttnn.TILE_LAYOUT, dtype=ttnn.bfloat8_b)
    assert tensor[..., 32:].dtype is ttnn.bfloat8_b
    assert tensor[..., 31:].dtype is ttnn.bfloat16
    with pytest.raises(ttnn.DeviceError, match=r"^Strided slice is not supported for BFLOAT8 tensors"):
        tensor[..., ::2]


def test_shards_shrink_on_their_cores(device):
    part = placed(device, place=high((120, 64), 2))[:, :, 8:22]
    assert part.memory_config().shard_spec.shape == [42, 64]  # 2 * 3 * 14 rows on two cores
    assert np.array_equal(part.to_numpy(), IMAGE[:, :, 8:22])


def test_what_is_refused(device):
    tensor = placed(device)
    with pytest.raises(ttnn.DeviceError, match=r"^Input rank 4 and begins 3 must have the same size"):
        ttnn.slice(tensor, [0, 0, 0], [1, 1, 1])
    with pytest.raises(ttnn.DeviceError, match=r"^Ends 41 must be less than or equal to the shape of the tensor 40"):
        tensor[:, :, :41]
    with pytest.raises(ttnn.DeviceError, match=r"^End 3 must be greater than or equal to start 5"):
        tensor[:, :, 5:3]
    with pytest.raises(ttnn.DeviceError, match=r"^Step\(2\) = 0 should be positive"):
        tensor[:, :, ::0]
    with pytest.raises(ttnn.ArgumentError, match="axis 2 has no element from 5 to 5"):
        tensor[:, :, 5:5]
    with pytest.raises(ttnn.ArgumentTypeError, match="slice_end must be a sequence of integers"):
        ttnn.slice(tensor, [0, 0, 0, 0], 3)
    with pytest.raises(ttnn.ArgumentError, match=r"pad_value is not simulated"):
        ttnn.slice(tensor, [0] * 4, [1] * 4, pad_value=1.0)
    with pytest.raises(ttnn.DeviceError, match=r"^Host tensors cannot be accessed with non-unit stride"):
        ttnn.from_torch(IMAGE)[:, :, ::2]


def test_a_loop_over_a_tensor_ends(device):
    assert [part.to_numpy()[0, 0, 0] for part in placed(device)] == [IMAGE[0, 0, 0, 0], IMAGE[1, 0, 0, 0]]


def test_tiles_that_do_not_become_rows_are_refused_before_the_box(device):
    """Two images of seven rows in BLOCK shards: both programs refuse, and the one that makes rows comes first."""
    place = in_box(BLOCK, (32, 32), 3, 2)
    x = ttnn.from_torch(np.zeros((1, 2, 7, 76), np.float32), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    sharded = ttnn.to_memory_config(x, place)
    with pytest.raises(ttnn.DeviceError, match=r"^Can only write unbatched output for BLOCK_SHARDED -> BLOCK_SHARDED"):
        ttnn.slice(sharded, [0, 1, 2, 10], [1, 2, 7, 29])


def test_vectors_in_high_shards_are_not_cut(device):
    x = ttnn.from_torch(np.zeros(64, np.float32), ttnn.bfloat16, device=device, memory_config=high((1, 64), 2))
    with pytest.raises(ttnn.DeviceError, match=r"^Shard shape must be 1D for 1D tensor!"):
        ttnn.slice(x, [0], [10])


def test_boxes_narrower_than_the_shards_asked_for(device):
    rows = placed(device)
    with pytest.raises(
        ttnn.DeviceError, match=r"^For valid non-interleaved buffers page size 42 must equal buffer size"
    ):
        ttnn.slice(rows, [0, 0, 0, 0], [1, 1, 1, 21], memory_config=high((1, 64), 1))
    tiles = ttnn.from_torch(np.zeros((64, 2), np.float32), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    with pytest.raises(
        ttnn.DeviceError, match=r"^Input row-major shard width 2 gives page size 4 bytes, which must be"
    ):
        ttnn.slice(tiles, [10, 0], [20, 2], memory_config=high((64, 32), 1))
