from math import prod

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ops.programs.patch_matmul.gather import bundle_count, padded, patches_of, runs
from ops.window import axis_of_windows


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(1, 40))
def test_runs_hold_every_position_once_and_in_order(counts, rows):
    numbers = np.arange(prod(counts)).reshape(counts)
    array = np.concatenate([numbers[box].reshape(-1) for box in runs(counts, rows)])
    assert np.array_equal(array, np.arange(prod(counts)))
    assert all(numbers[box].size <= rows or numbers[box].size <= counts[-1] for box in runs(counts, rows))
    assert len(list(runs(counts, prod(counts)))) == 1


@pytest.mark.parametrize("spacing", [1, 2, -1, -3])
def test_patches_read_zeros_outside_the_image(spacing):
    image = np.arange(1, 25, dtype=np.float32).reshape(2, 4, 3, 1)
    rows = axis_of_windows(input_length=4, outputs=5, kernel=2, start=-1, dilation=spacing)
    columns = axis_of_windows(input_length=3, outputs=2, kernel=3, start=0, dilation=1, stride=2)
    view = patches_of(*padded(image, [[rows], [columns]]), [rows, columns])
    assert view.shape == (2, 5, 2, 2, 3, 1)
    for n, y, x, j, k in np.ndindex(2, 5, 2, 2, 3):
        row, column = y - 1 + j * spacing, 2 * x + k
        inside = 0 <= row < 4 and 0 <= column < 3
        assert view[n, y, x, j, k, 0] == (image[n, row, column, 0] if inside else 0)


@pytest.mark.parametrize(
    ("groups", "channels", "bundles", "narrow"),
    [
        (1, (64, 64), 1, 1),
        (2, (64, 64), 2, 2),
        (4, (64, 64), 2, 4),
        (64, (64, 64), 2, 4),
        (3, (9, 9), 1, 1),
        (2, (64, 32), 1, 2),
        (4, (256, 128), 4, 4),
    ],
)
def test_groups_are_bundled_as_far_as_that_is_worth_it(groups, channels, bundles, narrow):
    """Bundles of a program are a tile wide where they can be; in place, 16 channels of each side are enough."""
    assert bundle_count(groups, *channels) == bundles
    assert bundle_count(groups, *channels, least=16) == narrow
