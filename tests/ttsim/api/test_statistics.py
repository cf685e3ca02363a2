"""Statistics of matrices and losses: their device operations and numbers."""

import numpy as np
import pytest

import ttsim as ttnn
from tests.ttsim.api.calls import captured, put

IMAGE = "2x3x64x64 tile"
NUMBERS = np.random.default_rng(1).normal(size=(2, 3, 64, 64))
VARIANCE = NUMBERS.var(axis=(2, 3), keepdims=True)


@pytest.mark.parametrize(
    ("function", "last", "expected"),
    [
        (ttnn.var_hw, [], VARIANCE),
        (ttnn.std_hw, ["Unary"], np.sqrt(VARIANCE)),
        (ttnn.normalize_hw, ["BinaryNg"], (NUMBERS - NUMBERS.mean(axis=(2, 3), keepdims=True)) / np.sqrt(VARIANCE)),
    ],
)
def test_statistics_of_matrices(device, function, last, expected):
    x = put(device, IMAGE, NUMBERS)
    names, result, _ = captured(lambda: function(x))
    values = result.to_numpy()
    assert names == ["Reduce", "Reduce", "Bcast", "Unary", "Reduce", "Reduce", *last]
    assert np.abs(values - expected).max() < 0.05


@pytest.mark.parametrize(("function", "formula"), [(ttnn.l1_loss, np.abs), (ttnn.mse_loss, np.square)])
def test_losses(device, function, formula):
    x, y = put(device, IMAGE, NUMBERS), put(device, IMAGE, NUMBERS[::-1].copy())
    names, result, _ = captured(lambda: function(x, y))
    values = result.to_numpy()
    expected = formula(NUMBERS - NUMBERS[::-1])
    assert names == ["BinaryNg"]
    assert np.abs(values - expected).max() < 0.25
    mean = function(x, y, reduction=ttnn.LossReductionMode.MEAN)
    assert mean.shape == []
    assert abs(mean.to_numpy().item() - expected.mean()) < 0.05


def test_matrices_of_five_axes_are_those_of_the_third_and_fourth(device):
    """As the library counts them; its broadcast takes matrices of a row alone."""
    assert ttnn.var_hw(put(device, "1x2x1x32x32 tile")).shape == [1, 2, 1, 1, 32]
    with pytest.raises(ttnn.DeviceError, match=r"^Broadcast with batch is currently only supported when bN"):
        ttnn.var_hw(put(device, "1x2x2x32x32 tile"))
