from math import prod

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ops.programs.patch_matmul.gather import (
    Margin,
    bundle_count,
    bundle_size,
    dense_bundles,
    merges,
    places,
    runs,
    shared_rows,
)
from ops.window import axis_of_windows


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(1, 40))
def test_runs_hold_every_position_once_and_in_order(counts, rows):
    numbers = np.arange(prod(counts)).reshape(counts)
    array = np.concatenate([numbers[box].reshape(-1) for box in runs(counts, rows)])
    assert np.array_equal(array, np.arange(prod(counts)))
    assert all(numbers[box].size <= rows or numbers[box].size <= counts[-1] for box in runs(counts, rows))


@pytest.mark.parametrize("spacing", [1, 2, -1, -3])
def test_patches_read_zeros_outside_the_image(spacing):
    image = np.arange(1, 25, dtype=np.float32).reshape(2, 4, 3, 1)
    rows = axis_of_windows(input_length=4, outputs=5, kernel=2, start=-1, dilation=spacing)
    columns = axis_of_windows(input_length=3, outputs=2, kernel=3, start=0, dilation=1, stride=2)
    view = Margin(image, [[rows], [columns]]).patches([rows, columns])
    assert view.shape == (2, 5, 2, 2, 3, 1)
    for n, y, x, j, k in np.ndindex(2, 5, 2, 2, 3):
        row, column = y - 1 + j * spacing, 2 * x + k
        inside = 0 <= row < 4 and 0 <= column < 3
        assert view[n, y, x, j, k, 0] == (image[n, row, column, 0] if inside else 0)


def test_an_image_without_a_margin_is_not_copied():
    image = np.ones((1, 4, 2), np.float32)
    axis = axis_of_windows(input_length=4, outputs=4, kernel=1, start=0, dilation=1)
    assert Margin(image, [[axis]]).pixels.base is image


def test_places_are_those_of_the_axis():
    axis = axis_of_windows(input_length=4, outputs=3, kernel=1, start=0, dilation=1, output_offset=1, output_stride=2)
    assert np.arange(8)[None][places([axis])].tolist() == [[1, 3, 5]]


def test_parts_of_the_channels_lie_apart():
    image = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
    axis = axis_of_windows(input_length=3, outputs=3, kernel=2, start=-1, dilation=1)
    whole, halves = Margin(image, [[axis]]), Margin(image, [[axis]], parts=2)
    for part in range(2):
        assert np.array_equal(halves.patches([axis], part), whole.patches([axis])[..., 2 * part : 2 * part + 2])
        assert halves.patches([axis], part)[0, 0, 0].tolist() == [0, 0]  # ahead of the image
    assert halves.pixels.flags.c_contiguous


@pytest.mark.parametrize(("positions", "rows"), [(100, 256), (2000, 500), (1 << 20, 8192)])
def test_runs_that_may_be_cut_anywhere_are_some(positions, rows):
    assert shared_rows(64, positions) == rows


@pytest.mark.parametrize(("order", "axes", "expected"), [
    ((0, 1, 2), (0, 1), True), ((0, 2, 1), (0, 1), False), ((0, 2, 1), (0, 2), True), ((1, 0, 2), (1, 0, 2), True),
])  # fmt: skip
def test_axes_that_lie_in_memory_as_one_merge(order, axes, expected):
    array = np.zeros((2, 3, 4)).transpose(order)
    assert merges(array, axes) is expected


@pytest.mark.parametrize(
    ("groups", "channels", "bundles", "size"),
    [
        (1, (64, 64), 1, 1),
        (2, (64, 64), 2, 1),
        (4, (64, 64), 2, 2),
        (64, (64, 64), 2, 32),
        (3, (9, 9), 1, 3),
        (2, (64, 32), 1, 2),
        (4, (256, 128), 4, 1),
    ],
)
def test_groups_are_bundled_as_far_as_that_is_worth_it(groups, channels, bundles, size):
    """Bundles of a program are a tile wide where they can be; BLAS multiplies 32 channels of each side at a time."""
    assert bundle_count(groups, *channels) == bundles
    assert bundle_size(groups, *(side // groups for side in channels)) == size


def test_groups_of_a_bundle_meet_only_themselves():
    weights = np.arange(1, 9, dtype=np.float32).reshape(4, 1, 2, 1)  # four groups of two channels in, one out
    assert dense_bundles(weights, 1) is weights
    first, second = dense_bundles(weights, 2)
    assert first[0].tolist() == [[1, 0], [2, 0], [0, 3], [0, 4]]
    assert second[0].tolist() == [[5, 0], [6, 0], [0, 7], [0, 8]]
