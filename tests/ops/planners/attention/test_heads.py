"""Programs that split and join heads, as ttnn 0.81.1 planned them on an 8x8 Wormhole."""

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_BLOCK_SHARDED_MEMORY_CONFIG,
    L1_HEIGHT_SHARDED_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16
from device.plan import Operation
from device.spec.device_spec import load_spec
from ops.planners.attention.heads import SplitArguments, plan_join, plan_split

SPEC = load_spec("wormhole_n150")


def tiles(*shape, place=DRAM_MEMORY_CONFIG):
    return TensorSpec(shape, BFLOAT16, Layout.TILE, place)


def shards(scheme, shape, columns, rows):
    grid = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(columns - 1, rows - 1))])
    return MemoryConfig(scheme, BufferType.L1, ShardSpec(grid, shape))


BLOCKS = shards(TensorMemoryLayout.BLOCK_SHARDED, (64, 96), 4, 2)
HEADS = shards(TensorMemoryLayout.HEIGHT_SHARDED, (128, 64), 2, 2)


def program(plan):
    (step,) = [step for step in plan.steps if isinstance(step, Operation)]
    buffers = step.circular_buffers
    return [buffer.size_bytes for buffer in buffers], str(buffers[0].cores) if buffers else ""


@pytest.mark.parametrize(
    ("call", "sizes", "cores"),
    [
        (
            SplitArguments(source=tiles(2, 1, 64, 384), heads=4, kv_heads=4, transposed=True),
            [8192, 8192, 8192], "{[0-0 - 0-3]}",
        ),
        (SplitArguments(source=tiles(2, 1, 64, 384), heads=4, kv_heads=4), [8192], "{[0-0 - 5-7]}"),
        (
            SplitArguments(source=tiles(2, 1, 64, 256), other=tiles(2, 1, 64, 512), heads=4, kv_heads=4),
            [8192], "{[0-0 - 0-3]}",
        ),
        (
            SplitArguments(
                program="CreateQKVHeads", source=tiles(2, 1, 64, 384, place=BLOCKS), heads=4, kv_heads=4,
                transposed=True, place=L1_HEIGHT_SHARDED_MEMORY_CONFIG,
            ),
            [12288, 4096, 4096, 4096, 4096], "{[0-0 - 3-1]}",
        ),
        (
            SplitArguments(program="NlpCreateHeadsSegformer", source=tiles(2, 1, 64, 128)),
            [16384], "{[0-0 - 0-3]}",
        ),
        (  # heads of less than a tile have the buffer of heads of eight tiles
            SplitArguments(source=tiles(1, 1, 64, 96), heads=4, kv_heads=1), [32768], "{[0-0 - 1-3], [0-4 - 0-7]}",
        ),
        (  # heads of eight tiles, twice, also where keys and values are apart
            SplitArguments(source=tiles(1, 1, 64, 2048), other=tiles(1, 1, 64, 512), heads=8, kv_heads=1),
            [32768], "{[0-0 - 0-1]}",
        ),
        (SplitArguments(program="NlpCreateHeadsVit", source=tiles(2, 1, 64, 2304)), [294912], "{[0-0 - 0-3]}"),
    ],
)  # fmt: skip
def test_heads_are_split(call, sizes, cores):
    assert program(plan_split(call, SPEC)) == (sizes, cores)


def test_shards_of_heads_lie_on_the_cores_of_the_blocks():
    call = SplitArguments(
        program="CreateQKVHeads", source=tiles(2, 1, 64, 384, place=BLOCKS), heads=4, kv_heads=4, transposed=True,
        place=L1_HEIGHT_SHARDED_MEMORY_CONFIG, rows=60,
    )  # fmt: skip
    plan = plan_split(call, SPEC)
    tensors = {role: plan.tensors[name] for role, name in plan.results.items()}
    shapes = {role: (tensor.shape, tuple(tensor.shards.shape)) for role, tensor in tensors.items()}
    assert shapes == {
        "query": ((2, 4, 60, 32), (64, 32)),
        "key": ((2, 4, 32, 60), (32, 64)),
        "value": ((2, 4, 60, 32), (64, 32)),
    }


@pytest.mark.parametrize(
    ("source", "place", "sizes", "cores"),
    [
        (tiles(2, 4, 64, 64), None, [32768], "{[0-0 - 1-7]}"),
        (
            tiles(2, 4, 64, 64, place=HEADS), L1_BLOCK_SHARDED_MEMORY_CONFIG, [16384, 16384], "{[0-0 - 1-1]}",
        ),
    ],
)  # fmt: skip
def test_heads_are_joined(source, place, sizes, cores):
    assert program(plan_join(source, SPEC, place=place)) == (sizes, cores)


def test_heads_of_segformer_have_the_rows_of_whole_tiles():
    call = SplitArguments(program="NlpCreateHeadsSegformer", source=tiles(2, 1, 60, 64))
    plan = plan_split(call, SPEC)
    assert {plan.tensors[name].shape for name in plan.results.values()} == {(2, 2, 64, 32)}


def test_heads_of_more_axes_are_joined_along_the_first_four():
    plan = plan_join(tiles(3, 1, 1, 264, 32), SPEC)
    assert plan.tensors["output"].shape == (3, 1, 1, 264)
    assert program(plan)[0] == [2 * 288 // 32 * 2048]
    assert plan.without_values
