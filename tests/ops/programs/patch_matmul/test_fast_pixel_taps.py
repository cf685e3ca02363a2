"""The weight gradient tap by tap."""

import numpy as np
import pytest

from device.host.threads import in_turn, side_by_side
from ops.frame.axis import convolution_axis
from ops.programs.patch_matmul import fast_pixel_taps
from ops.programs.patch_matmul.fast_pixel_taps import layout_by_taps, sums_by_taps
from ops.programs.patch_matmul.fast_pixels import pixel_matmul
from ops.programs.patch_matmul.float64 import _gathered
from ops.programs.patch_matmul.work import Patches


def strided(length, kernel, stride, padding, dilation=1):
    return convolution_axis(
        input_length=length, kernel=kernel, stride=stride, padding=(padding, padding), dilation=dilation
    )


AXES = [
    (strided(600, 4, 2, 1),),
    (strided(34, 3, 2, 1), strided(33, 2, 1, 0)),
    (strided(40, 3, 2, 2, 2), strided(40, 3, 1, 2, 2)),
    (strided(9, 2, 1, 0), strided(16, 3, 2, 1), strided(17, 3, 2, 0)),
]


def whole(rng, *shape):
    return rng.integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("axes", AXES, ids=range(len(AXES)))
@pytest.mark.parametrize("parts", [1, 2])
def test_sums_are_those_of_the_definition(axes, parts, monkeypatch):
    monkeypatch.setattr(fast_pixel_taps, "MOST_NEEDLESS", 9.0)
    rng = np.random.default_rng(0)
    image = whole(rng, 2, *(axis.outputs for axis in axes), 32 * parts)
    other = whole(rng, 2, *(axis.input_length for axis in axes), 40 * parts)
    layout = layout_by_taps.__wrapped__(axes, 2, 32, 40, parts)
    sums = sums_by_taps(layout, image, other, parts, side_by_side)
    view = _gathered(other.astype(np.float64), axes).reshape(image[..., 0].size, -1, parts, 40)
    wanted = np.einsum("rpi,rtpo->ptio", image.astype(np.float64).reshape(-1, parts, 32), view)
    assert np.array_equal(sums, wanted)


def test_what_is_no_number_stays_where_it_belongs():
    """An infinity of the last column meets one tap; a zero between two rows times it would be no number in others."""
    axes = (strided(20, 3, 1, 1), strided(20, 3, 1, 1))
    image, other = np.zeros((1, 20, 20, 32), np.float32), np.ones((1, 20, 20, 32), np.float32)
    image[0, 5, 18], other[0, 5, 19, 0] = 1, np.inf
    layout = layout_by_taps(axes, 1, 32, 32, 1)
    assert sums_by_taps(layout, image, other, 1, in_turn) is None
    patches = Patches(batch=1, axes=axes, channels=32, groups=1, bundles=1)
    with np.errstate(invalid="ignore"):
        made = pixel_matmul(patches, image, other, in_turn)
        view = _gathered(other, axes).reshape(400, 9, 32)
        wanted = np.einsum("ri,rto->tio", image.reshape(-1, 32), view).reshape(made.shape)
    assert np.array_equal(np.isfinite(made), np.isfinite(wanted))
    assert np.isfinite(made[..., 1:]).all()


@pytest.mark.parametrize(("axes", "batch", "ins", "outs"), [
    ((strided(600, 3, 1, 1),), 1, 32, 31),  # too few channels for BLAS
    ((strided(600, 3, 1, 1),), 1, 31, 32),
    ((strided(600, 1, 1, 0),), 1, 32, 32),  # one tap
    ((strided(100, 3, 1, 1),), 1, 32, 32),  # few positions
    ((strided(2, 3, 1, 1),), 300, 32, 32),  # twice as many places as positions
])  # fmt: skip
def test_patches_are_gathered_where_that_is_less(axes, batch, ins, outs):
    assert layout_by_taps(axes, batch, ins, outs, 1) is None


def test_few_taps_are_summed_in_sections():
    layout = layout_by_taps((strided(4096, 3, 1, 1),), 1, 32, 32, 1)
    assert [sum(run.count for run in section) for section in layout.sections] == [683, 683, 683, 683, 683, 681]
    many = layout_by_taps((strided(64, 4, 2, 1), strided(64, 4, 2, 1)), 4, 32, 32, 1)
    assert [len(section) for section in many.sections] == [4]
