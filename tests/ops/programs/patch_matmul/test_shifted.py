"""Shifted images: sums of the definition, exactly where numbers are small, and the same bits with and without loops."""

import importlib.util

import numpy as np
import pytest

from device.host.products import UNPACKED, blas_adds
from device.host.threads import side_by_side
from ops.programs.patch_matmul import shifted as module
from ops.programs.patch_matmul import shifted_pixels as pixels_module
from ops.programs.patch_matmul.float64 import _gathered, _products
from ops.programs.patch_matmul.shifted import multiply_shifted, shifted
from ops.programs.patch_matmul.shifted_bands import MOST_NUMBERS
from ops.programs.patch_matmul.shifted_layer import bundled
from ops.programs.patch_matmul.shifted_pixels import shifted_pixels, sum_shifted
from tests.ops.programs.patch_matmul.padded_axes import strided, transposed

pytestmark = pytest.mark.skipif(not blas_adds(), reason="numpy has another BLAS")
NUMBA = importlib.util.find_spec("numba") is not None
COMPILED = pytest.param(True, marks=pytest.mark.skipif(not NUMBA, reason="numba is not installed"))

STRIDED = [
    (strided(33, 4, 2, 1), strided(36, 3, 2, 0, 2)),
    (strided(9, 2, 1, 0), strided(16, 3, 2, 1), strided(17, 2, 1, 0)),
    (strided(300, 5, 2, 2),),
    (strided(24, 3, 1, 1), strided(24, 3, 1, 1)),
]
AXES = [
    (transposed(17, 4, 2, 1), transposed(20, 4, 2, 1)),
    (transposed(17, 3, 2, 1), transposed(20, 3, 1, 2, 2)),
    (transposed(6, 4, 2, 0), transposed(17, 2, 1, 0), strided(9, 3, 1, 1)),
    (transposed(16, 3, 3, 0, 3), transposed(16, 4, 2, 1)),  # two outputs of three meet nothing on the first axis
    (transposed(300, 3, 2, 0),),
    *STRIDED,
]
GROUPS = [(1, 16, 3), (1, 3, 20), (6, 8, 8), (4, 5, 3)]  # groups, and channels of both sides


def numbers(rng, *shape):
    return rng.integers(-4, 5, shape).astype(np.float32)


def outputs(axes, groups, compiled, monkeypatch, *, biased=True, storage=np.float32, draw=numbers):
    count, ins, outs = groups
    rng = np.random.default_rng(0)
    monkeypatch.setattr(module, "worth_loading", lambda name, seconds: compiled)
    image = draw(rng, 2, *(axis.input_length for axis in axes), ins * count)
    weights = draw(rng, count, *(axis.taps for axis in axes), ins, outs)
    bias = draw(rng, outs * count) if biased else None
    result = np.full((2, *(axis.outputs for axis in axes), outs * count), np.nan, storage)
    multiply_shifted(shifted(axes, 2, count, (ins, outs)), image, weights, bias, result, side_by_side)
    wanted = _products(_gathered(image.astype(np.float64), axes), weights.astype(np.float64))
    return result, (wanted if bias is None else wanted + bias).astype(storage)


def sums(axes, groups, compiled, monkeypatch, draw=numbers):
    count, ins, outs = groups
    rng = np.random.default_rng(0)
    monkeypatch.setattr(pixels_module, "worth_loading", lambda name, seconds: compiled)
    image = draw(rng, 2, *(axis.outputs for axis in axes), ins * count)
    other = draw(rng, 2, *(axis.input_length for axis in axes), outs * count)
    found = sum_shifted(shifted_pixels(axes, 2, count, (ins, outs)), image, other, side_by_side)
    view = _gathered(other.astype(np.float64), axes).reshape(image[..., 0].size, -1, count, outs)
    return found, np.einsum("rgi,rtgo->gtio", image.astype(np.float64).reshape(-1, count, ins), view)


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


@pytest.mark.parametrize("axes", STRIDED, ids=range(len(STRIDED)))
@pytest.mark.parametrize("groups", GROUPS, ids=str)
@pytest.mark.parametrize("compiled", [False, COMPILED])
def test_sums_of_pixels_are_those_of_the_definition(axes, groups, compiled, monkeypatch):
    found, wanted = sums(axes, groups, compiled, monkeypatch)
    assert np.array_equal(found, wanted)


@pytest.mark.skipif(not NUMBA, reason="numba is not installed")
@pytest.mark.parametrize("groups", GROUPS, ids=str)
def test_compiled_loops_leave_no_trace_in_the_numbers(groups, monkeypatch):
    def draw(rng, *shape):
        return rng.standard_normal(shape, np.float32)

    for make, axes in ((outputs, AXES[0]), (outputs, STRIDED[0]), (sums, STRIDED[0])):
        bits = [make(axes, groups, compiled, monkeypatch, draw=draw)[0].tobytes() for compiled in (False, True)]
        assert bits[0] == bits[1]


def test_zeros_of_other_groups_meet_no_infinity(monkeypatch):
    """Sums of a group of eight are one product without zeros in between: what one has is not seen by its neighbors."""
    axes = (transposed(16, 4, 2, 1), transposed(16, 4, 2, 1))
    layer = shifted(axes, 1, 4, (8, 8))
    assert layer.bundled.size == 1
    image, weights = np.ones((1, 16, 16, 32), np.float32), np.ones((4, 4, 4, 8, 8), np.float32)
    image[..., 8:16] = np.inf
    result = np.empty((1, 32, 32, 32), np.float32)
    multiply_shifted(layer, image, weights, None, result, side_by_side)
    assert np.isfinite(result[..., :8]).all()
    assert np.isfinite(result[..., 16:]).all()


@pytest.mark.parametrize(("batch", "groups"), [(1, (32, 8, 8)), (8, (1, 64, 3)), (1, (1, 64, 3))])
def test_bands_hold_every_row_once_and_stay_in_the_cache(batch, groups):
    count, ins, outs = groups
    work = shifted((transposed(64, 4, 2, 1), transposed(64, 4, 2, 1)), batch, count, (ins, outs))
    assert sum(int(band.outputs[:, 2:5].prod(axis=1).sum()) for band in work.bands) == 128 * 128 * work.channels[1]
    assert work.parts % work.together == 0
    assert all(sum(band.numbers) * work.together <= 1.25 * MOST_NUMBERS for band in work.bands)
    for band in work.bands:
        products = band.products
        assert (products.calls[:, 0] * products.calls[:, 1] * products.columns <= UNPACKED).all()


@pytest.mark.parametrize(("axes", "groups", "channels"), [
    ((strided(8, 3, 1, 1), strided(8, 3, 1, 1)), 1, (16, 3)),  # 64 positions
    ((strided(16, 3, 1, 1), strided(16, 9, 1, 12, 3)), 1, (16, 3)),  # more zeros than numbers
    ((strided(16, 3, 1, 1), strided(16, 3, 1, 1)), 1, (3, 3)),  # too few channels on both sides
    ((strided(16, 3, 1, 1), strided(16, 3, 1, 1)), 1, (512, 16)),  # too many for a long product
])  # fmt: skip
def test_other_ways_take_less(axes, groups, channels):
    assert shifted(axes, 1, groups, channels) is None
    assert shifted_pixels(axes, 1, groups, channels) is None


def test_groups_are_folded_where_that_multiplies_fewer_zeros():
    """Two neighbors of eight channels fill the sixteen columns that BLAS multiplies at a time."""
    up, down = (transposed(32, 4, 2, 1),) * 2, (strided(64, 4, 2, 1),) * 2
    forward = bundled(up, 32, (8, 8), summed=False)
    assert (forward.layer.folded, forward.size, forward.widths(8, 8)) == (True, 1, (8, 16))
    assert len(forward.layer.meetings) == 8
    gradient = bundled(down, 32, (8, 8), summed=True)
    assert (gradient.layer.folded, gradient.size, gradient.widths(8, 8)) == (True, 1, (16, 8))
    data = bundled(down, 32, (8, 8), summed=False)
    assert (data.layer.folded, data.size, data.widths(8, 8)) == (True, 2, (32, 16))
    wide = bundled(up, 4, (32, 32), summed=False)
    assert wide.size == 1
