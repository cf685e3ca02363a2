"""Places of the largest elements, by hand."""

import numpy as np
import pytest

import ttsim

NUMBERS = np.array([[[1, 7, 7], [9, 0, 2]], [[3, 7, 8], [9, 1, 1]]], np.float32)


@pytest.mark.parametrize("layout", [ttsim.TILE_LAYOUT, ttsim.ROW_MAJOR_LAYOUT])
@pytest.mark.parametrize(
    ("dim", "places"),
    [(-1, [[[1], [0]], [[2], [0]]]), (-2, [[[1, 0, 0]], [[1, 0, 0]]]), (0, [[[1, 0, 1], [0, 1, 0]]])],
)
def test_the_first_of_equal_elements(layout, dim, places):
    with ttsim.open_device() as device:
        found = ttsim.argmax(ttsim.Tensor(NUMBERS, ttsim.bfloat16, device, layout), dim=dim, keepdim=True)
        assert found.dtype == ttsim.uint32
        assert found.to_numpy().tolist() == places


def test_among_all_elements():
    with ttsim.open_device() as device:
        tensor = ttsim.Tensor(NUMBERS, ttsim.bfloat16, device, ttsim.ROW_MAJOR_LAYOUT)
        assert ttsim.argmax(tensor).to_numpy().tolist() == 3
