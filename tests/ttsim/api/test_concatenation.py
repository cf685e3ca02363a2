"""concat as users call it: numbers, device operations, refusals."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.shards import BLOCK, high, in_box, wide
from tests.ttsim.api.captured import captured, operations


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
    result = ttnn.concat([placed(device, array, layout) for array in arrays], axis)
    assert np.array_equal(result.to_numpy(), np.concatenate(arrays, axis))


def test_ragged_rows_go_through_sticks(device):
    tall, short = placed(device, values(1, 1, 40, 32)), placed(device, values(1, 1, 20, 32))
    names, result, _ = captured(lambda: ttnn.concat([tall, short], 2))
    assert names == ["UntilizeWithUnpadding"] * 2 + ["Concat", "TilizeWithValPadding"]
    assert tuple(result.shape) == (1, 1, 60, 32)


@pytest.mark.parametrize("side", [32, 64])
@pytest.mark.parametrize("axis", [0, -1])
def test_vectors_in_tiles_go_through_sticks(device, side, axis):
    """Whole tiles across, too."""
    vectors = [placed(device, values(side)), placed(device, values(side))]
    names, result, _ = captured(lambda: ttnn.concat(vectors, axis))
    assert names == ["UntilizeWithUnpadding"] * 2 + ["Concat", "TilizeWithValPadding"]
    assert np.array_equal(result.to_numpy(), np.concatenate([values(side)] * 2))


@pytest.mark.parametrize(
    ("rows", "error", "first"),
    [(256, ttnn.DeviceError, "bad optional access"), (4096, ttnn.CircularBufferError, "Statically allocated dataflow")],
)
def test_programs_before_a_refusal_are_refused_first(device, rows, error, first):
    """Rows of 7 bfloat16 are turned first: 4,096 rows of the other tensor leave no room for the buffers of that."""
    long, short = in_box(BLOCK, (rows, 32), 4), in_box(BLOCK, (rows // 4, 7), 1, 4)
    arrays = [placed(device, values(1, 1, rows, 128), ttnn.ROW_MAJOR_LAYOUT, long)]
    arrays.append(placed(device, values(1, 1, rows, 7), ttnn.ROW_MAJOR_LAYOUT, short))
    with pytest.raises(error, match=f"^{first}"):
        ttnn.concat(arrays, -1)


def test_shards_are_joined_on_their_cores(device):
    arrays = [values(1, 1, 64, 32), values(1, 1, 64, 64)]
    tensors = [placed(device, array, place=high((32, array.shape[-1]), 2)) for array in arrays]
    place = high((32, 96), 2)
    names, result, _ = captured(lambda: ttnn.concat(tensors, -1, memory_config=place))
    assert (names, result.memory_config()) == (["Concat"], place)
    assert np.array_equal(result.to_numpy(), np.concatenate(arrays, -1))
    assert operations(lambda: ttnn.concat(tensors, -1)) == ["Concat", "ShardedToInterleaved"]


def test_groups_of_shards_are_dealt_in_turn(device):
    arrays = [values(1, 1, 64, 64), values(1, 1, 64, 32)]
    shards = [placed(device, array, place=high((32, array.shape[-1]), 2)) for array in arrays]
    result = ttnn.concat(shards, -1, groups=2).to_numpy()
    assert np.array_equal(result[..., :32], arrays[0][..., :32])
    assert np.array_equal(result[..., 32:48], arrays[1][..., :16])
    whole = ttnn.concat([placed(device, array) for array in arrays], -1, groups=2).to_numpy()
    assert np.array_equal(whole, np.concatenate(arrays, -1))


def test_rows_that_end_unaligned_are_turned_and_turned_back(device):
    arrays = [values(1, 1, 32, 20), values(1, 1, 32, 12)]
    names, result, _ = captured(
        lambda: ttnn.concat([placed(device, array, ttnn.ROW_MAJOR_LAYOUT) for array in arrays], 3)
    )
    assert names == ["Permute", "Permute", "Concat", "Permute"]
    assert np.array_equal(result.to_numpy(), np.concatenate(arrays, 3))


def test_shards_are_gathered_along_axes_that_they_are_cut_on(device):
    arrays = [values(1, 1, 64, 32), values(1, 1, 64, 32, first=3)]
    shards = [placed(device, array, place=high((32, 32), 2)) for array in arrays]
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


@pytest.mark.parametrize("layout", [ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT])
@pytest.mark.parametrize(("sides", "axis"), [((7, 21), 0), ((1, 1), 0), ((32, 32, 5), 0)])
def test_vectors_are_joined(device, layout, sides, axis):
    arrays = [values(side, first=n) for n, side in enumerate(sides)]
    tensors = [placed(device, array, layout) for array in arrays]
    result = ttnn.concat(tensors, axis)
    assert np.array_equal(result.to_numpy(), np.concatenate(arrays))
    assert all(tensor.is_allocated() for tensor in tensors)


@pytest.mark.parametrize("shape", [(38, 24), (3, 38, 24)])
def test_turned_tensors_keep_their_rank(device, shape):
    arrays = [values(*shape), values(*shape, first=7)]
    result = ttnn.concat([placed(device, array, ttnn.ROW_MAJOR_LAYOUT) for array in arrays], -1)
    assert np.array_equal(result.to_numpy(), np.concatenate(arrays, -1))


def test_what_lies_where_the_result_goes_is_not_released(device):
    """The first tensor is gathered in DRAM, where the second lies."""
    arrays = [values(1, 1, 64, 64), values(1, 1, 64, 64, first=7)]
    first = placed(device, arrays[0], ttnn.ROW_MAJOR_LAYOUT, wide((64, 32), 2))
    second = placed(device, arrays[1], ttnn.ROW_MAJOR_LAYOUT)
    names, result, _ = captured(lambda: ttnn.concat([first, second], 3))
    assert (names, second.is_allocated()) == (["ShardedToInterleaved", "Concat"], True)
    assert np.array_equal(result.to_numpy(), np.concatenate(arrays, 3))


@pytest.mark.parametrize("layout", [ttnn.TILE_LAYOUT, ttnn.ROW_MAJOR_LAYOUT])
def test_shards_of_whole_rows_or_tiles_do_not_go_with_interleaved_tensors(device, layout):
    sharded = placed(device, values(1, 1, 64, 64), layout, high((32, 64), 2))
    apart = placed(device, values(1, 1, 64, 64), layout)
    for pair in ([sharded, apart], [apart, sharded]):
        with pytest.raises(ttnn.DeviceError, match=r"^All tensors must be sharded or all must be interleaved"):
            ttnn.concat(pair, 2)
    assert sharded.is_allocated()
    assert apart.is_allocated()


def test_ragged_shards_go_through_rows_that_are_turned(device):
    arrays = [values(288, 33), values(288, 96)]
    tensors = [placed(device, one, place=high((32, width), 64)) for one, width in zip(arrays, (64, 96), strict=True)]
    names, result, _ = captured(lambda: ttnn.concat(tensors, -1))
    assert names == [
        *["UntilizeWithUnpadding"] * 2, *["Transpose"] * 2, *["ShardedToInterleaved"] * 2, "Concat", "Permute",
        "TilizeWithValPadding",
    ]  # fmt: skip
    assert np.array_equal(result.to_numpy(), np.concatenate(arrays, -1))


@pytest.mark.parametrize(
    ("widths", "names"),
    [
        ((32, 32), ["Concat", "InterleavedToSharded"]),
        ((30, 34), ["Permute", "Permute", "Concat", "InterleavedToSharded", "Transpose"]),
    ],
)
def test_rows_are_dealt_to_columns_of_shards_once_they_are_joined(device, widths, names):
    arrays = [values(64, width, first=width) for width in widths]
    tensors = [placed(device, array, ttnn.ROW_MAJOR_LAYOUT) for array in arrays]
    found, result, _ = captured(lambda: ttnn.concat(tensors, 1, memory_config=wide((64, 32), 2)))
    assert (found, result.memory_config()) == (names, wide((64, 32), 2))
    assert np.array_equal(result.to_numpy(), np.concatenate(arrays, 1))


def test_ragged_tiles_for_shards_become_rows(device):
    arrays = [values(64, 30), values(64, 34)]
    found, result, _ = captured(
        lambda: ttnn.concat([placed(device, array) for array in arrays], 1, memory_config=high((32, 64), 2))
    )
    assert found == [
        *["UntilizeWithUnpadding"] * 2, *["Permute"] * 2, "Concat", "Transpose", "TilizeWithValPadding",
    ]  # fmt: skip
    assert np.array_equal(result.to_numpy(), np.concatenate(arrays, 1))


def test_rows_of_shards_that_are_gathered_must_end_aligned(device):
    """150 columns of 2 bytes lie in shards of 32 columns, which are padded to 320 bytes until they are gathered."""
    tensors = [placed(device, values(170, 150), place=wide((192, 32), 5)) for _ in range(2)]
    with pytest.raises(ttnn.DeviceError, match=r"^Current concat implementation requires aligned last dim when"):
        ttnn.concat(tensors, 1)


def test_ragged_block_floats_become_bfloat16(device):
    array = values(64, 40)
    tensor = ttnn.from_torch(array, ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT, device=device)
    result = ttnn.concat([tensor, tensor], 1)
    assert result.dtype == ttnn.bfloat16
    assert np.array_equal(result.to_numpy(), np.concatenate([tensor.to_numpy()] * 2, 1))


def test_shards_of_no_shape_are_refused(device):
    x = ttnn.from_torch(np.ones((1, 1, 1, 32), np.float32), ttnn.bfloat16, device=device)
    with pytest.raises(
        ttnn.DeviceError, match=r"^MemoryConfig must have Shard Spec specified for sharded memory layout"
    ):
        ttnn.concat([x, x], 0, memory_config=ttnn.L1_WIDTH_SHARDED_MEMORY_CONFIG)


TURNED, RAGGED = ["Permute"] * 2, ["UntilizeWithUnpadding"] * 2


@pytest.mark.parametrize(
    ("axis", "layout", "names"),
    [
        (0, ttnn.TILE_LAYOUT, ["Concat"]),
        (-3, ttnn.TILE_LAYOUT, ["Concat"]),
        (1, ttnn.TILE_LAYOUT, ["ReshapeView"] * 2 + RAGGED + ["Concat", "TilizeWithValPadding"]),
        (-1, ttnn.TILE_LAYOUT, ["ReshapeView"] * 2 + ["Concat"]),
        (1, ttnn.ROW_MAJOR_LAYOUT, ["Concat"]),
        (2, ttnn.ROW_MAJOR_LAYOUT, ["ReshapeView"] * 2 + TURNED + ["Concat", "Permute"]),
    ],
)
def test_tensors_are_stacked_along_a_new_axis(device, axis, layout, names):
    """As the real library plans them: each is unsqueezed, then all are concatenated."""
    arrays = [values(32, 64), values(32, 64, first=7)]
    tensors = [placed(device, array, layout) for array in arrays]
    found, result, _ = captured(lambda: ttnn.stack(tensors, axis))
    assert found == names
    assert np.array_equal(result.to_numpy(), np.stack(arrays, axis))


@pytest.mark.parametrize(
    ("shapes", "axis", "error", "first"),
    [
        ([], 0, ttnn.DeviceError, "Stack expects at least one tensor"),
        ([(32, 64), (64, 64)], 0, ttnn.DeviceError, "All dimensions must be the same size"),
        ([(32, 64)], 3, ttnn.DeviceError, "Dimension out of range"),
        ([(32, 64)], -4, ttnn.DeviceError, "Dimension out of range"),
        ([None], 0, TypeError, "stack: input_tensors must be a sequence of tensors"),
    ],
)
def test_what_does_not_stack_is_refused(device, shapes, axis, error, first):
    tensors = [shape and placed(device, values(*shape)) for shape in shapes]
    with pytest.raises(error, match=f"^{first}"):
        ttnn.stack(tensors, axis)
