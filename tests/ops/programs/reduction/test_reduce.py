"""Numbers of reductions against float64 and by hand."""

import numpy as np
import pytest

import ttsim

SHAPE = (2, 2, 34, 33)
DIMS = (-1, -2, 0, 1, [1, 2], [2, 3], None)
TOLERANCE = {"bfloat16": 2.0**-7, "float32": 1e-6, "bfloat8_b": 2.0**-5, "int32": 0.0}  # of the sum of magnitudes


def numbers(dtype):
    values = np.random.default_rng(1).standard_normal(SHAPE) * 4
    return (np.round(values) if dtype == "int32" else values).astype(np.float32)


@pytest.mark.parametrize("values", ["exact", "fast"])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_float64_agrees(values, dtype):
    with ttsim.open_device(values=values) as device:
        tensor = ttsim.Tensor(numbers(dtype), ttsim.DataType[dtype.upper()], device, ttsim.TILE_LAYOUT)
        known = tensor.to_numpy().astype(np.float64)
        for name in ("sum", "max", "min", *(() if dtype == "int32" else ("mean",))):
            for dim in DIMS if values == "fast" else (-2,):
                result = getattr(ttsim, name)(tensor, dim).to_numpy()
                axis = tuple(dim) if isinstance(dim, list) else dim
                wanted = getattr(np, name)(known, axis=axis)
                scale = getattr(np, "mean" if name == "mean" else "sum")(np.abs(known), axis=axis)
                assert result.shape == np.shape(wanted)
                assert (np.abs(result - wanted) <= TOLERANCE[dtype] * np.maximum(scale, 16) + 1e-9).all(), (name, dim)


@pytest.mark.parametrize(
    ("numbers", "dtype", "name", "result"),
    [
        ([[1.0, 2.0, 4.0]], "bfloat16", "mean", 7 * 0.33203125),  # 1/3 cut to 8 bits; the product rounded below
        ([[2.0**24, 1.0, 1.0]], "float32", "sum", 2.0**24),  # tiles first, then one after the other in float32
        ([[3, 5, 7]], "int32", "max", 7),
        ([[float("-inf"), 1.0]], "bfloat16", "min", float("-inf")),
    ],
)
def test_by_hand(numbers, dtype, name, result):
    with ttsim.open_device() as device:
        tensor = ttsim.Tensor(np.array(numbers, np.float32), ttsim.DataType[dtype.upper()], device, ttsim.TILE_LAYOUT)
        found = float(getattr(ttsim, name)(tensor, -1).to_numpy()[0])
    assert found == pytest.approx(result, rel=2.0**-8, abs=0)


def test_a_scalar_multiplies_and_a_split_column_has_the_same_sum():
    ones = np.ones((1, 1, 1000, 32), np.float32)
    with ttsim.open_device() as device:
        tensor = ttsim.Tensor(ones, ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
        assert ttsim.sum(tensor, -2, scalar=0.5).to_numpy().tolist() == [[[500.0] * 32]]
        assert ttsim.max(tensor, -2, scalar=0.5).to_numpy().tolist() == [[[0.5] * 32]]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "bfloat8_b", "int32"])
def test_a_negative_scalar_multiplies_the_extreme_of_the_elements(dtype):
    """The programs multiply first, and look for the opposite extreme."""
    with ttsim.open_device(values="fast") as device:
        tensor = ttsim.Tensor(numbers(dtype), ttsim.DataType[dtype.upper()], device, ttsim.TILE_LAYOUT)
        for name, dim in ((name, dim) for name in ("max", "min") for dim in DIMS):
            axis = tuple(dim) if isinstance(dim, list) else dim
            wanted = -2 * getattr(np, name)(tensor.to_numpy().astype(np.float64), axis=axis)
            found = getattr(ttsim, name)(tensor, dim, scalar=-2.0).to_numpy()
            assert (np.abs(found - wanted) <= 2 * TOLERANCE[dtype] * 16).all(), (name, dim)
