"""The host's algorithms: each gives the sums of the definition, and the same bits with compiled loops and without.

Sums of products of small whole numbers are exact in float32, in any order.
"""

import importlib.util
from itertools import permutations

import numpy as np
import pytest

from device.host import products, threads
from device.host.products import UNPACKED, blas_adds
from device.host.threads import locked, side_by_side
from ops.programs.patch_matmul import depthwise, fast, gather, shifted
from ops.programs.patch_matmul.depthwise import add_up_elements, elements
from ops.programs.patch_matmul.direct import add_up_directly, direct, direct_pixels, sum_directly, whole
from ops.programs.patch_matmul.float64 import _gathered, _products
from ops.programs.patch_matmul.gather import do, in_one_piece
from ops.programs.patch_matmul.op import Patches
from ops.programs.patch_matmul.scatter import PLANES, scattered, scatters
from ops.programs.patch_matmul.shifted import multiply_shifted, shifted_pixels, sum_shifted
from ops.programs.patch_matmul.shifted_layer import MOST_NUMBERS, PIECES, bands_of, bundled, numbers_of
from ops.window import PaddedAxis, convolution_axis, transposed_axis

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
]
AXES = [
    (up(17, 4, 2, 1), up(20, 4, 2, 1)),
    (up(17, 3, 2, 1), up(20, 3, 1, 2, 2)),
    (up(6, 4, 2, 0), up(17, 2, 1, 0), down(19, 3, 1, 1)),
    (up(16, 3, 3, 0, 3), up(16, 4, 2, 1)),  # two outputs of three meet nothing on the first axis
    *STRIDED,
]
LINES = [(down(300, 5, 2, 2),), (up(300, 3, 2, 0),)]
FLAT = [(down(24, 3, 1, 1), down(24, 3, 1, 1))]
UP, DOWN = (up(32, 4, 2, 1),) * 2, (down(64, 4, 2, 1),) * 2


def directly(axes, image, weights, bias, result, each):
    add_up_directly(direct(axes, len(image), weights.shape[-2:], len(weights)), image, weights, bias, result, each)


def from_shifted_images(axes, image, weights, bias, result, each):
    layer = shifted.shifted(axes, len(image), len(weights), weights.shape[-2:])
    multiply_shifted(layer, image, weights, bias, result, each)


def channel_by_channel(axes, image, weights, bias, result, each):
    add_up_elements(elements(axes, len(image)), image, weights[..., 0, 0], bias, result, each)


def where_they_belong(axes, image, weights, bias, result, each):
    each(do, list(scattered(axes, image, weights[0], bias, result)))


OUTPUTS = [  # algorithm, layers, groups and channels of a group on both sides
    pytest.param(directly, AXES, [(1, 16, 48), (2, 16, 48)], marks=needs_blas),
    pytest.param(
        from_shifted_images, [*AXES, *LINES, *FLAT], [(1, 16, 3), (1, 3, 20), (6, 8, 8), (4, 5, 3)], marks=needs_blas
    ),
    (channel_by_channel, [*AXES, (up(6, 3, 3, 0, 3), up(6, 1, 2, 0))], [(5, 1, 1)]),
    (
        where_they_belong,
        [*AXES[:1], (up(5, 3, 1, 1), up(6, 3, 2, 2, 2)), LINES[1]],
        [(1, 2, 16), (1, 70, 48), (1, 3, 1)],
    ),
]


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.skipif(not NUMBA, reason="no numba"))])
def compiled(request, monkeypatch):
    """Whether loops are compiled."""
    loads(monkeypatch, request.param)
    return request.param


def loads(monkeypatch, compiled):
    for module in (products, shifted, depthwise):
        monkeypatch.setattr(module, "worth_loading", lambda name, seconds: compiled)


def small(rng, *shape):
    return rng.integers(-4, 5, shape).astype(np.float32)


def drawn(rng, *shape):
    return rng.standard_normal(shape, np.float32)


def layer_of(axes, groups, draw=small, batch=2):
    """Image, weights and bias."""
    rng, (count, ins, outs) = np.random.default_rng(0), groups
    image = draw(rng, batch, *(axis.input_length for axis in axes), ins * count)
    return image, draw(rng, count, *(axis.kernel for axis in axes), ins, outs), draw(rng, outs * count)


def computed(algorithm, axes, image, weights, bias, storage=np.float32):
    outs = len(weights) * weights.shape[-1]
    result = np.full((len(image), *(axis.outputs for axis in axes), outs), np.nan, storage)
    algorithm(axes, image, weights, bias, result, side_by_side)
    return result


@pytest.mark.parametrize(("algorithm", "layers", "channels"), OUTPUTS)
def test_outputs_are_those_of_the_definition(algorithm, layers, channels, compiled):
    for axes in layers:
        for number, groups in enumerate(channels):
            image, weights, bias = layer_of(axes, groups)
            wanted = _products(_gathered(image.astype(np.float64), axes), weights.astype(np.float64))
            assert np.array_equal(computed(algorithm, axes, image, weights, bias), wanted + bias)
            if number == 0:
                assert np.array_equal(computed(algorithm, axes, image, weights, None), wanted)
                rounded = (wanted + bias).astype(np.float16)
                assert np.array_equal(computed(algorithm, axes, image, weights, bias, np.float16), rounded)


@pytest.mark.skipif(not NUMBA, reason="numba is not installed")
@pytest.mark.parametrize(("algorithm", "layers", "channels"), OUTPUTS[:3])
def test_compiled_loops_leave_no_trace_in_the_numbers(algorithm, layers, channels, monkeypatch):
    for axes in (layers[0], layers[-1]):
        for groups in channels:
            layer, result = layer_of(axes, groups, drawn), []
            for compiled in (False, True):
                loads(monkeypatch, compiled)
                result.append(computed(algorithm, axes, *layer).tobytes())
            assert result[0] == result[1]


def directly_over_pixels(axes, image, other, count, ins, outs):
    return sum_directly(direct_pixels(axes, len(image), (ins, outs), count), image, other, side_by_side)


def over_shifted_pixels(axes, image, other, count, ins, outs):
    return sum_shifted(shifted_pixels(axes, len(image), count, (ins, outs)), image, other, side_by_side)


def pixels_of(axes, groups, draw=small):
    """Pixels, and the image whose patches they are multiplied by."""
    rng, (count, ins, outs) = np.random.default_rng(0), groups
    image = draw(rng, 2, *(axis.outputs for axis in axes), ins * count)
    return image, draw(rng, 2, *(axis.input_length for axis in axes), outs * count)


PIXELS = [
    (directly_over_pixels, STRIDED, [(1, 160, 32), (2, 160, 32)]),
    (over_shifted_pixels, [*STRIDED, LINES[0], *FLAT], [(1, 16, 3), (1, 3, 20), (6, 8, 8), (4, 5, 3)]),
]


@needs_blas
@pytest.mark.parametrize(("algorithm", "layers", "channels"), PIXELS)
def test_sums_over_pixels_are_those_of_the_definition(algorithm, layers, channels, compiled):
    for axes in layers:
        for groups in channels:
            image, other = pixels_of(axes, groups)
            count, ins, outs = groups
            view = _gathered(other.astype(np.float64), axes).reshape(image[..., 0].size, -1, count, outs)
            wanted = np.einsum("rgi,rtgo->gtio", image.astype(np.float64).reshape(-1, count, ins), view)
            assert np.array_equal(algorithm(axes, image, other, *groups), wanted)


@needs_blas
@pytest.mark.skipif(not NUMBA, reason="numba is not installed")
@pytest.mark.parametrize(("algorithm", "layers", "channels"), PIXELS)
def test_compiled_sums_have_the_same_bits(algorithm, layers, channels, monkeypatch):
    for groups in channels:
        images, result = pixels_of(layers[0], groups, drawn), []
        for compiled in (False, True):
            loads(monkeypatch, compiled)
            result.append(algorithm(layers[0], *images, *groups).tobytes())
        assert result[0] == result[1]


@needs_blas
def test_an_infinity_stays_where_it_belongs():
    """It meets the last output of a row under one tap; zeros around the image and other groups meet nothing."""
    axes, ones = FLAT[0], np.ones((1, 24, 24, 16), np.float32)
    image, other = ones.copy(), ones.copy()
    image[0, 5, 23, :2], image[0, 5, 23, 3:], other[0, 4, 22, 0] = 0, 0, np.inf
    assert np.isfinite(sum_directly(direct_pixels(axes, 1, (16, 16), 1), image, other, locked)[..., 1:]).all()
    weights = np.full((1, 3, 3, 16, 16), np.inf, np.float32)
    assert (computed(directly, axes, ones, weights, None) == np.inf).all()
    groups = np.ones((1, 24, 24, 32), np.float32)
    groups[..., 8:16] = np.inf
    result = computed(from_shifted_images, (up(24, 4, 2, 1),) * 2, groups, np.ones((4, 4, 4, 8, 8), np.float32), None)
    assert np.isfinite(result[..., :8]).all()
    assert (result[..., 8:16] == np.inf).all()
    assert np.isfinite(result[..., 16:]).all()


@needs_blas
@pytest.mark.parametrize(("axes", "ins", "outs"), [
    ((down(64, 3, 1, 1),), 32, 32),  # one axis: no rows
    ((down(64, 3, 1, 1), down(15, 3, 1, 1)), 32, 32),  # 15 positions of a row
    ((down(64, 3, 1, 1), down(64, 3, 1, 1)), 15, 32),  # too few channels for BLAS
    ((down(64, 3, 1, 1), down(64, 3, 1, 1)), 32, 15),
    ((down(64, 3, 1, 1), down(64, 3, 1, 1)), 4096, 131),  # 131 has no part that is 16 or more and small enough
    ((down(999, 9, 1, 4), down(64, 9, 1, 4)), 32, 32),  # more products than are listed
])  # fmt: skip
def test_patches_are_gathered_where_that_is_less(axes, ins, outs):
    assert direct(axes, 1, (ins, outs), 1) is None
    assert direct_pixels(axes, 1, (ins, outs), 1) is None


def test_layers_that_other_algorithms_do_not_compute():
    assert elements(LINES[0], 1) is None
    assert elements((down(9999, 9, 1, 4), down(64, 3, 1, 1)), 1) is None
    assert scatters((up(32, 4, 2, 1),) * 2, 8, np.zeros((4, 4, 64, 3), np.float32))
    assert not scatters((down(8, 2, 2, 0),) * 2, 1, np.zeros((2, 2, 64, 3), np.float32))
    # Adding up moves 819,200 numbers, gathering 950,272; but 15 of 16 products would not be needed.
    weights = np.zeros((100, 512, 4, 4), np.float32).transpose(2, 3, 1, 0)
    assert not scatters((down(4, 4, 1, 0),) * 2, 8, weights)
    assert whole((up(8, 2, 2, 0),) * 2, (16, 16))
    assert not whole((up(8, 2, 2, 0),) * 2, (17, 16))
    assert shifted.shifted((PaddedAxis(input_length=3, before=2, after=0, kernel=0),), 1, 1, (16, 16)) is None


@needs_blas
@pytest.mark.parametrize(("ins", "outs"), [(512, 256), (32, 1024), (2048, 128)])
def test_products_are_small_enough_and_hold_every_column_once(ins, outs):
    result = direct((up(32, 2, 2, 0),) * 2, 1, (ins, outs), 1).products
    assert (result.calls[:, 0] * result.columns * ins <= UNPACKED).all()
    assert result.loops[1].times * result.columns == outs
    layer = direct_pixels((down(64, 2, 2, 0),) * 2, 1, (ins, outs), 1)
    assert (layer.products.calls[:, 1] * layer.products.columns * layer.block <= UNPACKED).all()
    assert ins % layer.block == outs % layer.products.columns == 0


@needs_blas
def test_the_work_is_cut_into_pieces_for_all_threads():
    for batch in (1, 3, 20):
        for layer in (direct(UP, batch, (32, 32), 1), elements(UP, batch)):
            assert batch * len(layer.pieces) >= PIECES
            assert [n for one, _ in layer.pieces for n in range(one.start, one.stop)] == list(range(64))
    for kernel, sections, together in ((3, 2, 2), (4, 1, 2), (2, 4, 2), (1, 16, 1), (6, 1, 4)):
        layer = direct_pixels((down(60, kernel, kernel, 0), down(120, kernel, kernel, 0)), 2, (32, 32), 3)
        assert len(layer.pieces) >= PIECES
        assert layer.sections == sections
        assert {piece.taps.stop - piece.taps.start for piece in layer.pieces} == {together}
        calls = [n for piece in layer.pieces for n in range(piece.calls.start, piece.calls.stop)]
        assert calls == list(range(len(layer.products.calls)))
    for batch, (groups, *channels) in ((1, (32, 8, 8)), (8, (1, 64, 3)), (1, (1, 64, 3))):
        one = bundled((up(64, 4, 2, 1),) * 2, groups, tuple(channels), summed=False)
        widths, parts = one.widths(*channels), groups // one.size
        bands, together = bands_of(one, widths, parts, batch)
        assert [row for first, rows in bands for row in range(first, first + rows)] == list(range(65))
        assert together * sum(numbers_of(one, widths, bands[0][1])) <= MOST_NUMBERS
        assert batch * parts // together * len(bands) >= PIECES
        op = shifted_pixels(DOWN, batch, groups, tuple(channels))
        pieces = op.shape[0] // op.together
        assert op.sections * pieces >= min(PIECES, batch * len(op.bands) * pieces)


def test_groups_are_folded_where_that_multiplies_fewer_zeros():
    """Two neighbors of eight channels fill the sixteen columns that BLAS multiplies at a time."""
    forward = bundled(UP, 32, (8, 8), summed=False)
    assert (forward.layer.folded, forward.size, forward.widths(8, 8)) == (True, 1, (8, 16))


@pytest.mark.parametrize("stored", list(permutations(range(4))))
@pytest.mark.parametrize(("ins", "outs"), [(40, 3), (40, 20)])
def test_sums_do_not_depend_on_how_weights_lie_in_memory(monkeypatch, stored, ins, outs):
    monkeypatch.setattr(gather, "LEAST_ROWS", 8)
    axes = (up(3, 3, 2, 1),) * 2
    image, weights, bias = layer_of(axes, (1, ins, outs), batch=3)
    for mirrored in ((), (1,), (1, 2)):
        flipped = np.flip(weights, mirrored)
        laid = np.flip(np.ascontiguousarray(weights[0].transpose(stored)).transpose(np.argsort(stored))[None], mirrored)
        wanted = _products(_gathered(image.astype(np.float64), axes), flipped.astype(np.float64)) + bias
        assert np.array_equal(computed(where_they_belong, axes, image, laid, bias), wanted)
        assert np.array_equal(in_one_piece(laid, side_by_side).reshape(flipped.shape), flipped)
    assert in_one_piece(weights, side_by_side) is weights


def test_few_positions_are_multiplied_by_some_channels_at_a_time():
    axes = (up(4, 4, 2, 1),) * 2
    image, weights, result = np.zeros((8, 4, 4, 5)), np.zeros((4, 4, 5, 64), np.float32), np.empty((8, 8, 8, 64))
    assert len(list(scattered(axes, image, weights, None, result))) == 4  # 128 positions, 1,024 columns
    assert len(list(scattered(axes, image[:3], weights, None, result[:3]))) == 1  # 48 positions
    narrow = axes, image, weights[..., :7], None, result[..., :7]
    assert len(list(scattered(*narrow))) == 2  # 112 columns: images are cut
    assert PLANES > 7


class Op:
    """What `fast.patch_matmul` reads of a program."""

    def __init__(self, axes, batch, channels, groups):
        self.patches = Patches(batch=batch, axes=axes, channels=channels, groups=groups, bundles=1)


@pytest.mark.parametrize(
    "axes", [(up(7, 3, 2, 1), up(6, 3, 2, 1)), (down(7, 3, 2, 1), down(6, 3, 2, 1)), (up(9, 3, 2, 1),)]
)
@pytest.mark.parametrize("groups", [(1, 8, 6), (1, 8, 64), (2, 4, 2), (2, 32, 32), (8, 1, 1), (8, 1, 2)], ids=str)
def test_the_result_does_not_tell_how_many_threads_there_were(axes, groups, monkeypatch):
    """Whatever algorithm is chosen; runs, copies and pieces are of a few pixels."""
    for name, value in (("RUN_BYTES", 1 << 10), ("LEAST_ROWS", 4), ("COPIED_BYTES", 256)):
        monkeypatch.setattr(gather, name, value)
    monkeypatch.setattr(threads, "cores", lambda: 2)
    count, ins, outs = groups
    for draw in (small, drawn):
        image, weights, bias = layer_of(axes, groups, draw, batch=3)
        for added in (bias, None):
            result = []
            for each in (locked, side_by_side):
                result.append(np.empty((3, *(axis.outputs for axis in axes), outs * count), np.float32))
                fast.patch_matmul(Op(axes, 3, ins * count, count), image, weights, added, result[-1], each)
            assert result[0].tobytes() == result[1].tobytes()
            wanted = _products(_gathered(image.astype(np.float64), axes), weights.astype(np.float64))
            np.testing.assert_allclose(result[0], wanted + (0 if added is None else added), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("groups", [(1, 6, 8), (2, 32, 32), (8, 1, 1), (8, 2, 1)], ids=str)
@pytest.mark.parametrize("axes", [(down(9, 3, 2, 1), down(8, 3, 2, 1)), (down(9, 3, 2, 1),)], ids=len)
def test_sums_over_pixels_do_not_tell_either(axes, groups, monkeypatch):
    monkeypatch.setattr(gather, "LEAST_ROWS", 4)
    monkeypatch.setattr(gather, "RUN_BYTES", 1 << 10)
    monkeypatch.setattr(threads, "cores", lambda: 2)
    (count, ins, outs), (image, other) = groups, pixels_of(axes, groups, drawn)
    patches = Op(axes, 2, outs * count, count).patches
    result = [fast.pixel_matmul(patches, image, other, each) for each in (locked, side_by_side)]
    assert result[0].tobytes() == result[1].tobytes()
    view = _gathered(other.astype(np.float64), axes).reshape(image[..., 0].size, -1, count, outs)
    wanted = np.einsum("rgi,rtgo->gtio", image.astype(np.float64).reshape(-1, count, ins), view)
    np.testing.assert_allclose(result[0].reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-4)
