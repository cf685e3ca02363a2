"""Variances and standard deviations, against numpy."""

import numpy as np
import pytest

import ttsim


@pytest.mark.parametrize("dim", [-1, -2, 0, [1, 2], [0, 1], None])
@pytest.mark.parametrize("correction", [True, False])
def test_deviations(dim, correction):
    numbers = np.random.default_rng(0).standard_normal((3, 40, 70)).astype(np.float32) + 100
    axes = tuple(dim) if isinstance(dim, list) else dim
    with ttsim.open_device() as device:
        tensor = ttsim.Tensor(numbers, ttsim.float32, device, ttsim.TILE_LAYOUT)
        for function, reference in ((ttsim.std, np.std), (ttsim.var, np.var)):
            found = function(tensor, dim, correction=correction).to_numpy()
            expected = reference(numbers, axis=axes, ddof=int(correction), dtype=np.float64)
            assert found.shape == expected.shape
            assert np.allclose(found, expected, rtol=2.0**-22, atol=0)


def test_a_scalar_multiplies_the_tensor():
    with ttsim.open_device() as device:
        tensor = ttsim.Tensor(np.array([[1.0, 3.0]]), ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
        assert ttsim.var(tensor, -1, scalar=3.0, correction=False).to_list() == [9.0]
        assert ttsim.std(tensor, -1, scalar=3.0, correction=False).to_list() == [3.0]


def test_single_elements_deviate_by_nothing_or_not_a_number():
    with ttsim.open_device() as device:
        tensor = ttsim.ones((2, 1), layout=ttsim.TILE_LAYOUT, device=device)
        assert ttsim.std(tensor, -1, correction=False).to_list() == [0.0, 0.0]
        assert np.isnan(ttsim.var(tensor, -1, True).to_numpy()).all()
