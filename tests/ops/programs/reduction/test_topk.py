"""The largest and smallest elements of rows, against numpy."""

import numpy as np
import pytest

import ttsim


@pytest.mark.parametrize("shape", [(1, 1, 32, 64), (20, 20), (50,), (2, 3, 33, 70), (2, 2, 3, 33, 40)])
@pytest.mark.parametrize("largest", [True, False])
def test_rows(shape, largest):
    with ttsim.open_device() as device:
        numbers = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        tensor = ttsim.Tensor(numbers, ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
        values, places = (result.to_numpy() for result in ttsim.topk(tensor, 7, largest=largest))
        known = tensor.to_numpy()
    ordered = np.sort(known, -1)
    assert np.array_equal(values, (ordered[..., ::-1] if largest else ordered)[..., :7])
    assert np.array_equal(np.take_along_axis(known, places.astype(int), -1), values)


def test_the_first_of_equal_elements_comes_first():
    with ttsim.open_device() as device:
        tensor = ttsim.Tensor(np.zeros((1, 64), np.float32), ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
        assert ttsim.topk(tensor, 3)[1].to_numpy().tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("axis", [0, 1, -2])
def test_other_axes(axis):
    with ttsim.open_device() as device:
        numbers = np.random.default_rng(1).standard_normal((5, 40, 70)).astype(np.float32)
        tensor = ttsim.Tensor(numbers, ttsim.float32, device, ttsim.TILE_LAYOUT)
        values, places = (result.to_numpy() for result in ttsim.topk(tensor, 3, axis))
    assert np.array_equal(values, np.take(np.flip(np.sort(numbers, axis), axis), range(3), axis))
    assert np.array_equal(np.take_along_axis(numbers, places.astype(int), axis), values)


def test_block_floats_that_share_exponents_with_padding_are_lost():
    source = np.ones((1, 70), np.float32)
    with ttsim.open_device(strict=False) as device:
        tensor = ttsim.Tensor(source, ttsim.bfloat8_b, device, ttsim.TILE_LAYOUT)
        assert ttsim.topk(tensor, 70)[0].to_numpy().sum() == 64.0  # six numbers stand beside minus infinity
    with ttsim.open_device() as device, pytest.raises(ttsim.ArgumentError, match="the last of 70 elements share exp"):
        ttsim.topk(ttsim.Tensor(source, ttsim.bfloat8_b, device, ttsim.TILE_LAYOUT), 7)
