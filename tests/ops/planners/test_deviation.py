"""Device operations and buffers of std and var, as ttnn 0.81.1 plans them on a device of 8x8 cores."""

import re

import pytest

from device.cores import core_rectangle
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import L1_HEIGHT_SHARDED_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, INT32
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.deviation import DeviationArguments, plan_deviation
from tests.build import place

SPEC = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def planned(shape, axes, data_format=BFLOAT16, layout=TILES, *, keeps=True, **more):
    source = TensorSpec(shape, data_format, layout)
    return plan_deviation(source, DeviationArguments(name="std", axes=axes, keeps=keeps, **more), SPEC)


def operations(plan):
    return [
        (step.name.removesuffix("DeviceOperation"), *(buffer.size_bytes for buffer in step.circular_buffers))
        for step in plan.steps
        if isinstance(step, Operation)
    ]


@pytest.mark.parametrize(
    ("shape", "axes", "data_format", "expected"),
    [
        ((1, 1, 32, 256), (3,), BFLOAT16, [16384, 4096]),  # 8 tiles on their way
        ((1, 1, 32, 736), (3,), BFLOAT16, [16384, 4096]),
        ((1, 1, 32, 768), (3,), BFLOAT16, [49152, 4096]),  # 24 tiles, all of them in L1
        ((1, 1, 4096, 288), (3,), BFLOAT16, [18432, 4096]),  # 9 tiles, as each core has two rows of them
        ((1, 1, 32, 20160), (3,), BFLOAT16, [16384, 4096]),  # 630 tiles do not fit
        ((1, 1, 1056, 32), (2,), BFLOAT16, [67584, 4096]),
        ((1, 1, 64, 64), (2, 3), FLOAT32, [32768, 8192, 16384, 4096]),
        ((2, 3, 64, 96), (1, 2, 3), BFLOAT8_B, [8704, 2176, 16384, 4096]),
        ((1, 1, 512, 64), (2, 3), BFLOAT16, [32768, 4096, 16384, 4096]),
    ],
)
def test_circular_buffers(shape, axes, data_format, expected):
    assert operations(planned(shape, axes, data_format)) == [("WelfordReduce", *expected)]


@pytest.mark.parametrize(
    ("call", "names", "shape"),
    [
        (((2, 3, 64, 96), (1,)), ["Transpose", "WelfordReduce", "Transpose"], (2, 1, 64, 96)),
        (((2, 3, 64, 96), (0, 1)), ["Permute", "WelfordReduce", "ReshapeView"], (1, 1, 64, 96)),
        (((2, 3, 50, 70), (1, 2), BFLOAT16, ROWS), ["Permute", "TilizeWithValPadding", "WelfordReduce", "ReshapeView"],
         (2, 1, 1, 70)),
        (((2, 3, 64, 96), (0, 1, 2, 3)), ["WelfordReduce"], (1, 1, 1, 1)),
    ],
)  # fmt: skip
def test_axes_that_are_put_last(call, names, shape):
    plan = planned(*call)
    assert [name for name, *_ in operations(plan)] == names
    assert plan.tensors[plan.results["output"]].shape == shape


@pytest.mark.parametrize(
    ("data_format", "more", "first"),
    [
        (INT32, {}, "Only FLOAT32, BFLOAT16, and BFLOAT8_B are supported for Std/Var reduction - got DataType::INT32"),
        (
            FLOAT32,
            {"fp32_dest": False},
            "ttnn.std/var with Float32 input requires fp32_dest_acc_en=true in the compute",
        ),
        (
            BFLOAT16,
            {"place": place("block/32x32/2x1 dram")},
            "Std/Var reduction: DRAM block sharding is not supported, got input layout TensorMemoryLayout::INTERLEAVED",
        ),
    ],
)
def test_refusals(data_format, more, first):
    with pytest.raises(DeviceError, match=re.escape(first)):
        planned((64, 96), (1,), data_format, **more)


def test_ragged_shards_of_a_vector_are_no_row():
    source = TensorSpec((100,), BFLOAT16, ROWS, place("l1 width/1x32/4"))
    with pytest.raises(DeviceError, match="Changing the last dimension of a sharded tensor is not supported"):
        plan_deviation(source, DeviationArguments(name="std", axes=(0,), keeps=False), SPEC)


@pytest.mark.parametrize(
    ("columns", "unit"),
    [(21, "wu_g1"), (11, "wu_g2")],  # of 12 rows, 12 cores have one; or the first of 11 cores has two
)
def test_working_cores_outside_the_device_are_refused_by_their_group(columns, unit):
    with pytest.raises(DeviceError, match=re.escape(f"WorkUnitSpec '{unit}' targets node (8,0), which is out of")):
        planned((2, 3, 64, 64), (3,), cores=core_rectangle(columns, 1))


def test_the_place_of_the_result_is_looked_at_before_formats():
    with pytest.raises(DeviceError, match="requires either nd_shard_spec or shard_spec"):
        planned((64, 64), (1,), INT32, place=L1_HEIGHT_SHARDED_MEMORY_CONFIG)


def test_rows_of_many_axes_are_seen_without_the_padding_of_their_shards():
    source = TensorSpec((2, 1, 4, 2, 64, 8), BFLOAT16, Layout.ROW_MAJOR, place("width/1024x32/1"))
    with pytest.raises(DeviceError, match="Shard height 4096 must match physical height 1024 for width sharded"):
        plan_deviation(source, DeviationArguments(name="std", axes=(5,), keeps=True), SPEC)
