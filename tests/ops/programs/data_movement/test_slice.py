"""Boxes cut out of tensors, and written into them."""

import numpy as np
import pytest

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from ops.builder import PlanBuilder, PlanTensor
from ops.op_models import load_spec
from ops.programs.data_movement.slice import Cut, Window, padded_slice_buffers, sliced_input
from tests.build import op_cycles, place, tensor_spec
from tests.shards import BLOCK, HEIGHT

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


@pytest.mark.parametrize(
    ("spec", "channels", "data_format", "layout", "scheme", "shard", "sizes"),
    [
        (WORMHOLE, 181, FLOAT32, "tile", BLOCK, (448, 24), [32768, 32768, [43008], 96]),
        (WORMHOLE, 96, FLOAT32, "tile", HEIGHT, (96, 96), [49152, 49152, [36864], 384]),
        (WORMHOLE, 18, BFLOAT16, "tile", BLOCK, (288, 8), [8192, 8192, [4608], 16]),
        (WORMHOLE, 256, BFLOAT8_B, "tile", BLOCK, (32, 32), [4352, 8192, [2048], 64]),
        (WORMHOLE, 328, BFLOAT8_B, "tile", BLOCK, (96, 48), [8704, 16384, [9216], 96]),
        (WORMHOLE, 1888, BFLOAT16, "tile", BLOCK, (64, 240), [65536, 65536, [30720], 480]),
        (WORMHOLE, 64, FLOAT32, "rows", HEIGHT, (128, 64), []),  # nothing but the view
        (WORMHOLE, 104, BFLOAT16, "rows", BLOCK, (352, 16), [[11264], 32]),
        (WORMHOLE, 8, BFLOAT16, "rows", HEIGHT, (192, 8), [[3072], 128]),
        (WORMHOLE, 160, BFLOAT16, "rows", BLOCK, (160, 24), [[7680], 48, 704]),
        (WORMHOLE, 280, BFLOAT16, "rows", BLOCK, (32, 40), [[2560], 1216]),
        (BLACKHOLE, 2, BFLOAT16, "rows", HEIGHT, (32, 8), [[512], 16, 256]),
        (BLACKHOLE, 272, FLOAT32, "rows", BLOCK, (32, 24), [[3072], 96, 2304]),
        (BLACKHOLE, 64, FLOAT32, "rows", BLOCK, (64, 8), [[2048], 640]),
    ],
)
def test_slices(spec, channels, data_format, layout, scheme, shard, sizes):
    """Sizes of the buffers of a program that cuts a slice out of an image, the view's in brackets."""
    rows, width = shard
    across = -(-channels // width)
    cores = first_cores(across, 13, 10)
    config = MemoryConfig(scheme, BufferType.L1, ShardSpec(cores, shard))
    image = PlanTensor("image", tensor_spec(f"1x1x{rows}x{channels} {data_format} {layout}"))
    out_format, padded = BFLOAT16 if data_format is BFLOAT8_B else data_format, (1, 1, rows, across * width)
    result = TensorSpec((1, 1, rows, channels), out_format, Layout.ROW_MAJOR, config, padded)
    buffers = padded_slice_buffers(image, PlanTensor("slice", result), spec)
    assert all(buffer.cores == cores and buffer.view_of in (None, "slice") for buffer in buffers)
    assert [buffer.size_bytes if buffer.view_of is None else [buffer.size_bytes] for buffer in buffers] == sizes
