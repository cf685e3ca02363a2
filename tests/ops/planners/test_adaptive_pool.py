"""Adaptive pools: the window that gives as many outputs as asked for."""

import pytest

from device.errors import DeviceError
from ops.planners.adaptive_pool import adaptive_window


@pytest.mark.parametrize(
    ("image", "outputs", "window"),
    [
        ((16, 16), (1, 1), ((16, 16), (16, 16), (0, 0, 0, 0))),
        ((8, 6), (4, 2), ((2, 3), (2, 3), (0, 0, 0, 0))),
        ((7, 7), (2, 2), ((4, 4), (3, 3), (0, 0, 0, 0))),  # 0..3 and 3..6
        ((7, 8), (4, 4), ((3, 2), (2, 2), (1, 1, 0, 0))),  # of 2, 3, 3 and 2 rows: one row around makes them 3
    ],
)
def test_windows(image, outputs, window):
    assert adaptive_window(image, outputs) == window


@pytest.mark.parametrize(
    ("image", "outputs", "error"),
    [
        ((8, 8), (5, 4), "Adaptive pooling configuration not supported. Height kernel pattern [2,3,2,3,2] - middle"),
        ((14, 28), (7, 8), "Adaptive pooling configuration not supported. Calculated pooling parameters (kernel=[2,4]"),
        ((1, 6), (5, 3), "Adaptive pooling configuration not supported. Calculated pooling parameters (kernel=[1,2], "),
        ((8, 8), (0, 4), "output_size: the height of the result must be above 0"),
    ],
)
def test_patterns_without_a_window(image, outputs, error):
    with pytest.raises(DeviceError) as raised:
        adaptive_window(image, outputs)
    assert str(raised.value).startswith(error)
