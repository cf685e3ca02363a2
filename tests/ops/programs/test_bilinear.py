"""Bilinear upsampling: the pixels that outputs lie between, their weights, and what each core reads."""

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT, FAST
from device.numbers.formats import BFLOAT16
from ops.programs.bilinear import BilinearUpsample
from ops.programs.halo.transfers import upsampled_bounds
from ops.window import PaddedAxis, PaddedInput
from tests.build import op_values


def upsampled(image, scale, arithmetic=EXACT):
    """An image [H, W] of one channel with more rows and columns."""
    values = np.array(image, np.float32).astype(BFLOAT16.storage)[None, :, :, None]
    return op_values(BilinearUpsample(shape=values.shape, scale=scale), values, arithmetic=arithmetic)[0, :, :, 0]


@pytest.mark.parametrize("arithmetic", [EXACT, FAST], ids=["exact", "fast"])
def test_outputs_lie_between_pixels(arithmetic):
    """At a quarter and three quarters of the way; the edges repeat."""
    assert upsampled([[0, 4]], (1, 2), arithmetic).tolist() == [[0, 1, 3, 4]]
    assert upsampled([[0, 4], [8, 12]], (2, 1), arithmetic).tolist() == [[0, 4], [2, 6], [6, 10], [8, 12]]


def test_a_third_is_cut_off_to_bfloat16():
    """2/3 and 1/3 lose the same share, and so does the one on a pixel, which comes out a little ahead of it."""
    assert upsampled([[256, 256]], (1, 3)).tolist() == [[255] * 6]


def frame(side, batch=1):
    axis = PaddedAxis(input_length=side, before=1, after=1, kernel=2, dilation=1, stride=1)
    return PaddedInput(batch=batch, rows=axis, columns=axis)


def test_a_later_core_may_begin_at_an_earlier_stick():
    """2x2 pixels in a frame of 4x4: windows in rows 0, 1, 1 and 2 reach 5 sticks."""
    starts, stops = upsampled_bounds(frame(2), (2, 2), output_rows=2, cores=9)
    assert starts.tolist() == [0, 1, 4, 5, 4, 5, 8, 9, 16]  # the last core has no output
    assert (stops - starts).tolist() == [7] * 8 + [0]


def test_a_core_may_have_outputs_of_two_images():
    starts, stops = upsampled_bounds(frame(2, batch=2), (1, 1), output_rows=3, cores=3)
    assert starts.tolist() == [5, 10, 25]  # windows 5, 6, 9 | 10, 16 + 5, 16 + 6 | 16 + 9, 16 + 10
    assert stops.tolist() == [9 + 6, 22 + 6, 26 + 6]
