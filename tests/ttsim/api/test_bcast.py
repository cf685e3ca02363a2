"""bcast, as users call it: its numbers."""

import numpy as np
import pytest

import ttsim as ttnn


@pytest.mark.parametrize(
    ("dim", "shape"),
    [("H", (1, 1, 1, 96)), ("W", (1, 2, 60, 1)), ("HW", (1, 1, 1, 1)), ("H", (1, 2, 20, 96)), ("HW", (1, 2, 5, 7))],
)
def test_the_first_row_column_or_number_of_a_matrix_is_repeated(device, dim, shape):
    random = np.random.default_rng(3)
    left, right = (random.integers(-8, 8, sides).astype(np.float32) for sides in ((1, 2, 60, 96), shape))
    x, other = (ttnn.from_numpy(one, ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device) for one in (left, right))
    part = right[..., slice(1 if "H" in dim else None), slice(1 if "W" in dim else None)]
    for math, numbers in (("ADD", left + part), ("SUB", left - part), ("MUL", left * part)):
        result = ttnn.bcast(x, other, ttnn.BcastOpMath[math], ttnn.BcastOpDim[dim])
        assert np.array_equal(result.to_numpy(), numbers)


def test_rows_are_brought_into_tiles(device):
    x, row = ttnn.ones((1, 2, 20, 64), device=device), ttnn.full((1, 1, 1, 64), 2.0, device=device)
    result = ttnn.bcast(x, row, ttnn.BcastOpMath.SUB, ttnn.BcastOpDim.H)
    assert result.layout is ttnn.TILE_LAYOUT
    assert np.array_equal(result.to_numpy(), np.full((1, 2, 20, 64), -1.0))


def test_a_vector_is_one_row(device):
    x = ttnn.ones((1, 1, 32, 32), layout=ttnn.TILE_LAYOUT, device=device)
    vector = ttnn.from_numpy(np.arange(32.0), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    row = ttnn.bcast(x, vector, ttnn.BcastOpMath.ADD, ttnn.BcastOpDim.H)
    assert np.array_equal(row.to_numpy()[0, 0, 7], np.arange(32.0) + 1)
