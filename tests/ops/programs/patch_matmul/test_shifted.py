"""Shifted images: sums of the definition, exactly where numbers are small, and the same bits with and without loops."""

import importlib.util

import numpy as np
import pytest

from device.host.products import blas_adds
from device.host.threads import side_by_side
from ops.programs.patch_matmul import shifted as module
from ops.programs.patch_matmul.float64 import _gathered, _products
from ops.programs.patch_matmul.shifted import multiply_shifted, shifted
from tests.ops.programs.patch_matmul.padded_axes import transposed
from tests.ops.programs.patch_matmul.shifted_layers import AXES, GROUPS, STRIDED, drawn, small_and_whole

pytestmark = pytest.mark.skipif(not blas_adds(), reason="numpy has another BLAS")
NUMBA = importlib.util.find_spec("numba") is not None
COMPILED = pytest.param(True, marks=pytest.mark.skipif(not NUMBA, reason="numba is not installed"))


def outputs(axes, groups, compiled, monkeypatch, *, biased=True, storage=np.float32, draw=small_and_whole):
    """Of two images, as they are found and as the definition has them."""
    count, ins, outs = groups
    rng = np.random.default_rng(0)
    monkeypatch.setattr(module, "worth_loading", lambda name, seconds: compiled)
    image = draw(rng, 2, *(axis.input_length for axis in axes), ins * count)
    weights = draw(rng, count, *(axis.kernel for axis in axes), ins, outs)
    bias = draw(rng, outs * count) if biased else None
    result = np.full((2, *(axis.outputs for axis in axes), outs * count), np.nan, storage)
    multiply_shifted(shifted(axes, 2, count, (ins, outs)), image, weights, bias, result, side_by_side)
    wanted = _products(_gathered(image.astype(np.float64), axes), weights.astype(np.float64))
    return result, (wanted if bias is None else wanted + bias).astype(storage)


@pytest.mark.parametrize("axes", AXES, ids=range(len(AXES)))
@pytest.mark.parametrize("groups", GROUPS, ids=str)
@pytest.mark.parametrize("compiled", [False, COMPILED])
def test_outputs_are_those_of_the_definition(axes, groups, compiled, monkeypatch):
    found, wanted = outputs(axes, groups, compiled, monkeypatch)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("storage", [np.float32, np.float16])
def test_outputs_are_rounded_once_to_what_is_stored(biased, storage, monkeypatch):
    found, wanted = outputs(AXES[0], GROUPS[2], NUMBA, monkeypatch, biased=biased, storage=storage)
    assert np.array_equal(found, wanted)


@pytest.mark.skipif(not NUMBA, reason="numba is not installed")
@pytest.mark.parametrize("axes", [AXES[0], STRIDED[0]], ids=["transposed", "strided"])
@pytest.mark.parametrize("groups", GROUPS, ids=str)
def test_compiled_loops_leave_no_trace_in_the_numbers(axes, groups, monkeypatch):
    bits = [outputs(axes, groups, compiled, monkeypatch, draw=drawn)[0].tobytes() for compiled in (False, True)]
    assert bits[0] == bits[1]


def test_neighboring_groups_do_not_see_an_infinity():
    """Eight channels are a product of their own, without zeros of other groups that an infinity would meet."""
    axes = (transposed(16, 4, 2, 1), transposed(16, 4, 2, 1))
    image, weights = np.ones((1, 16, 16, 32), np.float32), np.ones((4, 4, 4, 8, 8), np.float32)
    image[..., 8:16] = np.inf
    result = np.empty((1, 32, 32, 32), np.float32)
    multiply_shifted(shifted(axes, 1, 4, (8, 8)), image, weights, None, result, side_by_side)
    assert np.isfinite(result[..., :8]).all()
    assert (result[..., 8:16] == np.inf).all()
    assert np.isfinite(result[..., 16:]).all()
