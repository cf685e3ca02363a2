import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from ops.calls.convolution.image_checks import view_refusal

HEIGHT = TensorMemoryLayout.HEIGHT_SHARDED
WIDTH = TensorMemoryLayout.WIDTH_SHARDED
BLOCK = TensorMemoryLayout.BLOCK_SHARDED


def rows(shape, layout, shard, cols, high):
    cores = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(cols, high))])
    return TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, MemoryConfig(layout, BufferType.L1, ShardSpec(cores, shard)))


@pytest.mark.parametrize(
    ("spec", "image", "text"),
    [
        (
            rows((7, 3, 3, 576), BLOCK, (13, 116), 4, 4),
            (7, 3, 3, 576),
            "Changing the last dimension of a sharded tensor is not supported unless the shard width matches the input "
            "last dimension. Input shape: Shape([7, 3, 3, 580]), New shape: Shape([7, 3, 3, 576]), Shard width: 116",
        ),
        (
            rows((1, 1, 900, 3), WIDTH, (900, 8), 3, 0),
            (1, 30, 30, 3),
            "Shard height 2400 must match physical height 900 for width sharded",
        ),
        (
            rows((1, 1, 48, 403), HEIGHT, (32, 408), 6, 3),
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
        (rows((1, 1, 48, 408), HEIGHT, (32, 408), 6, 3), (1, 24, 2, 408)),
        (rows((1, 1, 48, 4), HEIGHT, (32, 8), 6, 3), (1, 24, 2, 4)),  # a buffer of whole narrow rows
    ],
)
def test_rows_that_can_be_seen_as_an_image(spec, image):
    assert view_refusal(spec, image) is None
