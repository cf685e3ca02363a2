"""Fast values of the patch programs: the sums of the definition, the same bits with compiled loops and without.

Sums of products of small whole numbers are exact in float32, in any order.
"""

import importlib.util
from itertools import permutations

import numpy as np
import pytest

from device.host import products, threads
from device.host.products import blas_adds
from device.host.threads import locked, side_by_side
from ops.programs.patch_matmul import fast, gather
from ops.programs.patch_matmul.fast import meetings
from ops.programs.patch_matmul.float64 import _gathered, _products
from ops.programs.patch_matmul.gather import bundle_count, contiguous
from ops.programs.patch_matmul.op import Patches
from ops.window import convolution_axis, transposed_axis

NUMBA = importlib.util.find_spec("numba") is not None
needs_blas = pytest.mark.skipif(not blas_adds(), reason="numpy has another BLAS")


def up(length, kernel, stride, padding, dilation=1):
    return transposed_axis(
        input_length=length, kernel=kernel, stride=stride, padding=(padding, padding), output_padding=0,
        dilation=dilation,
    )  # fmt: skip


def down(length, kernel, stride, padding, dilation=1):
    return convolution_axis(
        input_length=length, kernel=kernel, stride=stride, padding=(padding, padding), dilation=dilation
    )


STRIDED = [
    (down(33, 4, 2, 1), down(36, 3, 2, 0, 2)),
    (down(9, 2, 1, 0), down(16, 3, 2, 1), down(17, 2, 1, 0)),
    (down(300, 5, 2, 2),),
]
AXES = [
    (up(17, 4, 2, 1), up(20, 4, 2, 1)),
    (up(17, 3, 2, 1), up(20, 3, 1, 2, 2)),
    (up(3, 4, 2, 0), up(17, 2, 1, 0), down(19, 3, 1, 1)),
    (up(16, 3, 3, 0, 3), up(16, 4, 2, 1)),  # two outputs of three meet nothing on the first axis
    (up(300, 3, 2, 0),),
    *STRIDED,
]
DIRECT = [(1, 16, 48), (2, 16, 48), (6, 8, 8), (1, 20, 3)]  # groups, and channels of a group on both sides
OTHERS = [(1, 3, 20), (4, 5, 3), (5, 1, 1), (3, 2, 1)]
KINDS = [(groups, compiled) for groups in DIRECT for compiled in (False, True)[: 1 + NUMBA]]
KINDS += [(groups, False) for groups in OTHERS]
LOW = (down(3, 3, 1, 1), down(18, 3, 1, 1))


def loads(monkeypatch, compiled):
    monkeypatch.setattr(products, "worth_loading", lambda name, seconds: compiled)


def small(rng, *shape):
    return rng.integers(-4, 5, shape).astype(np.float32)


def drawn(rng, *shape):
    return rng.standard_normal(shape, np.float32)


class Op:
    """What `fast.patch_matmul` reads of a program."""

    def __init__(self, axes, batch, groups, ins, outs):
        bundles = bundle_count(groups, groups * ins, groups * outs)
        self.patches = Patches(batch=batch, axes=axes, channels=groups * ins, groups=groups, bundles=bundles)


def layer_of(axes, groups, draw=small, batch=2):
    """Image, weights and bias."""
    rng, (count, ins, outs) = np.random.default_rng(0), groups
    image = draw(rng, batch, *(axis.input_length for axis in axes), ins * count)
    return image, draw(rng, count, *(axis.kernel for axis in axes), ins, outs), draw(rng, outs * count)


def computed(axes, image, weights, bias, storage=np.float32, each=side_by_side):
    outs = len(weights) * weights.shape[-1]
    result = np.full((len(image), *(axis.outputs for axis in axes), outs), np.nan, storage)
    op = Op(axes, len(image), len(weights), *weights.shape[-2:])
    fast.patch_matmul(op, image, weights, bias, result, each)
    return result


def defined(axes, image, weights):
    return _products(_gathered(image.astype(np.float64), axes), weights.astype(np.float64))


@pytest.mark.parametrize(("groups", "compiled"), KINDS, ids=str)
def test_outputs_are_those_of_the_definition(groups, compiled, monkeypatch):
    loads(monkeypatch, compiled)
    for axes in AXES:
        image, weights, bias = layer_of(axes, groups)
        wanted = defined(axes, image, weights)
        if axes is AXES[0]:
            assert np.array_equal(computed(axes, image, weights, None), wanted)
        assert np.array_equal(computed(axes, image, weights, bias), wanted + bias)
        assert np.array_equal(computed(axes, image, weights, bias, np.float16), (wanted + bias).astype(np.float16))


def pixels_of(axes, groups, draw=small):
    """Pixels, and the image whose patches they are multiplied by."""
    rng, (count, ins, outs) = np.random.default_rng(0), groups
    image = draw(rng, 2, *(axis.outputs for axis in axes), ins * count)
    return image, draw(rng, 2, *(axis.input_length for axis in axes), outs * count)


def summed(axes, groups, image, other, each=side_by_side):
    count, ins, outs = groups
    return fast.pixel_matmul(Op(axes, 2, count, outs, ins).patches, image, other, each)


def defined_sums(axes, groups, image, other):
    count, ins, outs = groups
    view = _gathered(other.astype(np.float64), axes).reshape(image[..., 0].size, -1, count, outs)
    sums = np.einsum("rgi,rtgo->gtio", image.astype(np.float64).reshape(-1, count, ins), view)
    return sums.reshape(count, *(axis.kernel for axis in axes), ins, outs)


@pytest.mark.parametrize(("groups", "compiled"), [((1, 160, 32), False), *KINDS], ids=str)
def test_sums_over_pixels_are_those_of_the_definition(groups, compiled, monkeypatch):
    loads(monkeypatch, compiled)
    for axes in STRIDED:
        images = pixels_of(axes, groups)
        assert np.array_equal(summed(axes, groups, *images), defined_sums(axes, groups, *images))


@pytest.mark.skipif(not NUMBA, reason="numba is not installed")
def test_compiled_loops_leave_no_trace_in_the_numbers(monkeypatch):
    for axes in (AXES[0], STRIDED[0]):
        for groups in (*DIRECT, (5, 1, 1)):
            layer, images, result = layer_of(axes, groups, drawn), pixels_of(STRIDED[0], groups, drawn), []
            for compiled in (False, True):
                loads(monkeypatch, compiled)
                result.append((computed(axes, *layer).tobytes(), summed(STRIDED[0], groups, *images).tobytes()))
            assert result[0] == result[1]


@needs_blas
def test_an_infinity_stays_where_it_belongs():
    """It meets the last output of a row under one tap; zeros around the image meet nothing."""
    axes, ones = (down(24, 3, 1, 1),) * 2, np.ones((1, 24, 24, 16), np.float32)
    image, other = ones.copy(), ones.copy()
    image[0, 5, 23, :2], image[0, 5, 23, 3:], other[0, 4, 22, 0] = 0, 0, np.inf
    assert np.isfinite(summed(axes, (1, 16, 16), image, other)[..., 1:]).all()
    weights = np.full((1, 3, 3, 16, 16), np.inf, np.float32)
    assert (computed(axes, ones, weights, None) == np.inf).all()


def test_taps_meet_outputs_that_lie_evenly():
    """Of two rows: a stride of 2 between inputs lets each of three taps meet every second output or so."""
    met = meetings((down(2, 1, 1, 0), up(3, 3, 2, 1)), 2)  # 5 outputs, inputs 0 1 2 under tap 1 at outputs 0 2 4
    row = [[2, 1, 0, 0], [2, 0, 1, 0], [1, 4, 1, 2], [2, 1, 2, 1]]
    assert met.tolist() == [*row, *([count, output + 5, tap, source + 3] for count, output, tap, source in row)]


@pytest.mark.parametrize("stored", list(permutations(range(4))))
def test_sums_do_not_depend_on_how_weights_lie_in_memory(stored, monkeypatch):
    monkeypatch.setattr(gather, "COPIED_BYTES", 256)
    axes = (up(3, 3, 2, 1),) * 2
    image, weights, bias = layer_of(axes, (1, 40, 20), batch=3)
    for mirrored in ((), (1,), (1, 2)):
        flipped = np.flip(weights, mirrored)
        laid = np.flip(np.ascontiguousarray(weights[0].transpose(stored)).transpose(np.argsort(stored))[None], mirrored)
        assert np.array_equal(computed(axes, image, laid, bias), defined(axes, image, flipped) + bias)
        assert np.array_equal(contiguous(laid, side_by_side), flipped)
    assert contiguous(weights, side_by_side) is weights


@pytest.mark.parametrize(
    "axes", [(up(7, 3, 2, 1), up(6, 3, 2, 1)), (down(9, 3, 2, 1), down(8, 3, 2, 1)), (down(9, 3, 2, 1),), LOW]
)
@pytest.mark.parametrize("groups", [(1, 8, 6), (2, 4, 2), (2, 32, 32), (8, 1, 1), (8, 1, 2)], ids=str)
def test_the_result_does_not_tell_how_many_threads_there_were(axes, groups, monkeypatch):
    """Whatever algorithm is chosen; runs, copies and pieces are of a few pixels."""
    for name, value in (("RUN_BYTES", 1 << 10), ("LEAST_ROWS", 4), ("COPIED_BYTES", 256)):
        monkeypatch.setattr(gather, name, value)
    monkeypatch.setattr(threads, "cores", lambda: 2)
    layer, images = layer_of(axes, groups, drawn), pixels_of(axes, groups, drawn)
    results = [computed(axes, *layer, each=each) for each in (locked, side_by_side)]
    assert results[0].tobytes() == results[1].tobytes()
    np.testing.assert_allclose(results[0], defined(axes, *layer[:2]) + layer[2], rtol=1e-4, atol=1e-4)
    if axes[0].input_dilation == 1:
        results = [summed(axes, groups, *images, each=each) for each in (locked, side_by_side)]
        assert results[0].tobytes() == results[1].tobytes()
        np.testing.assert_allclose(results[0], defined_sums(axes, groups, *images), rtol=1e-3, atol=1e-3)
