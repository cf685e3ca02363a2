"""concat as users call it: numbers, device operations, refusals."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.shards import high
from tests.ttsim.functions.captured import captured, operations


def values(*shape, first=0):
    return (np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + first) % 251


def placed(device, array, layout=ttnn.TILE_LAYOUT, place=None):
    return ttnn.from_torch(array, ttnn.bfloat16, layout=layout, device=device, memory_config=place)


@pytest.mark.parametrize(("axis", "sides"), [(3, (32, 64)), (-1, (20, 40)), (2, (32, 64)), (1, (2, 1)), (0, (1, 3))])
@pytest.mark.parametrize("layout", [ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT])
def test_tensors_lie_one_behind_the_other(device, axis, sides, layout):
    shapes = [[2, 2, 32, 32] for _ in sides]
    for shape, side in zip(shapes, sides, strict=True):
        shape[axis] = side
    arrays = [values(*shape, first=n) for n, shape in enumerate(shapes)]
    result = ttnn.concat([placed(device, one, layout) for one in arrays], axis)
    assert np.array_equal(result.to_numpy(), np.concatenate(arrays, axis))


def test_ragged_rows_go_through_sticks(device):
    tall, short = placed(device, values(1, 1, 40, 32)), placed(device, values(1, 1, 20, 32))
    names, result, _ = captured(lambda: ttnn.concat([tall, short], 2))
    assert names == ["UntilizeWithUnpadding"] * 2 + ["Concat", "TilizeWithValPadding"]
    assert tuple(result.shape) == (1, 1, 60, 32)


def test_shards_are_joined_on_their_cores(device):
    arrays = [values(1, 1, 64, 32), values(1, 1, 64, 64)]
    tensors = [placed(device, one, place=high((32, one.shape[-1]), 2)) for one in arrays]
    place = high((32, 96), 2)
    names, result, _ = captured(lambda: ttnn.concat(tensors, -1, memory_config=place))
    assert (names, result.memory_config()) == (["Concat"], place)
    assert np.array_equal(result.to_numpy(), np.concatenate(arrays, -1))
    assert operations(lambda: ttnn.concat(tensors, -1)) == ["Concat", "ShardedToInterleaved"]


def test_groups_of_shards_are_dealt_in_turn(device):
    arrays = [values(1, 1, 64, 64), values(1, 1, 64, 32)]
    shards = [placed(device, one, place=high((32, one.shape[-1]), 2)) for one in arrays]
    result = ttnn.concat(shards, -1, groups=2).to_numpy()
    assert np.array_equal(result[..., :32], arrays[0][..., :32])
    assert np.array_equal(result[..., 32:48], arrays[1][..., :16])
    whole = ttnn.concat([placed(device, one) for one in arrays], -1, groups=2).to_numpy()
    assert np.array_equal(whole, np.concatenate(arrays, -1))


def test_rows_that_end_unaligned_are_turned_and_turned_back(device):
    arrays = [values(1, 1, 32, 20), values(1, 1, 32, 12)]
    names, result, _ = captured(lambda: ttnn.concat([placed(device, one, ttnn.ROW_MAJOR_LAYOUT) for one in arrays], 3))
    assert names == ["Permute", "Permute", "Concat", "Permute"]
    assert np.array_equal(result.to_numpy(), np.concatenate(arrays, 3))


def test_shards_are_gathered_along_axes_that_they_are_cut_on(device):
    arrays = [values(1, 1, 64, 32), values(1, 1, 64, 32, first=3)]
    shards = [placed(device, one, place=high((32, 32), 2)) for one in arrays]
    names, result, _ = captured(lambda: ttnn.concat(shards, 2))
    assert names == ["ShardedToInterleaved", "ShardedToInterleaved", "Concat"]
    assert np.array_equal(result.to_numpy(), np.concatenate(arrays, 2))


def test_what_does_not_go_together_is_refused(device):
    wide, narrow = placed(device, values(1, 1, 32, 64)), placed(device, values(1, 1, 32, 32))
    with pytest.raises(ttnn.DeviceError, match=r"^All dimensions must be the same size except"):
        ttnn.concat([wide, narrow], 2)
    with pytest.raises(ttnn.ArgumentTypeError, match="must be a sequence of tensors"):
        ttnn.concat(wide, 2)
    with pytest.raises(ttnn.ArgumentError, match="not simulated"):
        ttnn.concat([wide, narrow], 3, output_tensor=wide)
