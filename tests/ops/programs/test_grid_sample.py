"""Grid samples: corners and weights, what programs compute."""

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT, FAST
from device.numbers.formats import BFLOAT16
from ops.programs.grid_sample import GridSample, corner_weights, points_of, scale_of
from tests.build import op_values


def sample(grid, image, arithmetic=EXACT, **changes):
    """The samples of an image [H, W] of one channel."""
    values = np.array(image, np.float32).astype(BFLOAT16.storage)[None, :, :, None]
    usual = {"mode": "bilinear", "align_corners": False, "prepared": False, "data_format": BFLOAT16} | changes
    op = GridSample(shape=values.shape, grid_shape=grid.shape, result_shape=(*grid.shape[:3], 1), **usual)
    return op_values(op, values, grid, arithmetic=arithmetic).ravel().tolist()


def test_places_among_pixels():
    """Of 4 pixels, -1 is half a pixel ahead of the first, or the first."""
    for align, first, last in ((False, -0.5, 3.5), (True, 0, 3)):
        scale, offset = scale_of(4, align_corners=align)
        assert (-scale + offset, scale + offset) == (first, last)


def test_weights_of_corners():
    assert corner_weights(np.float32([[0.25, 0.5]])).tolist() == [[0.375, 0.375, 0.125, 0.125]]


@pytest.mark.parametrize(("last", "mode", "prepared", "count"), [(8, "bilinear", False, 4), (12, "bilinear", True, 2)])
def test_points_of_a_row(last, mode, prepared, count):
    assert points_of((1, 1, 1, last), mode, prepared=prepared) == count


@pytest.mark.parametrize("arithmetic", [EXACT, FAST], ids=["exact", "fast"])
def test_zeros_lie_around_the_image(arithmetic):
    """In the middle of four pixels, of a lower edge, of the corner, and outside."""
    grid = np.float32([[[[0, 0], [0, 1], [1, 1], [3, 0]]]])
    assert sample(grid, [[1, 2], [3, 6]], arithmetic) == [3, (3 + 6) / 4, 6 / 4, 0]


def test_prepared_points_hold_integers_in_the_bits_of_bfloat16():
    """The corner (-1, 0): of the row ahead of the image only zeros are taken, whatever its weight is."""
    weights = np.float32([0.5, 0, 0.25, 0.25]).astype(BFLOAT16.storage).view(np.int16)
    grid = np.int16([-1, 0, *weights]).view(BFLOAT16.storage).reshape(1, 1, 1, 6)
    assert sample(grid, [[4, 8]], prepared=True) == [1 + 2]
    nearest = np.int16([[0, 1], [-1, -1]]).view(BFLOAT16.storage).reshape(1, 1, 2, 2)
    assert sample(nearest, [[4, 8]], prepared=True, mode="nearest") == [8, 0]
