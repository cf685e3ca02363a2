"""Products along axes and of all elements, against numpy."""

import numpy as np
import pytest

import ttsim


@pytest.mark.parametrize("shape", [(2, 3, 40, 33), (5, 40, 33), (2, 2, 3, 40, 33)])
def test_products(shape):
    numbers = np.random.default_rng(0).uniform(0.9, 1.1, shape).astype(np.float32)
    with ttsim.open_device() as device:
        tensor = ttsim.Tensor(numbers, ttsim.float32, device, ttsim.TILE_LAYOUT)
        for dim in (None, *range(-len(shape), len(shape))):
            for keepdim in (False, True):
                found = ttsim.prod(tensor, dim, keepdim).to_numpy()
                expected = np.prod(numbers, axis=dim, keepdims=keepdim, dtype=np.float64)
                assert found.shape == expected.shape
                assert np.allclose(found, expected, rtol=1e-3, atol=0)
