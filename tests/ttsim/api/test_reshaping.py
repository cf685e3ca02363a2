"""ttnn.reshape, squeeze and unsqueeze as users call them."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.shards import BLOCK, box, high, in_box, wide

IMAGE = np.arange(2 * 3 * 40 * 64, dtype=np.float32).reshape(2, 3, 40, 64) % 251


@pytest.mark.parametrize("layout", [ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT])
@pytest.mark.parametrize("shape", [(6, 40, 64), (1, 1, 240, 64), (2, 3, 64, 40), (1, -1, 96), (15360,)])
def test_the_same_elements_in_order(device, layout, shape):
    if layout is ttnn.TILE_LAYOUT and len(shape) == 1:
        pytest.skip("tiles have two axes")
    tensor = ttnn.from_torch(IMAGE, ttnn.bfloat16, layout=layout, device=device)
    assert np.array_equal(ttnn.reshape(tensor, shape).to_numpy(), IMAGE.reshape(shape))


def test_a_view_shares_its_buffer(device):
    tensor = ttnn.from_torch(IMAGE, ttnn.bfloat16, device=device)
    seen = ttnn.reshape(tensor, (6, 40, 64))
    assert seen.buffer_address() == tensor.buffer_address()
    assert ttnn.reshape(tensor, IMAGE.shape) is tensor
    moved = ttnn.reshape(tensor, (6, 64, 40), memory_config=ttnn.L1_MEMORY_CONFIG)
    assert moved.memory_config().buffer_type is ttnn.BufferType.L1
    ttnn.deallocate(tensor)
    assert not seen.is_allocated()


def test_sides_of_one(device):
    tensor = ttnn.from_torch(IMAGE[:1], ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    assert ttnn.squeeze(tensor, 0).shape == [3, 40, 64]
    assert np.array_equal(ttnn.unsqueeze(tensor, -1).to_numpy(), IMAGE[:1, ..., None])
    assert ttnn.unsqueeze_to_4D(ttnn.squeeze(tensor)).shape == [1, 3, 40, 64]


@pytest.mark.parametrize(
    ("sides", "place"),
    [
        ((384,), in_box(ttnn.TensorMemoryLayout.WIDTH_SHARDED, (1, 77), 5)),
        ((64, 100), in_box(BLOCK, (32, 40), 3, 2)),
        ((2, 32, 100), in_box(BLOCK, (32, 40), 3, 2)),
    ],
)
def test_four_axes_keep_the_padding_of_uneven_shards(device, sides, place):
    """ttnn.unsqueeze_to_4D sees the shape and the padded shape anew, where ttnn.reshape refuses other rows."""
    values = np.arange(np.prod(sides), dtype=np.float32).reshape(sides) % 251
    tensor = ttnn.from_torch(values, ttnn.bfloat16, layout=ttnn.ROW_MAJOR_LAYOUT, device=device, memory_config=place)
    seen = ttnn.unsqueeze_to_4D(tensor)
    assert seen.shape == [1] * (4 - len(sides)) + list(sides)
    assert seen.padded_shape == [1] * (4 - len(sides)) + [*sides[:-1], tensor.padded_shape[-1]]
    assert seen.padded_shape[-1] > sides[-1]
    assert seen.buffer_address() == tensor.buffer_address()
    assert np.array_equal(seen.to_numpy(), values.reshape(seen.shape))
    with pytest.raises(ttnn.DeviceError, match=r"^Changing the last dimension of a sharded tensor is not supported"):
        ttnn.reshape(tensor, tuple(seen.shape))


@pytest.mark.parametrize("shape", [(1, 6, 40, 64), (1, 1, 6, 40, 64), (3, 2, 40, 64)])
def test_a_view_of_tiles_that_were_filled_up(device, shape):
    rows = ttnn.from_torch(IMAGE[:, :, :37].reshape(6, 37, 64), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    filled = ttnn.pad(rows, ((0, 0), (0, 3), (0, 0)), 5.0)
    seen = ttnn.reshape(filled, shape)
    assert seen.buffer_address() == filled.buffer_address()
    assert np.array_equal(seen.to_numpy(), filled.to_numpy().reshape(shape))


@pytest.mark.parametrize("layout", [ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT])
@pytest.mark.parametrize("dtype", [ttnn.uint16, ttnn.uint8])
def test_short_integers_keep_their_pages(device, dtype, layout):
    tensor = ttnn.from_torch(np.ones((1, 64, 32)), dtype, layout=layout, device=device)
    assert ttnn.reshape(tensor, (2, 32, 32)).buffer_address() == tensor.buffer_address()
    with pytest.raises(ttnn.DeviceError, match=r"^Can only work with bfloat16/float32 or int32/uint32 tensors\n"):
        ttnn.reshape(tensor, (1, 32, 64))


@pytest.mark.parametrize(
    ("shape", "place"),
    [
        ((1, 1, 16, 128), wide((16, 24), 6)),
        ((1, 16, 33), high((4, 40), 4)),
        ((1, 1, 60), wide((1, 24), 3)),
    ],
)
def test_rows_without_an_axis_keep_the_padding_of_their_shards(device, shape, place):
    """ttnn.squeeze sees shape and padded shape anew, where ttnn.reshape and ttnn.unsqueeze refuse other rows."""
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 251
    tensor = ttnn.from_torch(values, ttnn.bfloat16, device=device, memory_config=place)
    seen = ttnn.squeeze(tensor, 0)
    assert (seen.shape, seen.padded_shape) == (list(shape[1:]), list(tensor.padded_shape[1:]))
    assert seen.buffer_address() == tensor.buffer_address()
    assert np.array_equal(seen.to_numpy(), values[0])
    with pytest.raises(
        ttnn.DeviceError, match=r"^(Changing the last dimension of a sharded|For valid non-interleaved)"
    ):
        ttnn.unsqueeze(tensor, 0)


@pytest.mark.parametrize(
    ("layout", "place"), [(ttnn.ROW_MAJOR_LAYOUT, wide((1, 24), 3)), (ttnn.TILE_LAYOUT, wide((32, 32), 2))]
)
def test_vectors_lose_the_padding_of_their_shards(device, layout, place):
    tensor = ttnn.from_torch(np.ones((1, 60)), ttnn.bfloat16, layout=layout, device=device, memory_config=place)
    with pytest.raises(ttnn.DeviceError, match=r"New shape: Shape\(\[60\]\), Shard width: "):
        ttnn.squeeze(tensor, 0)


def test_rows_without_their_columns_are_moved(device):
    """40 rows of one number become one row of 40: pages of 2 bytes become one of 80."""
    column = ttnn.from_torch(np.arange(80.0).reshape(2, 40, 1), ttnn.bfloat16, device=device)
    row = ttnn.squeeze(column, -1)
    assert row.buffer_address() != column.buffer_address()
    assert np.array_equal(row.to_numpy(), np.arange(80.0).reshape(2, 40))


def test_vectors_in_whole_shards_are_squeezed(device):
    place = high((32, 64), 1)
    tensor = ttnn.from_torch(
        np.arange(60.0)[None], ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device, memory_config=place
    )
    assert np.array_equal(ttnn.squeeze(tensor, 0).to_numpy(), np.arange(60.0))


def test_what_is_not_simulated(device):
    tensor = ttnn.from_torch(IMAGE, ttnn.bfloat16, device=device)
    with pytest.raises(ttnn.DeviceError, match=r"^Invalid arguments to reshape"):
        ttnn.reshape(tensor, (7, 7))
    with pytest.raises(ttnn.ArgumentError, match="sub_core_grids is not simulated"):
        ttnn.reshape(tensor, (6, 64, 40), sub_core_grids=box(1))


@pytest.mark.parametrize("dtype", [ttnn.bfloat16, ttnn.bfloat8_b])
def test_vectors_in_tiles_take_time_to_get_another_shape(device, dtype):
    values = np.arange(50, dtype=np.float32)
    vector = ttnn.from_torch(values, dtype, layout=ttnn.TILE_LAYOUT, device=device)
    with ttnn.profile(device) as profile:
        matrix = ttnn.reshape(vector, (5, 10))
        part = ttnn.slice(vector, [3], [40])
    assert np.array_equal(matrix.to_numpy().reshape(-1), vector.to_numpy())
    assert np.array_equal(part.to_numpy(), vector.to_numpy()[3:40])
    assert all(operation.cycles > 0 for call in profile.report().calls for operation in call.operations)


def test_block_floats_become_vectors(device):
    """Whose padding is filled, so that it does not raise the exponents of the numbers."""
    tensor = ttnn.from_torch(np.arange(39.0).reshape(13, 3), ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT, device=device)
    vector = ttnn.reshape(tensor, (39,))
    assert np.array_equal(vector.to_numpy(), tensor.to_numpy().reshape(-1))


def test_rows_with_padding_do_not_become_rows_without(device):
    place = in_box(BLOCK, (132, 8), 1)
    x = ttnn.from_torch(np.zeros((4, 33, 7), np.float32), ttnn.bfloat16, device=device, memory_config=place)
    message = r"^For valid non-interleaved buffers page size 14 must equal buffer size 2112\."
    with pytest.raises(ttnn.DeviceError, match=message):
        ttnn.reshape(x, (1, 132, 7))


def test_a_tensor_without_such_a_side_is_itself(device):
    """Though its rows lie in shards that cut them."""
    place = wide((4, 24), 3)
    x = ttnn.from_torch(np.zeros((1, 1, 4, 60), np.float32), ttnn.bfloat16, device=device, memory_config=place)
    assert ttnn.squeeze(x, 2) is x


def test_views_of_rows_that_were_filled_up_are_read_under_their_axes(device):
    numbers = np.arange(64, dtype=np.float32).reshape(2, 1, 32, 1)
    tensor = ttnn.from_torch(numbers, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    padded = ttnn.pad(tensor, ((0, 0), (0, 0), (0, 0), (0, 1)), 0.0)
    view = ttnn.reshape(tensor, (1, 1, 64, 1))
    assert np.array_equal(view.to_numpy(), numbers.reshape(1, 1, 64, 1))
    ttnn.add_(tensor, 2.0)
    with pytest.raises(ttnn.DeviceError, match="shares its memory with a tensor of shape"):
        padded.to_numpy()


def test_a_vector_in_shards_is_no_number(device):
    tensor = ttnn.from_torch(np.ones((1,)), ttnn.bfloat16, device=device, memory_config=wide((1, 8), 1))
    with pytest.raises(ttnn.DeviceError, match=r"^Shard height 8 must match physical height 1 for width sharded"):
        ttnn.squeeze(tensor)
