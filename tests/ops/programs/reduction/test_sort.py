"""Elements in order, against numpy."""

import numpy as np
import pytest

import ttsim


@pytest.mark.parametrize("dim", [-1, 0, 1])
@pytest.mark.parametrize("descending", [True, False])
def test_elements_in_order(dim, descending):
    with ttsim.open_device() as device:
        numbers = np.random.default_rng(0).standard_normal((3, 40, 70)).astype(np.float32)
        tensor = ttsim.Tensor(numbers, ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
        values, places = (result.to_numpy() for result in ttsim.sort(tensor, dim, descending))
        known = tensor.to_numpy()
    ordered = np.sort(known, dim)
    assert np.array_equal(values, np.flip(ordered, dim) if descending else ordered)
    assert np.array_equal(np.take_along_axis(known, places.astype(int), dim), values)


@pytest.mark.parametrize("descending", [True, False])
def test_the_first_of_equal_elements_comes_first(descending):
    with ttsim.open_device() as device:
        tensor = ttsim.Tensor(np.array([[1.0, 2.0, 1.0]]), ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
        expected = [1, 0, 2] if descending else [0, 2, 1]
        assert ttsim.sort(tensor, descending=descending)[1].to_numpy().tolist() == [expected]
