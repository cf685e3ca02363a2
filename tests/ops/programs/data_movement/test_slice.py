"""Boxes cut out of tensors, and written into them."""

import numpy as np
import pytest

from ops.builder import PlanBuilder
from ops.op_models import load_spec
from ops.programs.data_movement.slice import Cut, Window, sliced_input
from tests.build import op_cycles, place, tensor_spec

WORMHOLE, BLACKHOLE = load_spec("wormhole_n150"), load_spec("blackhole_p150")


def box(begins, ends, shape, steps=(1, 1, 1, 1)):
    return Cut(shape=shape, begins=begins, ends=ends, steps=steps)


def test_a_box_and_that_it_takes_as_long_as_a_copy_of_it():
    array = np.arange(24.0).reshape(2, 3, 4)
    op = box((1, 0, 1), (2, 3, 4), (2, 3, 4), (1, 2, 2))
    assert np.array_equal(op.moved(array), array[1:2, ::2, 1::2])
    for layout in ("rows", "tile"):
        op = box((0, 0, 0, 0), (1, 2, 64, 64), (1, 8, 64, 64))
        source, result = (tensor_spec(f"1x{images}x64x64 {layout} l1") for images in (8, 2))
        assert op_cycles(op, source, result) == op_cycles(op, result, result)


@pytest.mark.parametrize(
    ("image", "shards", "rows", "name", "refused"),
    [
        # a window that is the whole image is dealt to shards of all channels as any tensor
        ("5x2x2x24", "height/32x24/1", 2, "InterleavedToSharded", False),
        ("5x2x2x24", "height/32x24/1", 1, "PaddedSlice", False),  # not all rows of the image
        ("5x2x2x20", "height/32x24/1", 2, "PaddedSlice", False),  # channels are padded
        ("5x2x2x32", "width/20x32/1", 2, "InterleavedToSharded", False),
        ("5x2x2x8", "width/20x32/1", 2, "PaddedSlice", False),
        ("5x2x2x8", "block/32x8/1x1", 2, "InterleavedToSharded", False),
        ("5x2x2x32 tile", "height/32x32/1", 2, "PaddedSlice", False),
        # rows that do not fill what L1 aligns are not cut out of rows
        ("1x4x8x2 uint8", "height/32x8/1", 2, "PaddedSlice", True),
        ("1x4x8x2 uint8", "height/32x16/1", 2, "PaddedSlice", False),
        ("1x4x8x2 uint8 tile", "height/32x8/1", 2, "PaddedSlice", False),
    ],
)
def test_windows_of_an_image(image, shards, rows, name, refused):
    builder, shape = PlanBuilder(WORMHOLE, {"image": tensor_spec(image)}), tensor_spec(image).shape
    window = Window(shape=shape, begins=(0, 0, 0, 0), ends=(shape[0], rows, *shape[2:]))
    result = sliced_input(builder, builder.tensor("image"), window, place(shards), "input")
    (step,) = builder.steps
    assert step.name == f"{name}DeviceOperation"
    assert result.spec.shape == (1, 1, shape[0] * rows * shape[2], shape[3])
    line = "Output row size 8 must be aligned to the destination buffer BufferType::L1 alignment 16\n"
    assert (step.refused or "").startswith(line) is refused
