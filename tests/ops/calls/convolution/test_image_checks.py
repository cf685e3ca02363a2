import pytest

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16
from ops.calls.convolution.image_checks import view_refusal
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
