"""Products of positions and taps, added up: the same bits with a compiled loop and without."""

import importlib.util

import numpy as np
import pytest

from device.host.threads import side_by_side
from ops.programs.patch_matmul import scatter as module
from ops.programs.patch_matmul.float64 import _gathered
from ops.programs.patch_matmul.gather import do
from ops.programs.patch_matmul.scatter import PLANES, scattered
from tests.ops.programs.patch_matmul.padded_axes import transposed

NUMBA = importlib.util.find_spec("numba") is not None
COMPILED = pytest.param(True, marks=pytest.mark.skipif(not NUMBA, reason="numba is not installed"))
AXES = [
    (transposed(4, 4, 2, 1), transposed(4, 4, 2, 1)),
    (transposed(5, 3, 1, 1), transposed(6, 3, 2, 2, 2)),
    (transposed(9, 5, 2, 0),),
    (transposed(3, 2, 1, 0), transposed(4, 1, 2, 0), transposed(3, 3, 2, 1)),
]
STORED = ["in order", "taps inside", "mirrored", "one axis mirrored"]


def laid(weights, stored):
    taps = weights.ndim - 2
    if stored == "taps inside":
        return np.ascontiguousarray(np.moveaxis(weights, (-2, -1), (0, 1))).transpose(*range(2, 2 + taps), 0, 1)
    axes = tuple(range(taps)) if stored == "mirrored" else (0,) if stored == "one axis mirrored" else ()
    return np.flip(np.flip(weights, axes).copy(), axes)


def made(axes, image, weights, compiled, monkeypatch):
    monkeypatch.setattr(module, "worth_loading", lambda name, seconds: compiled)
    outs = weights.shape[-1]
    result = np.full((len(image), *(axis.outputs for axis in axes), outs), np.nan, np.float32)
    side_by_side(do, scattered(axes, image, weights, np.arange(outs, dtype=np.float32), result))
    return result


@pytest.mark.parametrize("axes", AXES, ids=range(len(AXES)))
@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("compiled", [False, COMPILED])
@pytest.mark.parametrize("channels", [(2, PLANES), (70, 3 * PLANES), (3, 1)])
def test_sums_are_those_of_the_definition(axes, stored, compiled, channels, monkeypatch):
    rng = np.random.default_rng(0)
    image = rng.integers(-4, 5, (3, *(axis.input_length for axis in axes), channels[0])).astype(np.float32)
    weights = rng.integers(-4, 5, (*(axis.kernel for axis in axes), *channels)).astype(np.float32)
    wanted = np.tensordot(_gathered(image.astype(np.float64), axes), weights, weights.ndim - 1)
    found = made(axes, image, laid(weights, stored), compiled, monkeypatch)
    assert np.array_equal(found, wanted + np.arange(channels[1]))


@pytest.mark.skipif(not NUMBA, reason="numba is not installed")
@pytest.mark.parametrize("axes", AXES, ids=range(len(AXES)))
@pytest.mark.parametrize("stored", STORED)
def test_a_compiled_loop_leaves_no_trace_in_the_numbers(axes, stored, monkeypatch):
    rng = np.random.default_rng(0)
    image = rng.standard_normal((3, *(axis.input_length for axis in axes), 90), np.float32)
    weights = laid(rng.standard_normal((*(axis.kernel for axis in axes), 90, 4 * PLANES), np.float32), stored)
    bits = [made(axes, image, weights, compiled, monkeypatch).tobytes() for compiled in (False, True)]
    assert bits[0] == bits[1]


def test_few_positions_are_multiplied_by_some_channels_at_a_time():
    axis = transposed(4, 4, 2, 1)
    image, weights = np.zeros((8, 4, 4, 5), np.float32), np.zeros((4, 4, 5, 64), np.float32)
    result = np.empty((8, axis.outputs, axis.outputs, 64), np.float32)
    assert len(list(scattered([axis] * 2, image, weights, None, result))) == 4  # 128 positions, 1,024 columns
    assert len(list(scattered([axis] * 2, image[:3], weights, None, result[:3]))) == 1  # 48 positions
    narrow = [axis] * 2, image, weights[..., :7], None, result[..., :7]
    assert len(list(scattered(*narrow))) == 2  # 112 columns: images are cut
