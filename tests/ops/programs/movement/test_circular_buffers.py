"""The circular buffers of data movement programs, against those of ttnn 0.81.1 on devices without kernels."""

import pytest

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.builder import PlanTensor
from ops.programs.movement.circular_buffers import (
    padded_slice_buffers,
    slice_write_buffers,
    untilize_codegen_buffers,
)

WORMHOLE, BLACKHOLE = load_spec("wormhole_n150"), load_spec("blackhole_p150")
TILE, ROWS = Layout.TILE, Layout.ROW_MAJOR
BLOCK, HEIGHT = TensorMemoryLayout.BLOCK_SHARDED, TensorMemoryLayout.HEIGHT_SHARDED
B16, B8, F32 = BFLOAT16, BFLOAT8_B, FLOAT32


def slice_of(spec, channels, data_format, layout, scheme, shard):
    """Sizes of the buffers of a program that cuts a slice out of an image, the view's in brackets."""
    rows, width = shard
    across = -(-channels // width)
    cores = first_cores(across, 13, 10)
    config = MemoryConfig(scheme, BufferType.L1, ShardSpec(cores, shard, ShardOrientation.ROW_MAJOR))
    image = PlanTensor("image", TensorSpec((1, 1, rows, channels), data_format, layout))
    padded = (1, 1, rows, across * width)
    out_format = B16 if data_format is B8 else data_format
    made = PlanTensor("slice", TensorSpec((1, 1, rows, channels), out_format, ROWS, config, padded))
    buffers = padded_slice_buffers(image, made, spec)
    assert all(one.cores == cores for one in buffers)
    assert all(one.view_of in (None, "slice") for one in buffers)
    return [one.size_bytes if one.view_of is None else [one.size_bytes] for one in buffers]


@pytest.mark.parametrize(
    ("spec", "channels", "data_format", "scheme", "shard", "sizes"),
    [
        (WORMHOLE, 181, F32, BLOCK, (448, 24), [32768, 32768, [43008], 96]),
        (WORMHOLE, 96, F32, HEIGHT, (96, 96), [49152, 49152, [36864], 384]),
        (WORMHOLE, 18, B16, BLOCK, (288, 8), [8192, 8192, [4608], 16]),
        (WORMHOLE, 256, B8, BLOCK, (32, 32), [4352, 8192, [2048], 64]),
        (WORMHOLE, 328, B8, BLOCK, (96, 48), [8704, 16384, [9216], 96]),
        (WORMHOLE, 1888, B16, BLOCK, (64, 240), [65536, 65536, [30720], 480]),
    ],
)
def test_a_slice_of_tiles(spec, channels, data_format, scheme, shard, sizes):
    assert slice_of(spec, channels, data_format, TILE, scheme, shard) == sizes


@pytest.mark.parametrize(
    ("spec", "channels", "data_format", "scheme", "shard", "sizes"),
    [
        (WORMHOLE, 64, F32, HEIGHT, (128, 64), []),  # nothing but the view
        (WORMHOLE, 104, B16, BLOCK, (352, 16), [[11264], 32]),
        (WORMHOLE, 8, B16, HEIGHT, (192, 8), [[3072], 128]),
        (WORMHOLE, 160, B16, BLOCK, (160, 24), [[7680], 48, 704]),
        (WORMHOLE, 280, B16, BLOCK, (32, 40), [[2560], 1216]),
        (BLACKHOLE, 2, B16, HEIGHT, (32, 8), [[512], 16, 256]),
        (BLACKHOLE, 272, F32, BLOCK, (32, 24), [[3072], 96, 2304]),
        (BLACKHOLE, 64, F32, BLOCK, (64, 8), [[2048], 640]),
    ],
)
def test_a_slice_of_rows(spec, channels, data_format, scheme, shard, sizes):
    assert slice_of(spec, channels, data_format, ROWS, scheme, shard) == sizes


@pytest.mark.parametrize(
    ("spec", "rows", "channels", "data_format", "size"),
    [
        (WORMHOLE, 456, 37, F32, 5120),  # 16 of 32 rows within 4096 bytes
        (BLACKHOLE, 304, 1258, B16, 5120),  # one
        (BLACKHOLE, 1530, 30, B16, 4096),
        (BLACKHOLE, 416, 48, B16, 8192),
        (BLACKHOLE, 240, 4, B16, 4096),
    ],
)
def test_writing_rows_of_interleaved_slices(spec, rows, channels, data_format, size):
    (buffer,) = slice_write_buffers(TensorSpec((1, 1, rows, channels), data_format, ROWS, L1_MEMORY_CONFIG), spec)
    assert (buffer.size_bytes, str(buffer.cores)) == (size, f"{{[0-0 - {spec.grid.cols - 1}-{spec.grid.rows - 1}]}}")


def test_writing_tiles_or_shards_shows_none():
    shards = ShardSpec(first_cores(2, 8, 8), (32, 32), ShardOrientation.ROW_MAJOR)
    config = MemoryConfig(HEIGHT, BufferType.L1, shards)
    assert slice_write_buffers(TensorSpec((1, 1, 64, 32), B16, ROWS, config), WORMHOLE) == ()
    assert slice_write_buffers(TensorSpec((1, 1, 64, 32), B16, TILE, L1_MEMORY_CONFIG), WORMHOLE) == ()


@pytest.mark.parametrize(
    ("rows", "channels", "size", "cores"),
    [
        (416, 1258, 163840, "{[0-0 - 12-0]}"),
        (1536, 30, 4096, "{[0-0 - 12-2], [0-3 - 8-3]}"),
        (240, 4, 4096, "{[0-0 - 7-0]}"),
        (131 * 32, 4, 4096, "{[0-0 - 12-9]}"),  # one core has two tile rows
        (512, 256, 4096, "{[0-0 - 12-8], [0-9 - 10-9]}"),  # no padding: a core for each of 16 x 8 tiles
        (416, 1280, 16384, "{[0-0 - 12-9]}"),  # 13 rows of 40 tiles in 10 pieces each
        (131 * 32, 64, 8192, "{[0-0 - 12-9]}"),  # more rows than cores
    ],
)
def test_untilizing_by_generated_code(rows, channels, size, cores):
    tiles, made = (TensorSpec((1, 1, rows, channels), B16, layout, L1_MEMORY_CONFIG) for layout in (TILE, ROWS))
    buffers = untilize_codegen_buffers(tiles, made, BLACKHOLE)
    assert [(one.name, one.size_bytes, str(one.cores)) for one in buffers] == [
        ("tiles", size, cores),
        ("rows", size, cores),
    ]
