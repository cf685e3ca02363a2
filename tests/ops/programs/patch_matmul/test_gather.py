from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.frame.axis import axis_of_windows
from ops.programs.patch_matmul.gather import Margin, places, runs


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(1, 40))
def test_runs_hold_every_position_once_and_in_order(counts, rows):
    numbers = np.arange(prod(counts)).reshape(counts)
    found = np.concatenate([numbers[box].reshape(-1) for box in runs(counts, rows)])
    assert np.array_equal(found, np.arange(prod(counts)))
    assert all(numbers[box].size <= rows or numbers[box].size <= counts[-1] for box in runs(counts, rows))


@pytest.mark.parametrize("spacing", [1, 2, -1, -3])
def test_patches_read_zeros_outside_the_image(spacing):
    image = np.arange(1, 25, dtype=np.float32).reshape(2, 4, 3, 1)
    rows = axis_of_windows(input_length=4, outputs=5, taps=2, start=-1, spacing=spacing)
    columns = axis_of_windows(input_length=3, outputs=2, taps=3, start=0, spacing=1, step=2)
    view = Margin(image, [[rows], [columns]]).patches([rows, columns])
    assert view.shape == (2, 5, 2, 2, 3, 1)
    for n, y, x, j, k in np.ndindex(2, 5, 2, 2, 3):
        row, column = y - 1 + j * spacing, 2 * x + k
        inside = 0 <= row < 4 and 0 <= column < 3
        assert view[n, y, x, j, k, 0] == (image[n, row, column, 0] if inside else 0)


def test_an_image_without_a_margin_is_not_copied():
    image = np.ones((1, 4, 2), np.float32)
    axis = axis_of_windows(input_length=4, outputs=4, taps=1, start=0, spacing=1)
    assert Margin(image, [[axis]]).pixels.base is image


def test_places_are_those_of_the_axis():
    axis = axis_of_windows(input_length=4, outputs=3, taps=1, start=0, spacing=1, first=1, distance=2)
    assert np.arange(8)[None][places([axis])].tolist() == [[1, 3, 5]]
