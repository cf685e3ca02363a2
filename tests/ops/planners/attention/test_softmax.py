"""Circular buffers of softmax programs, as ttnn 0.81.1 planned them on an 8x8 Wormhole."""

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.plan import Operation, Plan
from device.spec.device_spec import load_spec
from ops.planners.attention.softmax import SoftmaxArguments, plan_softmax
from ops.planners.attention.softmax_buffers import SoftmaxBlocks

SPEC = load_spec("wormhole_n150")
SHARDS = MemoryConfig(
    TensorMemoryLayout.HEIGHT_SHARDED,
    BufferType.L1,
    ShardSpec(CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(1, 1))]), (64, 96)),
)
BLOCKS = SoftmaxBlocks((2, 2), 3, 2, 3)


def tiles(*shape, data_format=BFLOAT16, place=L1_MEMORY_CONFIG):
    return TensorSpec(shape, data_format, Layout.TILE, place)


def programs(plan: Plan) -> list[tuple[list[int], str]]:
    """Bytes of the buffers, and cores, of each program."""
    steps = [step for step in plan.steps if isinstance(step, Operation)]
    return [
        ([buffer.size_bytes for buffer in step.circular_buffers], str(step.circular_buffers[0].cores)) for step in steps
    ]


@pytest.mark.parametrize(
    ("source", "options", "sizes", "cores"),
    [
        (tiles(1, 4, 64, 96), {}, [6144, 12288, 4096, 2048, 4096, 6144, 2048, 2048], "{[0-0 - 7-0]}"),
        (tiles(1, 4, 64, 96), {"stable": False}, [12288, 12288, 4096, 2048, 4096, 6144, 2048], "{[0-0 - 7-0]}"),
        (
            tiles(1, 4, 64, 90, data_format=BFLOAT8_B), {},
            [6528, 6528, 4096, 2048, 4096, 6144, 2048, 2048, 6144], "{[0-0 - 7-0]}",
        ),
        (
            tiles(1, 4, 64, 650), {"fp32_dest": True},
            [16384, 16384, 4096, 2048, 4096, 98304, 2048, 4096, 98304], "{[0-0 - 7-0]}",
        ),
        (
            tiles(1, 4, 64, 640, data_format=BFLOAT16), {"fp32_dest": False},
            [49152, 32768, 2048, 2048, 2048, 49152, 2048, 2048], "{[0-0 - 7-0]}",
        ),
        (
            tiles(1, 1, 32, 12800), {},  # a row does not fit L1
            [163840, 16384, 4096, 4096, 2048, 4096, 2048, 4096, 163840, 2048, 2048, 163840], "{[0-0 - 0-0]}",
        ),
        (
            tiles(1, 4, 64, 90), {"axis": -2},
            [4096, 2048, 2048, 2048, 4096, 8192, 4096, 4096, 8192, 4096], "{[0-0 - 1-3], [0-4 - 0-7]}",
        ),
        (tiles(1, 4, 64, 90), {"axis": 1}, [4096, 4096, 4096, 4096, 8192, 2048, 4096], "{[0-0 - 0-5]}"),
        (
            tiles(1, 1, 2000, 32), {"axis": 2},  # a column does not fit the library's share of L1
            [4096, 2048, 2048, 2048, 4096, 8192, 4096, 4096, 4096, 4096], "{[0-0 - 0-0]}",
        ),
        (
            tiles(2, 4, 64, 96),
            {"mask": tiles(2, 1, 32, 96, data_format=BFLOAT8_B), "fused": True, "scale": 0.5, "stable": False},
            [12288, 12288, 4096, 2048, 4096, 6144, 12288, 2048, 3264, 2048], "{[0-0 - 7-1]}",
        ),
        (
            tiles(1, 4, 64, 96, place=SHARDS), {"in_place": True, "blocks": BLOCKS},
            [12288, 2048, 2048, 12288, 6144, 2048, 2048, 6144], "{[0-0 - 1-1]}",
        ),
        (
            tiles(1, 4, 64, 96, place=SHARDS),
            {"mask": tiles(1, 1, 64, 96), "fused": True, "scale": 0.5, "causal": True, "in_place": True,
             "blocks": BLOCKS},
            [12288, 2048, 2048, 6144, 2048, 12288, 12288, 6144, 2048, 2048, 6144], "{[0-0 - 1-1]}",
        ),
        (
            tiles(1, 4, 64, 96, data_format=FLOAT32, place=SHARDS), {"in_place": True, "blocks": BLOCKS},
            [24576, 4096, 4096, 24576, 12288, 4096, 4096, 12288], "{[0-0 - 1-1]}",
        ),
    ],
)  # fmt: skip
def test_circular_buffers(source, options, sizes, cores):
    plan = plan_softmax(SoftmaxArguments(source=source, **({"stable": True} | options)), SPEC)
    assert programs(plan) == [(sizes, cores)]


@pytest.mark.parametrize(
    ("rows", "input_bytes"),
    [
        # 105,824 B below the buffers, 132 tiles of 1,088 B and 133 of 2,048 B: 521,824 of 524,288 B
        (2080, 65 * 1088),
        (2112, 2 * 1088),  # 134 and 135 tiles: 528,096 B
    ],
)
def test_whole_columns_in_half_a_mebibyte(rows, input_bytes):
    source = tiles(1, 1, rows, 64, data_format=BFLOAT8_B)
    ((sizes, _),) = programs(plan_softmax(SoftmaxArguments(source=source, axis=-2, stable=True, fp32_dest=False), SPEC))
    assert sizes[0] == input_bytes


@pytest.mark.parametrize(
    ("fp32_dest", "blocks"),
    [
        (True, {5: 8, 6: 6, 9: 9, 10: 12, 15: 16, 21: 24}),
        (False, {5: 8, 6: 6, 7: 8, 9: 16, 12: 12, 14: 16, 18: 18, 20: 24}),
    ],
)
def test_rows_are_filled_up_to_whole_blocks(fp32_dest, blocks):
    def row(wide):
        plan = plan_softmax(SoftmaxArguments(source=tiles(1, 1, 32, 32 * wide), stable=True, fp32_dest=fp32_dest), SPEC)
        return programs(plan)[0][0][0] // BFLOAT16.tile_bytes

    assert {wide: row(wide) for wide in blocks} == blocks
