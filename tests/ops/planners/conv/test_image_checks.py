from dataclasses import replace

import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from ops.planners.conv.checks import image_refusals, view_refusal
from tests.ops.planners.conv.good_call import sized_call
from tests.shards import BLOCK, HEIGHT, WIDTH, in_box


def rows(shape, layout, shard, columns, lines):
    return TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, in_box(layout, shard, columns, lines))


@pytest.mark.parametrize(
    ("spec", "image", "text"),
    [
        (
            rows((7, 3, 3, 576), BLOCK, (13, 116), 5, 5),
            (7, 3, 3, 576),
            "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the input "
            "last dimension. Input shape: Shape([7, 3, 3, 580]), New shape: Shape([7, 3, 3, 576]), Shard width: 116",
        ),
        (
            rows((1, 1, 900, 3), WIDTH, (900, 8), 4, 1),
            (1, 30, 30, 3),
            "Shard height 2400 must match physical height 900 for width sharded",
        ),
        (
            rows((1, 1, 48, 403), HEIGHT, (32, 408), 7, 4),
            (1, 24, 2, 403),
            "For valid non-interleaved buffers page size 806 must equal buffer size 39168. For interleaved-buffers, "
            "buffer size should be divisible by the page size",
        ),
    ],
)
def test_padded_rows_are_no_image(spec, image, text):
    refusal = view_refusal(spec, image)
    assert refusal is not None
    assert refusal.splitlines()[0] == text


@pytest.mark.parametrize(
    ("spec", "image"),
    [
        (rows((1, 1, 48, 408), HEIGHT, (32, 408), 7, 4), (1, 24, 2, 408)),
        (rows((1, 1, 48, 4), HEIGHT, (32, 8), 7, 4), (1, 24, 2, 4)),  # a buffer of whole narrow rows
    ],
)
def test_rows_that_can_be_seen_as_an_image(spec, image):
    assert view_refusal(spec, image) is None


@pytest.mark.parametrize(
    ("data_format", "size", "first_line"),
    [
        (BFLOAT8_B, (31, 101), "Input tensor must be in L1"),
        (BFLOAT8_B, (32, 32), "Input Tensor to Conv DRAM should be in Interleaved Memory Layout"),  # a view
        (BFLOAT16, (31, 101), "Input Tensor to Conv DRAM should be in Interleaved Memory Layout"),
    ],
)
def test_block_floats_are_made_an_image_from_shards_in_l1_alone(data_format, size, first_line):
    """They are taken out of their shards first, by a program that reads L1; first lines of the real library."""
    made = sized_call(size, (28, 4), layout=Layout.TILE)
    place = replace(in_box(HEIGHT, (1088, 32), 3), buffer_type=BufferType.DRAM)
    spec = replace(made.input.spec, data_format=data_format, memory_config=place)
    refused = next(image_refusals(replace(made, input=replace(made.input, spec=spec))))
    assert refused.splitlines()[0] == first_line
