"""Planes of an image: what a tap meets lies one place after the other."""

import numpy as np
import pytest

from device.host.threads import in_turn
from ops.frame.axis import axis_of_windows, convolution_axis
from ops.programs.patch_matmul.gather import Margin
from ops.programs.patch_matmul.planes import PlaneLayout, Span

STRIDED = convolution_axis(input_length=9, kernel=4, stride=2, padding=(1, 1), dilation=1)
DILATED = convolution_axis(input_length=9, kernel=3, stride=2, padding=(2, 2), dilation=2)
BACKWARDS = axis_of_windows(input_length=5, outputs=5, taps=2, start=1, spacing=-2)


def test_positions_with_the_same_rest_make_a_plane():
    # tap k of output p meets 2 p + k - 1: of the odd ones p - 1 and p, of the even ones p and p + 1, of 4 outputs
    assert Span.of([STRIDED]) == Span(step=2, rests=(0, 1), low=-1, length=6)
    assert Span.of([DILATED]) == Span(step=2, rests=(0,), low=-1, length=7)  # 2 p + 2 k - 2, of 5 outputs


@pytest.mark.parametrize(
    ("rest", "places", "inputs"), [(0, slice(1, 6), slice(0, 10, 2)), (1, slice(1, 5), slice(1, 9, 2))]
)
def test_places_hold_every_other_input(rest, places, inputs):
    assert Span.of([STRIDED]).sources(rest, 9) == (places, inputs)


def test_places_beyond_the_inputs_hold_none():
    span = Span(step=3, rests=(2,), low=4, length=2)
    places, inputs = span.sources(2, 9)
    assert (places, len(range(9)[inputs])) == (slice(0, 0), 0)


@pytest.mark.parametrize("axes", [(STRIDED,), (DILATED, STRIDED), (BACKWARDS, DILATED), (STRIDED, BACKWARDS, STRIDED)])
@pytest.mark.parametrize("parts", [1, 2])
def test_taps_meet_what_patches_hold(axes, parts):
    rng = np.random.default_rng(0)
    image = rng.standard_normal((2, *(axis.input_length for axis in axes), 4), np.float32)
    layout = PlaneLayout.of([[axis] for axis in axes], 2)
    planes = layout.planes_of(image, in_turn, parts=parts)
    run = layout.run((slice(0, 2), *(slice(1, axis.outputs) for axis in axes)))
    for part in range(parts):
        view = Margin(image, [[axis] for axis in axes], parts=parts).patches(axes, part)
        wanted = view[(slice(None), *(slice(1, None) for _ in axes))]
        found = [
            run.of_outputs(planes[part, plane][run.first + offset : run.first + offset + run.count])
            for plane, offset in layout.taps(axes)
        ]
        taps = np.stack(found, axis=-2)
        assert np.array_equal(taps.reshape(-1), wanted.reshape(-1))


def test_an_image_that_is_a_plane_is_not_copied():
    image = np.ones((1, 4, 2), np.float32)
    axis = axis_of_windows(input_length=4, outputs=3, taps=2, start=0)
    layout = PlaneLayout.of([[axis]], 1)
    assert np.shares_memory(layout.planes_of(image, in_turn), image)
    assert np.shares_memory(layout.planes_of(image, in_turn, parts=2), image)
    assert not np.shares_memory(layout.planes_of(image[:, ::-1], in_turn), image)
