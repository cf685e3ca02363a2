"""bcast: the program, as ttnn 0.81.1 plans it on a device of 8x8 cores, and what it refuses."""

import re
from dataclasses import replace

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import TTSimError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_HEIGHT_SHARDED_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT16, FLOAT32
from device.plan import Operation
from ops.planners.bcast import BcastArguments, bcast_refusal, plan_bcast
from ops.sensitivity.changes import load_spec

SPEC = load_spec("wormhole_n150")


def tiles(*shape, place=DRAM_MEMORY_CONFIG, data_format=BFLOAT16, layout=Layout.TILE):
    return TensorSpec(shape, data_format, layout, place)


def shards(scheme, shape, end, start=(0, 0)):
    grid = CoreRangeSet([CoreRange(CoreCoord(*start), CoreCoord(*end))])
    return MemoryConfig(TensorMemoryLayout[scheme], BufferType.L1, ShardSpec(grid, shape))


def in_dram(place):
    return replace(place, buffer_type=BufferType.DRAM)


BLOCKS = shards("BLOCK_SHARDED", (64, 32), (2, 1))
COLUMNS = shards("WIDTH_SHARDED", (128, 32), (2, 0))
HEIGHTS = shards("HEIGHT_SHARDED", (64, 96), (1, 0))


@pytest.mark.parametrize(
    ("left", "right", "axes", "sizes", "cores"),
    [
        (tiles(1, 2, 64, 96), tiles(1, 1, 1, 96), "H", [4096, 4096, 4096], "{[0-0 - 7-7]}"),
        (tiles(1, 2, 64, 96, data_format=FLOAT32), tiles(1, 1, 1, 1), "HW", [8192, 4096, 8192], "{[0-0 - 7-7]}"),
        (tiles(1, 2, 64, 96, place=HEIGHTS), tiles(1, 1, 1, 1), "HW", [12288, 4096, 12288], "{[0-0 - 1-0]}"),
        (tiles(1, 2, 64, 96, place=BLOCKS), tiles(1, 1, 1, 96), "H", [4096, 2048, 4096], "{[0-0 - 2-1]}"),
        (tiles(2, 1, 64, 96, place=COLUMNS), tiles(1, 1, 1, 96), "H", [8192, 2048, 8192], "{[0-0 - 2-0]}"),
    ],
)
def test_buffers_hold_two_tiles_or_shards(left, right, axes, sizes, cores):
    plan = plan_bcast(BcastArguments(operation="add", axes=axes, left=left, right=right), SPEC)
    (step,) = [step for step in plan.steps if isinstance(step, Operation)]
    assert step.name == "BcastDeviceOperation"
    assert [buffer.size_bytes for buffer in step.circular_buffers] == sizes
    assert {str(buffer.cores) for buffer in step.circular_buffers} == {cores}


@pytest.mark.parametrize(
    ("left", "right", "axes", "text"),
    [
        (tiles(1, 1, 64, 96), tiles(1, 1, 1, 64), "H", "Input tensor A width (96) must equal"),
        (tiles(1, 1, 64, 96), tiles(1, 1, 60, 1, layout=Layout.ROW_MAJOR), "W", "Input tensor A height (64) must"),
        (
            tiles(1, 1, 64, 96), tiles(1, 1, 40, 96), "H",
            "Input tensor B height (64) must equal TILE_HEIGHT (32) for tile layout",
        ),
        (
            tiles(1, 1, 64, 96), tiles(1, 1, 64, 2, layout=Layout.ROW_MAJOR), "W",
            "Input tensor B width (2) must be 1 or TILE_WIDTH (32) for row major layout",
        ),
        (tiles(1, 1, 64, 96), tiles(1, 1, 1, 96), "HW", "Error"),
    ],
)  # fmt: skip
def test_sides_that_do_not_fit(left, right, axes, text):
    assert bcast_refusal(left, right, axes).startswith(text)


@pytest.mark.parametrize(
    ("left", "right", "axes", "place", "text"),
    [
        (
            tiles(2, 3, 64, 96), tiles(1, 3, 1, 96), "H", None,
            "Broadcast with batch is currently only supported when bN*bC=1 or N & C match or equivalent",
        ),
        (
            tiles(2, 64, 96), tiles(1, 2, 1, 96), "H", None,
            "Broadcast with batch is currently only supported when input tensor ranks are the same",
        ),
        (tiles(1, 2, 64, 96, place=BLOCKS), tiles(1, 1, 1, 1), "HW", None, "HW bcast in0 supports Height Sharding or"),
        (tiles(1, 2, 64, 96, place=HEIGHTS), tiles(1, 2, 64, 1), "W", None, "Bcast does not currently support input0"),
        (
            tiles(1, 2, 64, 96, place=BLOCKS), tiles(1, 1, 1, 96), "H", L1_MEMORY_CONFIG,
            "Input and output mem layouts must be the same for bcast H op!",
        ),
        (
            tiles(1, 2, 64, 96), tiles(1, 1, 1, 96), "H", L1_HEIGHT_SHARDED_MEMORY_CONFIG,
            "Shard shape must be greater than 0 in each sharded dim, got [0, 0]",
        ),
    ],
)  # fmt: skip
def test_an_error_begins_as_that_of_the_real_library(left, right, axes, place, text):
    with pytest.raises(TTSimError, match=f"^{re.escape(text)}"):
        plan_bcast(BcastArguments(operation="add", axes=axes, left=left, right=right, place=place), SPEC)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (HEIGHTS, "Unsupported memory layout"),
        (
            shards("BLOCK_SHARDED", (64, 32), (3, 2), start=(1, 1)),
            "Kernel 'reader' is setting runtime_arg_values for node 0-0, but the kernel does not run on that node.",
        ),
        (
            shards("WIDTH_SHARDED", (128, 32), (0, 2)),
            "Kernel 'reader' is setting runtime_arg_values for node 1-0, but the kernel does not run on that node.",
        ),
    ],
)
def test_programs_of_shards_that_cannot_be_built(place, text):
    left = tiles(1, 2, 64, 96, place=place)
    plan = plan_bcast(BcastArguments(operation="add", axes="H", left=left, right=tiles(1, 1, 1, 96)), SPEC)
    (step,) = [step for step in plan.steps if isinstance(step, Operation)]
    assert step.refused.startswith(text)


@pytest.mark.parametrize(
    ("left", "right", "axes", "first"),
    [
        (
            tiles(1, 2, 64, 96, place=in_dram(COLUMNS)),
            tiles(1, 1, 1, 96),
            "H",
            "DFB 'in0' borrows memory from TensorParam",
        ),
        (
            tiles(1, 2, 64, 96, place=in_dram(HEIGHTS)),
            tiles(1, 1, 1, 1),
            "HW",
            "DFB 'in0' borrows memory from TensorPara",
        ),
        (tiles(1, 2, 64, 96, place=in_dram(HEIGHTS)), tiles(1, 1, 1, 96), "H", "Unsupported memory layout"),
    ],
)
def test_shards_in_dram_hold_no_circular_buffers(left, right, axes, first):
    plan = plan_bcast(BcastArguments(operation="add", axes=axes, left=left, right=right), SPEC)
    assert [step.refused.startswith(first) for step in plan.steps if isinstance(step, Operation)] == [True]


def test_numbers_of_shards_and_a_row_for_each_matrix_are_not_known():
    left, right = tiles(1, 2, 64, 96, place=BLOCKS), tiles(1, 2, 1, 96)
    plan = plan_bcast(BcastArguments(operation="add", axes="H", left=left, right=right), SPEC)
    assert plan.without_values == "bcast: of shards, one row for all matrices and whole rows of cores are simulated"
