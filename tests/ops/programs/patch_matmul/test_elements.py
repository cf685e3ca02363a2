"""Channels that are groups of their own: the definition exactly, and the same bits with a compiled loop and without."""

import importlib.util

import numpy as np
import pytest

from device.host.threads import side_by_side
from ops.programs.patch_matmul import depthwise as module
from ops.programs.patch_matmul.depthwise import PIECES, add_up_elements, elements
from ops.programs.patch_matmul.float64 import _gathered
from tests.ops.programs.patch_matmul.padded_axes import strided, transposed

NUMBA = importlib.util.find_spec("numba") is not None
COMPILED = pytest.param(True, marks=pytest.mark.skipif(not NUMBA, reason="numba is not installed"))


AXES = [
    (transposed(7, 3, 2, 1), transposed(10, 3, 1, 2, 2)),
    (transposed(6, 4, 2, 0), transposed(7, 2, 1, 0), strided(9, 3, 1, 1)),
    (transposed(6, 3, 3, 0, 3), transposed(6, 1, 2, 0)),  # outputs that meet nothing on both axes
    (strided(13, 4, 2, 1), strided(14, 3, 2, 0, 2)),
    (strided(9, 2, 1, 0), strided(6, 3, 2, 1), strided(7, 2, 1, 3)),
]


def made(axes, image, weights, bias, storage, compiled, monkeypatch):
    monkeypatch.setattr(module, "worth_loading", lambda name, seconds: compiled)
    result = np.full((len(image), *(axis.outputs for axis in axes), image.shape[-1]), np.nan, storage)
    add_up_elements(elements(axes, len(image)), image, weights, bias, result, side_by_side)
    return result


@pytest.mark.parametrize("axes", AXES, ids=range(len(AXES)))
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("storage", [np.float32, np.float16])
@pytest.mark.parametrize("compiled", [False, COMPILED])
def test_sums_are_those_of_the_definition(axes, biased, storage, compiled, monkeypatch):
    rng = np.random.default_rng(0)
    image = rng.integers(-4, 5, (2, *(axis.input_length for axis in axes), 5)).astype(np.float32)
    weights = rng.integers(-4, 5, (5, *(axis.kernel for axis in axes))).astype(np.float32)
    bias = rng.integers(-4, 5, 5).astype(np.float32) if biased else None
    view = _gathered(image.astype(np.float64), axes).reshape(2, *(axis.outputs for axis in axes), -1, 5)
    wanted = (view * weights.reshape(5, -1).T).sum(axis=-2) + (0 if bias is None else bias)
    found = made(axes, image, weights, bias, storage, compiled, monkeypatch)
    assert np.array_equal(found, wanted.astype(storage))


@pytest.mark.skipif(not NUMBA, reason="numba is not installed")
@pytest.mark.parametrize("axes", AXES, ids=range(len(AXES)))
def test_a_compiled_loop_leaves_no_trace_in_the_numbers(axes, monkeypatch):
    rng = np.random.default_rng(0)
    image = rng.standard_normal((3, *(axis.input_length for axis in axes), 37), np.float32)
    weights = rng.standard_normal((37, *(axis.kernel for axis in axes)), np.float32)
    bias = rng.standard_normal(37, np.float32)
    bits = [made(axes, image, weights, bias, np.float32, compiled, monkeypatch).tobytes() for compiled in (False, True)]
    assert bits[0] == bits[1]


@pytest.mark.parametrize("batch", [1, 3])
def test_the_work_is_cut_into_pieces(batch):
    layer = elements((transposed(32, 4, 2, 1), transposed(32, 4, 2, 1)), batch)
    assert batch * len(layer.pieces) >= PIECES
    outputs = [n for one, _ in layer.pieces for n in range(one.start, one.stop)]
    assert outputs == list(range(64))
    assert sum(len(rows) for _, rows in layer.pieces) == 2 * 64 - 2  # two rows of taps, but for both ends


def test_what_has_no_rows_or_too_many_is_not_listed():
    assert elements((strided(64, 3, 1, 1),), 1) is None
    assert elements((strided(9999, 9, 1, 4), strided(64, 3, 1, 1)), 1) is None
