"""Products where operands lie: sums of the definition, exactly where numbers are small and whole."""

from math import prod

import numpy as np
import pytest

from device.host.products import UNPACKED, blas_adds
from device.host.threads import locked, side_by_side
from ops.programs.patch_matmul.direct import PIECES, add_up_directly, direct, direct_pixels, sum_directly, whole
from ops.programs.patch_matmul.float64 import _gathered, _products
from tests.ops.programs.patch_matmul.padded_axes import strided, transposed

pytestmark = pytest.mark.skipif(not blas_adds(), reason="numpy has another BLAS")


STRIDED = [
    (strided(33, 4, 2, 1), strided(36, 3, 2, 0, 2)),
    (strided(9, 2, 1, 0), strided(16, 3, 2, 1), strided(17, 2, 1, 0)),
]
AXES = [
    (transposed(17, 3, 2, 1), transposed(20, 3, 1, 2, 2)),
    (transposed(6, 4, 2, 0), transposed(7, 2, 1, 0), strided(19, 3, 1, 1)),
    (transposed(16, 3, 3, 0, 3), transposed(16, 4, 2, 1)),  # two outputs of three meet nothing on the first axis
    (transposed(3, 2, 2, 0), transposed(17, 1, 2, 0)),  # and every other one on the last
    *STRIDED,
]


def numbers(rng, *shape):
    return rng.integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("axes", AXES, ids=range(len(AXES)))
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("storage", [np.float32, np.float16])
def test_sums_are_those_of_the_definition(axes, parts, biased, storage):
    rng = np.random.default_rng(0)
    image = numbers(rng, 2, *(axis.input_length for axis in axes), 16 * parts)
    weights = numbers(rng, parts, *(axis.kernel for axis in axes), 16, 48)
    bias = numbers(rng, 48 * parts) if biased else None
    result = np.full((2, *(axis.outputs for axis in axes), 48 * parts), np.nan, storage)
    layer = direct(axes, 2, (16, 48), parts)
    add_up_directly(layer, image, weights, bias, result, side_by_side)
    wanted = _products(_gathered(image.astype(np.float64), axes), weights.astype(np.float64))
    assert np.array_equal(result, (wanted if bias is None else wanted + bias).astype(storage))


@pytest.mark.parametrize("axes", STRIDED, ids=range(len(STRIDED)))
@pytest.mark.parametrize("parts", [1, 2])
def test_sums_of_pixels_are_those_of_the_definition(axes, parts):
    rng = np.random.default_rng(0)
    image = numbers(rng, 2, *(axis.outputs for axis in axes), 160 * parts)
    other = numbers(rng, 2, *(axis.input_length for axis in axes), 32 * parts)
    layer = direct_pixels(axes, 2, (160, 32), parts)
    assert layer.block == 80  # the largest divisor of 160 up to 128
    sums = sum_directly(layer, image, other, side_by_side)
    view = _gathered(other.astype(np.float64), axes).reshape(image[..., 0].size, -1, parts, 32)
    wanted = np.einsum("rpi,rtpo->ptio", image.astype(np.float64).reshape(-1, parts, 160), view)
    assert np.array_equal(sums, wanted)


def test_an_infinity_stays_where_it_belongs():
    """It meets the last output of a row under one tap; zeros around the image meet nothing."""
    axes = (strided(20, 3, 1, 1), strided(20, 3, 1, 1))
    image, other = np.zeros((1, 20, 20, 16), np.float32), np.ones((1, 20, 20, 16), np.float32)
    image[0, 5, 19, 2], other[0, 4, 18, 0] = 1, np.inf
    image[0, :5], image[0, 6:], image[0, 5, :19] = 1, 1, 1
    sums = sum_directly(direct_pixels(axes, 1, (16, 16), 1), image, other, locked)[0]
    assert np.isfinite(sums[:, :, 1:]).all()
    weights, result = np.full((1, 3, 3, 16, 16), np.inf, np.float32), np.empty((1, 20, 20, 16), np.float32)
    add_up_directly(direct(axes, 1, (16, 16), 1), np.ones_like(image), weights, None, result, locked)
    assert (result == np.inf).all()  # and not an infinity times a zero of the margin


@pytest.mark.parametrize(("ins", "outs"), [(512, 256), (32, 1024), (2048, 128)])
def test_products_are_small_enough_and_hold_every_column_once(ins, outs):
    axes = (transposed(32, 2, 2, 0), transposed(32, 2, 2, 0))
    products = direct(axes, 1, (ins, outs), 1).products
    assert (products.calls[:, 0] * products.columns * ins <= UNPACKED).all()
    assert products.loops[1].times * products.columns == outs
    gradient = (strided(64, 2, 2, 0), strided(64, 2, 2, 0))
    layer = direct_pixels(gradient, 1, (ins, outs), 1)
    assert (layer.products.calls[:, 1] * layer.products.columns * layer.block <= UNPACKED).all()
    assert ins % layer.block == outs % layer.products.columns == 0


@pytest.mark.parametrize("batch", [1, 3, 20])
def test_the_work_is_cut_into_pieces(batch):
    axes = (transposed(32, 4, 2, 1), transposed(32, 4, 2, 1))
    layer = direct(axes, batch, (32, 32), 1)
    assert batch * len(layer.pieces) >= PIECES
    outputs, calls = zip(*layer.pieces, strict=True)
    assert [n for one in outputs for n in range(one.start, one.stop)] == list(range(64))
    assert [n for one in calls for n in range(one.start, one.stop)] == list(range(len(layer.products.calls)))


@pytest.mark.parametrize(("kernel", "sections", "together"), [(3, 2, 2), (4, 1, 2), (2, 4, 2), (1, 16, 1), (6, 1, 4)])
@pytest.mark.parametrize("parts", [1, 3])
def test_pixels_of_few_taps_have_sums_of_their_own(kernel, sections, together, parts):
    axes = (strided(60, kernel, kernel, 0), strided(120, kernel, kernel, 0))
    layer = direct_pixels(axes, 2, (32, 32), parts)
    assert len(layer.pieces) >= 8
    assert [n for one in layer.pieces for n in range(one.calls.start, one.calls.stop)] == list(
        range(len(layer.products.calls))
    )
    met = [[] for _ in range(sections)]
    for piece in layer.pieces:
        calls = layer.products.calls[piece.calls]
        taps, part = calls[:, 4] // (32 * 32) % layer.taps, calls[:, 4] // (32 * 32) // layer.taps
        assert set(taps) <= set(range(layer.taps)[piece.taps])
        assert piece.taps.stop - piece.taps.start == together
        for tap in set(taps):
            own = calls[taps == tap]
            assert (np.diff(own[part[taps == tap] == 0][:, 2]) > 0).all()  # positions in their order
            assert len(own) % parts == 0
        met[piece.section].extend(taps.tolist())
    used = 15 if sections == 16 else sections  # of 60 rows
    assert [set(taps) for taps in met if taps] == [set(range(layer.taps))] * used


def test_taps_of_a_piece_meet_a_stretch_of_positions_one_after_the_other():
    axes = (strided(64, 3, 1, 1), strided(64, 3, 1, 1))
    layer = direct_pixels(axes, 1, (64, 64), 1)
    calls = layer.products.calls[layer.pieces[0].calls]
    positions, taps = calls[:, 2] // 64, calls[:, 4] // (64 * 64)
    stretches = positions // 512  # 256 KiB of 128 channels
    assert (np.diff(stretches) >= 0).all()
    assert [set(taps[stretches == one]) for one in range(4)] == [{0, 1}] * 4  # of half the positions
    assert all((np.diff(taps[stretches == one]) >= 0).all() for one in stretches)


@pytest.mark.parametrize(("axes", "ins", "outs"), [
    ((strided(64, 3, 1, 1),), 32, 32),  # one axis: no rows
    ((strided(64, 3, 1, 1), strided(15, 3, 1, 1)), 32, 32),  # 15 positions of a row
    ((strided(64, 3, 1, 1), strided(64, 3, 1, 1)), 15, 32),  # too few channels for BLAS
    ((strided(64, 3, 1, 1), strided(64, 3, 1, 1)), 32, 15),
    ((strided(64, 3, 1, 1), strided(64, 3, 1, 1)), 32, 131),  # 131 has no part that is 16 or more and small enough
    ((strided(999, 9, 1, 4), strided(64, 9, 1, 4)), 32, 32),  # more products than are listed
])  # fmt: skip
def test_patches_are_gathered_where_that_is_less(axes, ins, outs):
    if outs != 131:
        assert direct(axes, 1, (ins, outs), 1) is None
    else:
        assert direct(axes, 1, (4096, outs), 1) is None
    assert direct_pixels(axes, 1, (ins, outs), 1) is None


def test_results_that_others_write_into_as_well_are_told_apart():
    axes = (transposed(8, 2, 2, 0), transposed(8, 2, 2, 0))
    assert whole(axes, (16, 16))
    assert not whole(axes, (17, 16))
    assert prod(axis.outputs for axis in axes) == 256
