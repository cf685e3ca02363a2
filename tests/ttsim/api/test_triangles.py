"""Triangles of matrices: which elements stay, in which types, and what a ROW_MAJOR tensor needs."""

import numpy as np
import pytest

import ttsim
from tests.ttsim.api.calls import operations

MATRIX = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def device():
    with ttsim.open_device(l1_small_size=32768) as opened:
        yield opened


@pytest.mark.parametrize("dtype", [ttsim.bfloat16, ttsim.float32, ttsim.int32, ttsim.uint32], ids=str)
@pytest.mark.parametrize(
    ("name", "diagonal", "wanted"),
    [
        ("tril", 0, [[1, 0, 0, 0], [5, 6, 0, 0], [9, 10, 11, 0]]),
        ("tril", -2, [[0, 0, 0, 0], [0, 0, 0, 0], [9, 0, 0, 0]]),
        ("triu", 0, [[1, 2, 3, 4], [0, 6, 7, 8], [0, 0, 11, 12]]),
        ("triu", 2, [[0, 0, 3, 4], [0, 0, 0, 8], [0, 0, 0, 0]]),
    ],
)
def test_a_triangle_of_every_matrix(device, name, diagonal, wanted, dtype):
    x = ttsim.Tensor(
        np.stack([MATRIX, -MATRIX if dtype is not ttsim.uint32 else MATRIX]), dtype, device, ttsim.TILE_LAYOUT
    )
    got = getattr(ttsim, name)(x, diagonal=diagonal)
    assert got.dtype is dtype
    assert got.to_numpy()[0].tolist() == wanted
    assert (abs(got.to_numpy()[1].astype(float)) == wanted).all()


def test_a_vector_is_one_row(device):
    x = ttsim.ones((3,), layout=ttsim.TILE_LAYOUT, device=device)
    assert ttsim.tril(x, diagonal=1).to_list() == [1, 1, 0]
    assert ttsim.triu(x, diagonal=1).to_list() == [0, 1, 1]


def test_one_product_whose_matrix_is_released(device):
    x = ttsim.ones((32, 32), layout=ttsim.TILE_LAYOUT, device=device)
    assert operations(lambda: ttsim.tril(x)) == ["BinaryNg"]


def test_rows_are_whole_tiles(device):
    with pytest.raises(ttsim.DeviceError, match=r"^to_layout: .* from \(6, 4\) to \(64, 32\) due to alignment"):
        ttsim.triu(ttsim.ones((2, 3, 4), device=device))
    with pytest.raises(ttsim.DeviceError, match=r"^ShapeBase\[\] index out of range"):
        ttsim.tril(ttsim.ones((3,), device=device))
