"""Sums over pixels of shifted images: those of the definition, and the same bits with and without compiled loops."""

import importlib.util

import numpy as np
import pytest

from device.host.products import blas_adds
from device.host.threads import side_by_side
from ops.programs.patch_matmul import shifted as module
from ops.programs.patch_matmul.float64 import _gathered
from ops.programs.patch_matmul.shifted import shifted_pixels, sum_shifted
from ops.programs.patch_matmul.shifted_layer import PIECES
from tests.ops.programs.patch_matmul.shifted_layers import DOWN, GROUPS, STRIDED, drawn, small_and_whole

pytestmark = pytest.mark.skipif(not blas_adds(), reason="numpy has another BLAS")
NUMBA = importlib.util.find_spec("numba") is not None
COMPILED = pytest.param(True, marks=pytest.mark.skipif(not NUMBA, reason="numba is not installed"))


def sums(axes, groups, compiled, monkeypatch, draw=small_and_whole):
    """Of two images, as they are found and as the definition has them."""
    count, ins, outs = groups
    rng = np.random.default_rng(0)
    monkeypatch.setattr(module, "worth_loading", lambda name, seconds: compiled)
    image = draw(rng, 2, *(axis.outputs for axis in axes), ins * count)
    other = draw(rng, 2, *(axis.input_length for axis in axes), outs * count)
    found = sum_shifted(shifted_pixels(axes, 2, count, (ins, outs)), image, other, side_by_side)
    view = _gathered(other.astype(np.float64), axes).reshape(image[..., 0].size, -1, count, outs)
    return found, np.einsum("rgi,rtgo->gtio", image.astype(np.float64).reshape(-1, count, ins), view)


@pytest.mark.parametrize("axes", STRIDED, ids=range(len(STRIDED)))
@pytest.mark.parametrize("groups", GROUPS, ids=str)
@pytest.mark.parametrize("compiled", [False, COMPILED])
def test_sums_are_those_of_the_definition(axes, groups, compiled, monkeypatch):
    found, wanted = sums(axes, groups, compiled, monkeypatch)
    assert np.array_equal(found, wanted)


@pytest.mark.skipif(not NUMBA, reason="numba is not installed")
@pytest.mark.parametrize("groups", GROUPS, ids=str)
def test_compiled_loops_leave_no_trace_in_the_numbers(groups, monkeypatch):
    bits = [sums(STRIDED[0], groups, compiled, monkeypatch, drawn)[0].tobytes() for compiled in (False, True)]
    assert bits[0] == bits[1]


@pytest.mark.parametrize(("batch", "groups"), [(8, (1, 64, 3)), (1, (32, 8, 8)), (1, (1, 64, 3))])
def test_sections_share_out_what_bundles_do_not(batch, groups):
    count, *channels = groups
    op = shifted_pixels(DOWN, batch, count, tuple(channels))
    pieces = op.sections * op.shape[0] // op.together
    assert pieces >= min(PIECES, batch * len(op.bands) * op.shape[0] // op.together)
