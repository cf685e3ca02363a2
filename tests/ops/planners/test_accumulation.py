"""Device operations and buffers of scans and of added images, as ttnn 0.81.1 plans them on a device of 8x8 cores."""

import re

import pytest

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, L1_HEIGHT_SHARDED_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16, FLOAT32, INT32
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.accumulation import (
    AccumulateArguments,
    ImagesArguments,
    plan_accumulation,
    plan_added_images,
    plan_integral_image,
)
from tests.build import place
from tests.shards import WIDTH, in_box

SPEC = load_spec("wormhole_n150")


def operations(plan):
    """Each device operation with the bytes of its circular buffers."""
    return [
        (step.name.removesuffix("DeviceOperation"), *(buffer.size_bytes for buffer in step.circular_buffers))
        for step in plan.steps
        if isinstance(step, Operation)
    ]


def scanned(axis, data_format=BFLOAT16, layout=Layout.TILE, **fields):
    source = TensorSpec((2, 3, 64, 96), data_format, layout)
    call = AccumulateArguments(name="cumsum", axis=axis, **{"multiplies": False, **fields})
    return plan_accumulation(source, call, SPEC)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"axis": -1}, [("Accumulation", 8192, 8192)]),
        ({"axis": 0}, [("Accumulation", 8192, 8192, 4096)]),
        ({"axis": 1}, [("Transpose", 4096), ("Accumulation", 8192, 8192, 4096), ("Transpose", 4096)]),
        ({"axis": 0, "data_format": FLOAT32}, [("Accumulation", 16384, 16384, 4096, 4096)]),
        ({"axis": 0, "data_format": FLOAT32, "compensates": False}, [("Accumulation", 16384, 16384, 4096)]),
        (
            {"axis": -1, "multiplies": True},
            [("Permute", 4096, 4096, 4096), ("Accumulation", 8192, 8192, 4096), ("Permute", 4096, 4096, 4096)],
        ),
    ],
)
def test_scans(call, expected):
    assert operations(scanned(**call)) == expected


@pytest.mark.parametrize(
    ("call", "first"),
    [
        ({"axis": 4}, "The requested accumulation axis is 4, while the input tensor has rank 4."),
        ({"axis": 0, "layout": Layout.ROW_MAJOR}, "The provided input tensor has a non-tile layout: ROW_MAJOR."),
        # 18 rows of tiles reach into the third column of cores
        (
            {"axis": 0, "place": place("height/96x96/4x1")},
            "Accumulation output shard grid {[0-0 - 3-0]} must be contained in program core grid {[0-0 - 1-7], [2-0 - ",
        ),
    ],
)
def test_refused_scans(call, first):
    with pytest.raises(DeviceError, match=re.escape(first)):
        scanned(**call)


def added(shape, axes, data_format=BFLOAT16):
    source = TensorSpec(shape, data_format, Layout.TILE)
    return plan_added_images(source, ImagesArguments(axes=axes, place=DRAM_MEMORY_CONFIG), SPEC)


def test_images_are_added_along_the_last_axis_first():
    plan = added((2, 3, 50, 96), (0, 1))
    assert operations(plan) == [("FastReduceNC", 12288, 2048, 4096), ("FastReduceNC", 8192, 2048, 4096)]
    assert plan.tensors[plan.results["output"]].shape == (1, 1, 64, 96)


@pytest.mark.parametrize(
    ("call", "first"),
    [
        (((2, 3, 64, 96), ()), "fast_reduce_nc dims should not be empty"),
        (((2, 3, 64, 96), (2,)), "FastReduceNC reduces only outer dims: dim must be between 0 and 1, but has 2"),
        (((2, 64, 96), (-4,)), "FastReduceNC reduces only outer dims: dim must be between 0 and 0, but has -4"),
        (((2, 64, 96), (3,)), "ShapeBase[] index out of range. 3 not in [-4, 3)"),
        (((64, 96), (2,)), "ShapeBase[] index out of range. 2 not in [-4, 2)"),
        (((64, 96), (0,)), "FastReduceNC input rank must be greater than 2, but has 2"),
        (((2, 3, 64, 96), (0,), INT32), "FastReduceNC input only supports specific data types."),
    ],
)
def test_refused_images(call, first):
    with pytest.raises(DeviceError, match=re.escape(first)):
        added(*call)


def test_an_integral_image_takes_eight_cores():
    (step,) = [step for step in plan_integral_image(integral(), SPEC).steps if isinstance(step, Operation)]
    assert step.name == "IntImgDeviceOperation"
    assert {str(buffer.cores) for buffer in step.circular_buffers} == {"{[0-0 - 1-3]}"}
    assert [buffer.size_bytes // 2048 for buffer in step.circular_buffers] == [2, 48, 2, 48, 48, 48, 48, 2, 48]


def test_shards_of_an_integral_image_are_looked_at_before_its_rows():
    place = in_box(WIDTH, (245, 32), 2)
    rows = TensorSpec((1, 49, 5, 64), BFLOAT16, Layout.ROW_MAJOR, place)
    with pytest.raises(DeviceError, match=r"^Physical shard shape \(245, 32\) must be tile \{32, 32\} sized!"):
        plan_integral_image(rows, SPEC)


def integral(shape=(1, 50, 40, 256), data_format=BFLOAT16, layout=Layout.TILE):
    return TensorSpec(shape, data_format, layout)


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        ({"shape": (50, 40, 256)}, "intimg supports only 4D tensors, the input tensor has 3 instead"),
        ({"shape": (2, 50, 40, 256)}, "intimg supports only one batch, found 2 instead"),
        ({"layout": Layout.ROW_MAJOR}, "only tile layout is supported, Layout::ROW_MAJOR was provided instead"),
        ({"data_format": INT32}, "only bf16 and fp32 dtypes are supported, DataType::INT32 was provided instead"),
    ],
)
def test_refused_integral_images(fields, first):
    with pytest.raises(DeviceError, match=re.escape(first)):
        plan_integral_image(integral(**fields), SPEC)


@pytest.mark.parametrize(
    ("shape", "shards", "message"),
    [
        ((64,), "width/1x32/2", "Shard height 1 must match physical height 64 for width sharded"),
        ((7, 64), "width/7x32/2", "ttnn accumulation operations (cumprod, cumsum) do not support sharded input"),
    ],
)
def test_sharded_rows_are_refused_after_a_turn(shape, shards, message):
    source = TensorSpec(shape, BFLOAT16, Layout.ROW_MAJOR, place(f"l1 {shards}"))
    plan = plan_accumulation(source, AccumulateArguments(name="cumsum", axis=0, multiplies=False), SPEC)
    assert plan.steps[-1].text.startswith(message)


def test_a_number_is_copied_whatever_the_axis():
    source = TensorSpec((), FLOAT32, Layout.TILE, DRAM_MEMORY_CONFIG)
    (step,) = plan_accumulation(source, AccumulateArguments(name="cumsum", axis=9, multiplies=False), SPEC).steps
    assert step.name == "CloneOperation"


def test_ragged_shards_of_a_vector_are_not_turned():
    source = TensorSpec((100,), BFLOAT16, Layout.ROW_MAJOR, place("l1 width/1x32/4"))
    with pytest.raises(DeviceError, match="Changing the last dimension of a sharded tensor is not supported"):
        plan_accumulation(source, AccumulateArguments(name="cumsum", axis=0, multiplies=False), SPEC)


@pytest.mark.parametrize(
    ("shards", "message"),
    [
        ("height/30x30/1", "Physical shard shape (30, 30) must be tile {32, 32} sized!"),
        ("height/32x32/6", "Shard width 32 must match physical width 64 for height sharded"),
    ],
)
def test_the_place_of_the_first_sum_is_looked_at_before_formats(shards, message):
    call = ImagesArguments(axes=(0,), place=place(f"l1 {shards}"))
    with pytest.raises(DeviceError, match=re.escape(message)):
        plan_added_images(TensorSpec((2, 3, 64, 64), INT32, Layout.TILE), call, SPEC)


@pytest.mark.parametrize(
    ("shape", "axes", "target", "message"),
    [
        ((2, 3, 64, 64), (-1,), (2, 3, 64, 64), "FastReduceNC reduces only outer dims: dim must be between 0 and 1"),
        ((64, 64), (5,), (1, 64, 64), "FastReduceNC preallocated output rank 3 must match input rank 2"),
        ((64, 64), (5,), (1, 64), "FastReduceNC input rank must be greater than 2, but has 2"),
        ((2, 3, 64, 64), (0, -5), (1, 64), "FastReduceNC preallocated output rank 2 must match input rank 4"),
        ((2, 3, 64, 64), (0, 5), (1, 64), "ShapeBase[] index out of range. 5 not in [-4, 4)"),
        ((2, 3, 64, 64), (5,), None, "ShapeBase[] index out of range. 5 not in [-4, 4)"),
    ],
)
def test_a_caller_s_tensor_is_looked_at_before_the_axis_of_its_program(shape, axes, target, message):
    call = ImagesArguments(axes=axes, place=DRAM_MEMORY_CONFIG)
    given = None if target is None else TensorSpec(target, BFLOAT16, Layout.TILE)
    with pytest.raises(DeviceError, match=re.escape(message)):
        plan_added_images(TensorSpec(shape, BFLOAT16, Layout.TILE), call, SPEC, target=given)


@pytest.mark.parametrize(("layout", "first"), [(Layout.TILE, "bad optional"), (Layout.ROW_MAJOR, "MemoryConfig must")])
def test_a_sharded_place_without_shards_is_refused_before_the_tensor(layout, first):
    source = TensorSpec((32, 32), BFLOAT16, layout, DRAM_MEMORY_CONFIG)
    call = AccumulateArguments(name="cumprod", axis=0, multiplies=True, place=L1_HEIGHT_SHARDED_MEMORY_CONFIG)
    assert plan_accumulation(source, call, SPEC).steps[-1].text.startswith(first)
