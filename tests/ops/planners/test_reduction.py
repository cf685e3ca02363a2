"""Device operations and buffers of reductions, as ttnn 0.81.1 plans them on a device of 8x8 cores."""

import re
from dataclasses import replace

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet, core_rectangle, first_cores
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    L1_HEIGHT_SHARDED_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout as Scheme,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, INT32, UINT16, UINT32
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.reduction import ReduceArguments, axes_of_reduction, plan_reduction, sharded_place
from ops.programs.reduction.reduce import Reduction
from tests.build import place

SPEC = load_spec("wormhole_n150")
IMAGES = (2, 3, 64, 96)
DRAM_BLOCKS = MemoryConfig(
    Scheme.BLOCK_SHARDED, BufferType.DRAM, ShardSpec(first_cores(1, 8, 8, row_wise=True), (384, 96))
)


def planned(shape, dims=(), name="sum", data_format=BFLOAT16, layout=Layout.TILE, memory=None, **fields):
    fields |= {"layout": fields.pop("layout_of_result")} if "layout_of_result" in fields else {}
    reduction = Reduction.SUM if name in ("sum", "mean") else Reduction(name)
    place = {} if memory is None else {"memory_config": memory}
    source = TensorSpec(shape, data_format, layout, **place)
    axes = axes_of_reduction(dims, len(shape))
    call = ReduceArguments(name=name, reduction=reduction, axes=axes, mean=name == "mean", **fields)
    return plan_reduction(source, call, SPEC)


def operations(plan):
    """Each device operation with the bytes of its circular buffers."""
    return [
        (step.name.removesuffix("DeviceOperation"), *(buffer.size_bytes for buffer in step.circular_buffers))
        for step in plan.steps
        if isinstance(step, Operation)
    ]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"dims": (-1,), "keeps": True}, [("Reduce", 4096, 2048, 4096)]),
        ({"dims": (-1,), "shape": (1, 1, 32, 128), "keeps": True}, [("Reduce", 16384, 2048, 4096)]),
        ({"dims": (1,)}, [("FastReduceNC", 12288, 2048, 4096)]),
        (
            {"dims": (0, 1)},
            [("FastReduceNC", 12288, 2048, 8192), ("FastReduceNC", 16384, 2048, 4096)],
        ),
        (
            {"dims": (2, 3), "keeps": True},
            [("Reduce", 4096, 2048, 8192), ("Reduce", 8192, 4096, 4096)],
        ),
        (
            {"name": "mean", "dims": (2, 3), "keeps": True},
            [("Reduce", 4096, 2048, 4096), ("Reduce", 4096, 2048, 4096)],
        ),
        (
            {"name": "max", "dims": (1,)},
            [("Transpose", 4096, 512), ("Reduce", 16384, 2048, 4096), ("Transpose", 4096)],
        ),
        (
            {"name": "min", "dims": (-1,), "data_format": BFLOAT8_B, "keeps": True},
            [("Reduce", 2176, 2048, 2176, 1088, 1088)],
        ),
        (
            {"name": "min", "dims": (-1,), "data_format": BFLOAT8_B, "shape": (1, 1, 8192, 32), "keeps": True},
            [("Reduce", 8704, 2048, 2176, 1088, 1088)],
        ),
        (
            {"name": "min", "dims": (-2,), "shape": (2, 1, 320, 64), "data_format": UINT32, "keeps": True},
            [("Reduce", 16384, 2048, 16384, 40960, 40960)],
        ),
        (  # the smallest of the products is the product of the largest
            {"name": "max", "dims": (-1,), "data_format": BFLOAT8_B, "keeps": True, "scalar": -1.5},
            [("Reduce", 2176, 2048, 2176, 1088, 1088)],
        ),
        (
            {"name": "mean", "shape": (224, 1), "layout": Layout.ROW_MAJOR},
            [("TilizeWithValPadding", 2048, 2048), ("Reduce", 16384, 2048, 4096)],
        ),
        ({"dims": (-2,), "shape": (1, 1, 608, 32), "keeps": True}, [("Reduce", 4096, 2048, 4096)]),
        (
            {"dims": (-2,), "shape": (1, 1, 640, 32), "keeps": True},
            [("Reduce", 16384, 2048, 8192), ("Reduce", 8192, 4096, 2048, 8192, 4096, 4096)],
        ),
        (
            {"dims": (-1,), "shape": (1, 1, 64, 320), "layout": Layout.ROW_MAJOR, "keeps": True},
            [("Reduce", 32768, 2048, 2048, 16384, 2048, 4096)],
        ),
        ({"name": "max", "shape": (1, 1, 32, 32), "dims": (2, 3)}, [("Reduce", 4096, 2048, 4096)]),
        (
            {"name": "max", "shape": (1, 1, 32, 32), "dims": (2, 3), "data_format": INT32, "keeps": True},
            [("Reduce", 8192, 2048, 8192), ("Reduce", 8192, 2048, 8192)],
        ),
    ],
)
def test_device_operations(call, expected):
    assert operations(planned(call.pop("shape", IMAGES), **call)) == expected


def test_rows_that_are_reduced_axis_by_axis_become_tiles_at_the_end():
    plan = planned((2, 64, 64), (0, 1), name="mean", layout=Layout.ROW_MAJOR, layout_of_result=Layout.TILE)
    assert [name for name, *_ in operations(plan)] == ["Reduce", "Permute", "Reduce", "TilizeWithValPadding"]


@pytest.mark.parametrize(("data_format", "between"), [(UINT32, BufferType.L1), (INT32, BufferType.DRAM)])
def test_rows_of_a_negated_minimum_become_tiles_where_the_result_lies(data_format, between):
    place = MemoryConfig(buffer_type=BufferType.L1)
    plan = planned((64, 96), (-2,), name="min", data_format=data_format, layout=Layout.ROW_MAJOR, place=place)
    first, *_ = [step for step in plan.steps if isinstance(step, Operation)]
    assert first.outputs[0].buffer.buffer_type is between


def test_columns_that_are_negated_need_room():
    plan = planned((4, 4, 100, 4096), (-2,), name="min", data_format=BFLOAT8_B)
    (room,) = [step.room for step in plan.steps if isinstance(step, Operation) and step.room]
    assert room.size_bytes == 2 * 1088 * 4 * 32  # tiles of four rows and 2048 columns on 64 cores


def test_rows_of_height_shards_are_reduced_where_they_lie():
    shards = ShardSpec(first_cores(8, 8, 8, row_wise=True), (32, 64))
    memory = MemoryConfig(Scheme.HEIGHT_SHARDED, BufferType.L1, shards)
    plan = planned((1, 1, 256, 64), (-1,), memory=memory, keeps=True)
    assert operations(plan) == [("Reduce", 4096, 4096, 2048, 2048)]
    (step,) = plan.steps
    assert [buffer.view_of for buffer in step.circular_buffers] == [None, "input", None, step.outputs[0].tensor]
    result = plan.tensors[plan.results["output"]].memory_config
    assert result == replace(memory, shard_spec=shards.changed(shape=(32, 32)))


def test_a_single_shard_is_called_a_width_shard():
    shards = ShardSpec(first_cores(8, 8, 8, row_wise=True), (32, 64))
    plan = planned((1, 1, 256, 64), (-2,), memory=MemoryConfig(Scheme.HEIGHT_SHARDED, BufferType.L1, shards))
    result = plan.tensors[plan.results["output"]].memory_config
    assert (result.memory_layout, result.shard_spec) == (Scheme.WIDTH_SHARDED, shards)


@pytest.mark.parametrize(
    ("scheme", "grid", "orientation", "shape", "expected"),
    [
        (Scheme.BLOCK_SHARDED, (4, 4), ShardOrientation.ROW_MAJOR, (2, 2, 1, 160), (32, 64)),  # 128 / 4, 160 / 4 = 40
        (Scheme.BLOCK_SHARDED, (1, 2), ShardOrientation.COL_MAJOR, (2, 2, 1, 160), (128, 96)),  # a column of two cores
        (Scheme.BLOCK_SHARDED, (4, 4), ShardOrientation.ROW_MAJOR, (2, 2, 64, 1), (64, 32)),
        (Scheme.HEIGHT_SHARDED, (3, 1), ShardOrientation.ROW_MAJOR, (2, 2, 64, 1), (96, 32)),  # 256 / 3 = 86 rows
        (Scheme.WIDTH_SHARDED, (3, 1), ShardOrientation.ROW_MAJOR, (2, 2, 1, 160), (128, 64)),
    ],
)
def test_reduced_shards_are_even_on_the_cores_of_the_place(scheme, grid, orientation, shape, expected):
    cores = CoreRangeSet(CoreRange(CoreCoord(2, 1), CoreCoord(1 + grid[0], grid[1])))
    place = MemoryConfig(scheme, BufferType.L1, ShardSpec(cores, (320, 320), orientation))
    assert sharded_place(TensorSpec(shape, BFLOAT16, Layout.TILE), shape, place) == replace(
        place, shard_spec=ShardSpec(cores, expected, orientation)
    )


def test_blocks_are_reduced_along_several_axes():
    shards = ShardSpec(CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(1, 1))), (64, 32))
    memory = MemoryConfig(Scheme.BLOCK_SHARDED, BufferType.L1, shards)
    plan = planned((1, 1, 96, 64), name="max", memory=memory)
    assert plan.tensors[plan.results["output"]].memory_config == memory  # as it was put back behind the first axis


def test_a_number_is_not_cut_from_wider_shards():
    memory = MemoryConfig(Scheme.WIDTH_SHARDED, BufferType.L1, ShardSpec(first_cores(2, 8, 8, row_wise=True), (32, 64)))
    plan = planned((1, 1, 32, 128), name="mean", memory=memory)
    assert plan.steps[-1].text.splitlines()[0].endswith("New shape: Shape([]), Shard width: 64")


def test_a_result_in_another_memory_and_layout():
    plan = planned(IMAGES, (-2,), keeps=True, place=L1_MEMORY_CONFIG, layout=Layout.ROW_MAJOR, memory=None)
    assert operations(plan)[0][0] == "Reduce"
    assert plan.tensors[plan.results["output"]].memory_config.buffer_type is BufferType.L1


@pytest.mark.parametrize(
    ("call", "error", "first"),
    [
        ({"dims": (4,)}, DeviceError, "Unsupported dim 4 at index 0. After possible adjustment, needs to be at least"),
        ({"dims": (1, -3)}, DeviceError, "reduce dim list contains a duplicate axis after sorting (indices 0 and 1"),
        (
            {"name": "mean", "data_format": INT32},
            DeviceError,
            "ttnn.mean does not support integer inputs - got DataType",
        ),
        ({"dims": (-1,), "data_format": UINT16}, DeviceError, "Only FLOAT32, BFLOAT16, BFLOAT8_B, and UINT32 are"),
        (
            {"name": "min", "data_format": FLOAT32, "fast": True},
            DeviceError,
            "ttnn.min does not support fast_and_approx",
        ),
        (
            {"dims": (-1,), "place": MemoryConfig(Scheme.HEIGHT_SHARDED, BufferType.L1)},
            DeviceError,
            "Sharded memory layout TensorMemoryLayout::HEIGHT_SHARDED requires either nd_shard_spec or shard_spec",
        ),
        (
            {"dims": (-1,), "memory": DRAM_BLOCKS},
            DeviceError,
            "reduce: DRAM block sharding is not supported, got input layout TensorMemoryLayout::BLOCK_SHARDED on "
            "BufferType::DRAM, output layout TensorMemoryLayout::BLOCK_SHARDED on BufferType::DRAM",
        ),
        (
            {"dims": (-1,), "memory": place("height/96x96/4x1"), "cores": first_cores(2, 8, 8, row_wise=True)},
            DeviceError,
            "Input shard grid {[0-0 - 3-0]} must be contained in program core grid {[0-0 - 1-0]}",
        ),
        (
            {"dims": (-2, -1), "place": DRAM_BLOCKS},
            DeviceError,
            "reduce: DRAM block sharding is not supported, got input layout TensorMemoryLayout::INTERLEAVED on "
            "BufferType::DRAM, output layout TensorMemoryLayout::BLOCK_SHARDED on BufferType::DRAM",
        ),
    ],
)
def test_refusals(call, error, first):
    with pytest.raises(error, match=re.escape(first)):
        planned(IMAGES, **call)


def test_a_vector_in_width_shards_is_reduced_as_a_row():
    plan = planned((64,), layout=Layout.ROW_MAJOR, memory=place("l1 width/1x32/2"))
    assert [name for name, *_ in operations(plan)] == ["TilizeWithValPadding", "Reduce"]
    (tiles,) = [spec for name, spec in plan.tensors.items() if name.startswith("tiles")]
    assert (tiles.shape, list(tiles.shards.shape)) == ((1, 64), [32, 32])


@pytest.mark.parametrize(
    ("call", "dims", "cores", "message"),
    [
        ({}, (-1,), (11, 1), "Program core grid {[0-0 - 10-0]} must be contained in device grid {[0-0 - 7-7]}"),
        ({}, (-1,), None, "Program core grid must not be empty"),
        ({}, (0,), (11, 1), "FastReduceNC sub_core_grids {[0-0 - 10-0]} must be contained in device compute grid"),
        ({}, (0,), None, "Core grid must contain at least one core"),
        (
            {"layout": Layout.ROW_MAJOR, "name": "max"},
            (-1,),
            (21, 1),
            "WorkUnitSpec 'main' targets node (8,0), which is out of",
        ),
        (
            {"layout": Layout.ROW_MAJOR, "name": "max"},
            (-1,),
            None,
            "vector::_M_range_check: __n (which is 0) >= this->size()",
        ),
    ],
)
def test_cores_outside_the_device_are_refused_by_each_program(call, dims, cores, message):
    allowed = CoreRangeSet() if cores is None else core_rectangle(*cores)
    assert refusal(lambda: planned(IMAGES, dims, cores=allowed, **call)).startswith(message)


def refusal(write):
    """The error that a call raises, that its first refused program has, or in which its plan ends."""
    try:
        steps = write().steps
    except DeviceError as error:
        return str(error)
    return (
        next((step.refused for step in steps if isinstance(step, Operation) and step.refused), None) or steps[-1].text
    )


def test_block_floats_in_rows_are_refused_once_they_are_reduced():
    fields = {"data_format": BFLOAT8_B, "layout_of_result": Layout.ROW_MAJOR}
    plan = planned((64, 64), (-1,), **fields)
    assert operations(plan)
    assert plan.steps[-1].text.startswith("output_layout=ROW_MAJOR is not supported for a DataType::BFLOAT8_B result")


@pytest.mark.parametrize("data_format", [BFLOAT16, UINT16])
def test_shards_without_a_spec_take_none_of_another_memory(data_format):
    source = TensorSpec((32, 256), data_format, Layout.TILE, place("dram width/32x96/4"))
    call = ReduceArguments(name="sum", reduction=Reduction.SUM, axes=(1,), place=L1_HEIGHT_SHARDED_MEMORY_CONFIG)
    message = "HEIGHT_SHARDED on an output with buffer type BufferType::L1 requires an explicit shard_spec"
    with pytest.raises(DeviceError, match=message):
        plan_reduction(source, call, SPEC)


def test_the_place_of_the_result_is_looked_at_before_formats():
    with pytest.raises(DeviceError, match="requires either nd_shard_spec or shard_spec"):
        planned((64, 64), (0,), data_format=UINT16, place=L1_HEIGHT_SHARDED_MEMORY_CONFIG)


def test_a_vector_is_a_view_of_four_axes():
    shards = place("width/128x32/2")
    error = refusal(lambda: plan_reduction(
        TensorSpec((128, 50), BFLOAT16, Layout.TILE, shards),
        ReduceArguments(name="max", reduction=Reduction.MAX, axes=(0,), keeps=False),
        SPEC,
    ))  # fmt: skip
    assert "Input shape: Shape([1, 1, 32, 64]), New shape: Shape([50]), Shard width: 32" in str(error)


def test_rows_of_many_axes_are_seen_without_the_padding_of_their_shards():
    with pytest.raises(DeviceError, match="Shard height 4096 must match physical height 1024 for width sharded"):
        planned((2, 1, 4, 2, 64, 8), (5,), layout=Layout.ROW_MAJOR, memory=place("width/1024x32/1"))
