"""ttnn.permute and transpose of shards and block floats."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.shards import high

IMAGE = np.arange(2 * 3 * 32 * 64, dtype=np.float32).reshape(2, 3, 32, 64) % 251


@pytest.mark.parametrize("layout", [ttnn.ROW_MAJOR_LAYOUT, ttnn.TILE_LAYOUT])
@pytest.mark.parametrize(
    "axes", [(0, 1, 3, 2), (0, 2, 1, 3), (0, 2, 3, 1), (0, 3, 1, 2), (0, 3, 2, 1), (1, 0, 2, 3), (3, 2, 1, 0)]
)
def test_shards_in_another_order(device, layout, axes):
    tensor = ttnn.from_torch(IMAGE, ttnn.bfloat16, layout=layout, device=device, memory_config=high((32, 64), 6))
    assert np.array_equal(ttnn.permute(tensor, axes).to_numpy(), IMAGE.transpose(axes))
    assert np.array_equal(ttnn.transpose(tensor, 1, -1).to_numpy(), IMAGE.swapaxes(1, 3))


def test_ranks_below_four_and_above(device):
    rows = ttnn.from_torch(IMAGE[0, 0], ttnn.bfloat16, device=device)
    assert np.array_equal(ttnn.permute(rows, (1, 0)).to_numpy(), IMAGE[0, 0].T)
    many = ttnn.from_torch(IMAGE[:, None], ttnn.bfloat16, device=device)
    assert np.array_equal(ttnn.transpose(many, 2, 4).to_numpy(), IMAGE[:, None].swapaxes(2, 4))


def test_block_floats_are_packed_along_their_new_rows(device):
    """Within 16 neighbors of a row, 1 and 2**-6 stay; turned, 2**-10 stands beside 1 and is lost."""
    values = np.full((1, 1, 32, 32), 2.0**-10, np.float32)
    values[..., 0, :] = 1
    tensor = ttnn.from_torch(values, ttnn.bfloat8_b, device=device, layout=ttnn.TILE_LAYOUT)
    turned = ttnn.transpose(tensor, 2, 3).to_numpy()
    assert set(turned[..., 0].ravel()) == {1.0}
    assert not turned[0, 0, 0, 1:16].any()
    assert (turned[0, 0, 0, 16:] == 2.0**-10).all()
    assert ttnn.permute(tensor, (0, 2, 3, 1)).dtype is ttnn.bfloat8_b


def test_what_is_refused(device):
    tensor = ttnn.from_torch(
        IMAGE, ttnn.bfloat8_b, layout=ttnn.TILE_LAYOUT, device=device, memory_config=high((32, 64), 6)
    )
    with pytest.raises(ttnn.ArgumentError, match="is moved as bytes, which gives other numbers"):
        ttnn.permute(tensor, (3, 2, 1, 0))
    ones = ttnn.from_torch(IMAGE[:1, :1], ttnn.bfloat16, device=device)
    assert ttnn.transpose(ones, 0, 1) is ones
    with pytest.raises(ttnn.DeviceError, match=r"^Clone: mixed sharded/interleaved layout"):
        ttnn.transpose(ones, 0, 1, memory_config=high((32, 64), 1))
