"""Rotations: where pixels come from, what lies outside, buffers."""

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT, FAST
from device.numbers.formats import BFLOAT16
from ops.op_models import load_spec
from ops.planners.rotate import RotateArguments, plan_rotate
from ops.programs.rotate import Rotate
from tests.build import op_values, tensor_spec


def rotated(image, angle, arithmetic=EXACT, **changes):
    """An image [H, W] of one channel."""
    values = np.array(image, np.float32).astype(BFLOAT16.storage)[None, :, :, None]
    usual = {"center": None, "fill": 0.0, "bilinear": False, "data_format": BFLOAT16} | changes
    op = Rotate(shape=values.shape, angle=angle, **usual)
    return op_values(op, values, arithmetic=arithmetic)[0, :, :, 0].tolist()


@pytest.mark.parametrize("bilinear", [False, True])
@pytest.mark.parametrize("arithmetic", [EXACT, FAST], ids=["exact", "fast"])
def test_a_quarter_counterclockwise(arithmetic, bilinear):
    assert rotated([[1, 2], [3, 4]], 90.0, arithmetic, bilinear=bilinear) == [[2, 4], [1, 3]]


def test_a_number_lies_outside():
    """Of one row the ends come from above and below; around a pixel the other leaves the image."""
    assert rotated([[1, 2, 3]], 90.0, fill=7.0) == [[7, 2, 7]]
    assert rotated([[1, 2]], 180.0, center=(0.5, 0.5)) == [[1, 0]]


def test_half_a_pixel_outside_is_half_of_what_lies_there():
    """The middle of [4, 8] lies between both after a quarter; the fill counts for the rest."""
    assert rotated([[4, 8]], 90.0, bilinear=True, fill=2.0) == [[(4 + 8 + 2 + 2) / 4] * 2]


# Recorded: device, images, mode, bytes of the circular buffers
RECORDED = [
    ("wormhole_n150", "1x16x16x320", "nearest", [640, 5120]),
    ("wormhole_n150", "1x7x64x32", "nearest", [64, 5 * 2 * 64]),  # of 7 pixels on a core
    ("wormhole_n150", "1x1024x1024x256", "nearest", [512, 15360]),
    ("blackhole_p150", "1x8x8x3", "nearest", [64, 128]),
    ("wormhole_n150", "1x8x8x64 height/8x64/8", "nearest", [128, 1024, 1024]),
    ("wormhole_n150", "1x8x8x64 height/8x64/8", "bilinear", [128, 8192, 4096, 1024]),
    ("wormhole_n150", "1x7x33x256", "bilinear", [512, 32768, 4096, 1024]),
]


@pytest.mark.parametrize(("device", "images", "mode", "sizes"), RECORDED)
def test_buffers_are_those_of_the_real_library(device, images, mode, sizes):
    (step,) = plan_rotate(RotateArguments(images=tensor_spec(images), angle=30.0, mode=mode), load_spec(device)).steps
    assert [buffer.size_bytes for buffer in step.circular_buffers] == sizes
