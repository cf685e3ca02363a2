"""Device operations and buffers of topk, as ttnn 0.81.1 plans them on a device of 8x8 cores."""

import re

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, INT32, UINT16, UINT32
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.topk import TopKArguments, plan_topk
from ops.programs.buffer_shapes import page_cores
from ops.programs.reduction.topk import split_of

SPEC = load_spec("wormhole_n150")
SORT = ("TopK", 4096, 4096, 8192, 8192, 4096, 4096, 2048, 2048)


def planned(shape, count, data_format=BFLOAT16, layout=Layout.TILE, dim=-1):
    return plan_topk(TensorSpec(shape, data_format, layout), TopKArguments(count=count, dim=dim), SPEC)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (((1, 1, 32, 64), 32), [SORT]),
        (((1, 1, 32, 256), 33), [("TopK", 4096, 4096, 8192, 8192, 8192, 8192, 4096, 4096)]),
        (((1, 1, 32, 64), 8, BFLOAT8_B), [("TopK", 2176, 4096, 8192, 8192, 4096, 4096, 1088, 2048)]),
        (((1, 1, 32, 64), 8, FLOAT32), [("TopK", 8192, 8192, 16384, 16384, 8192, 8192, 4096, 4096)]),
        (((64, 100), 5), [("FillPad", 4096, 2048, 4096), SORT, ("Slice", 4096, 16), ("Slice", 4096, 16)]),
        (
            ((1, 1, 20, 20), 5),
            [("FillPad", 4096, 2048, 2048, 4096), ("Pad", 4096, 2048), ("FillPad", 4096, 2048, 4096), SORT],
        ),
        (  # cores share rows: 8 of them sort 4 tiles each
            ((1, 1, 32, 1024), 32),
            [("TopK", 8192, 8192, 16384, 16384, 4096, 8192, 8192, 4096, 4096, 16384, 16384)],
        ),
        (  # of ragged rows, a number and its place are one word
            ((1, 1, 32, 1000), 33),
            [
                ("FillPad", 4096, 2048, 4096),
                ("TopK", 8192, 8192, 65536, 4096, 4096, 16384, 8192, 4096, 65536, 4096),
            ],
        ),
        (((1, 1, 96, 1024), 32), [SORT]),  # rows that are not wide are shared up to two tiles high
    ],
)
def test_device_operations(call, expected):
    plan = planned(*call)
    found = [
        (step.name.removesuffix("DeviceOperation"), *(buffer.size_bytes for buffer in step.circular_buffers))
        for step in plan.steps
        if isinstance(step, Operation)
    ]
    assert found == expected
    assert {plan.tensors[name].shape for name in plan.results.values()} == {(*call[0][:-1], call[1])}


@pytest.mark.parametrize(
    ("call", "error", "first"),
    [
        (((64, 96), 8, BFLOAT16, Layout.TILE, 2), DeviceError, "Dimension for topk is out of range (expected to be in"),
        (((64, 96), 97), DeviceError, "K cannot be larger than the dimension size! K=97, dimension size=96"),
        (((64, 96), 8, BFLOAT16, Layout.ROW_MAJOR), DeviceError, "The input must be in tiled format"),
        (((64, 96), 8, INT32), DeviceError, "Input tensor must be BFLOAT16, BFLOAT8_B, or FLOAT32, got: DataType::INT"),
        (((64, 96), 0), NotSimulatedError, "topk: k=0 is not simulated"),
        (((50, 96), 8, BFLOAT16, Layout.ROW_MAJOR), DeviceError, "FillPad should only be used for tile layout"),
        (((32, 4096), 1760, FLOAT32), DeviceError, "Not enough cores or cache size available to run TopK operation"),
    ],
)
def test_refusals(call, error, first):
    with pytest.raises(error, match=re.escape(first)):
        planned(*call)


@pytest.mark.parametrize(
    ("device", "columns", "count", "expected"),
    [
        ("wormhole_n150", 1024, 32, (4, 2, 4)),
        ("wormhole_n150", 8192, 64, (4, 4, 16)),
        ("wormhole_n150", 32768, 32, (4, 4, 64)),  # 32 cores are no rectangle within 7x6
        ("blackhole_p150", 8192, 32, (8, 4, 8)),
        ("blackhole_p150", 32768, 32, (8, 8, 16)),
        ("wormhole_n150", 65536, 32, None),
        ("wormhole_n150", 1056, 32, None),
        ("wormhole_n150", 8192, 65, None),
    ],
)
def test_cores_that_share_a_row(device, columns, count, expected):
    (within,) = page_cores(10**6, load_spec(device).grid).ranges
    split = split_of(TensorSpec((1, 1, 32, columns), BFLOAT16, Layout.TILE), count, within, packed=False)
    assert (split and (split.columns, split.rows, split.core_tiles)) == expected


@pytest.mark.parametrize(
    ("rectangle", "columns", "name", "expected"),
    [  # of the rectangle, a column less and two rows less may hold the cores that share a row
        ((1, 2, 6, 6), 8192, "sorted", ("{[1-2 - 4-3]}", 32)),
        ((1, 2, 6, 6), 8192, "last", ("{[1-4 - 1-4]}", 8)),
        ((2, 2, 7, 4), 1024, "sorted", ("{[2-2 - 5-2]}", 8)),
        ((0, 0, 7, 0), 8192, "sorted", ("{[0-0 - 1-0]}", 4)),
        ((1, 0, 1, 5), 1024, "sorted", ("{[1-0 - 1-1]}", 4)),
    ],
)
def test_rows_within_a_rectangle(rectangle, columns, name, expected):
    x0, y0, x1, y1 = rectangle
    cores = CoreRangeSet([CoreRange(CoreCoord(x0, y0), CoreCoord(x1, y1))])
    plan = plan_topk(TensorSpec((64, columns), BFLOAT16, Layout.TILE), TopKArguments(count=32, cores=cores), SPEC)
    (step,) = (step for step in plan.steps if isinstance(step, Operation))
    (buffer,) = (buffer for buffer in step.circular_buffers if buffer.name == name)
    assert (str(buffer.cores), buffer.size_bytes // 2048) == expected


@pytest.mark.parametrize(
    ("columns", "cores", "message"),
    [
        (1024, [(0, 0, 1, 1), (3, 0, 3, 1)], "Only one core range is supported right now, got 2"),
        (
            128,
            [(0, 0, 8, 1)],
            "TopK sub_core_grids {[0-0 - 8-1]} must be contained in device compute grid {[0-0 - 7-7]}",
        ),
        (128, [], "Core grid must contain at least one core"),
    ],
)
def test_cores_that_cannot_be_used(columns, cores, message):
    named = CoreRangeSet([CoreRange(CoreCoord(x0, y0), CoreCoord(x1, y1)) for x0, y0, x1, y1 in cores])
    with pytest.raises(DeviceError, match=re.escape(message)):
        plan_topk(TensorSpec((64, columns), BFLOAT16, Layout.TILE), TopKArguments(count=32, cores=named), SPEC)


def test_a_sharded_place_without_shards():
    place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1)
    with pytest.raises(DeviceError, match=r"^bad optional access"):
        plan_topk(TensorSpec((64, 64), BFLOAT16, Layout.TILE), TopKArguments(count=32, place=place), SPEC)


def test_an_axis_is_put_last_and_back():
    plan = planned((3, 64, 128), 2, dim=1)
    names = [step.name.removesuffix("DeviceOperation") for step in plan.steps if isinstance(step, Operation)]
    assert names == ["Transpose", "TopK", "Slice", "Slice", "Transpose", "Transpose"]
    assert {plan.tensors[name].shape for name in plan.results.values()} == {(3, 2, 128)}


@pytest.mark.parametrize(
    ("columns", "count", "fields", "programs"),
    [
        (128, 64, {}, ["TopK"]),
        (128, 65, {}, ["TopkRoutePrep", "TopkLargeIndices", "TopkRouteFinish"]),
        (5000, 8, {}, ["TopkRoutePrep", "TopkLargeIndices", "TopkRouteFinish"]),
        (8192, 8, {}, ["TopK"]),  # cores share rows of powers of two
        (128, 65, {"largest": False}, ["TopK"]),
        (128, 65, {"stable": True}, ["TopK"]),
        (200, 193, {}, ["FillPad", "TopK"]),  # 208 places are more than there are columns
        (5000, 2049, {}, ["FillPad", "TopK"]),
    ],
)
def test_blackhole_takes_other_programs_for_many_elements_of_bfloat16(columns, count, fields, programs):
    source, spec = TensorSpec((1, 1, 32, columns), BFLOAT16, Layout.TILE), load_spec("blackhole_p150")
    plan = plan_topk(source, TopKArguments(count=count, **fields), spec)
    names = [step.name.removesuffix("DeviceOperation") for step in plan.steps if isinstance(step, Operation)]
    assert names == programs
    assert (plan.without_values is not None) is (len(names) == 3)


def test_the_buffers_of_the_programs_for_many_elements_are_those_of_the_real_planner():
    """Of 100 rows of 3,000 columns, 1,100 of which are picked; with the numbers of cores."""
    source, spec = TensorSpec((1, 1, 100, 3000), BFLOAT16, Layout.TILE), load_spec("blackhole_p150")
    plan = plan_topk(source, TopKArguments(count=1100), spec)
    buffers = [
        [(buffer.size_bytes, buffer.cores.num_cores()) for buffer in step.circular_buffers]
        for step in plan.steps
        if isinstance(step, Operation)
    ]
    assert buffers == [
        [(32768, 48)] * 2,
        [(8192, 130), (16384, 130), (4416, 130)],
        [(size, 94) for size in (1024, 1024, 4096, 4096, 2048, 2048)],
    ]


@pytest.mark.parametrize(
    ("columns", "options", "size"),
    [
        (128, {}, 55296),
        (128, {"stable": True}, 67584),  # elements are sorted as float32
        (2048, {"stable": True}, 262144),  # but where cores share rows
        (2040, {"labels": UINT32}, 262144),
        (2040, {"labels": UINT16}, 176128),  # a number and its label are no word
    ],
)
def test_buffers_beside_places_of_32_bits_and_labels(columns, options, size):
    source = TensorSpec((1, 1, 32, columns), BFLOAT16, Layout.TILE)
    labels = options.get("labels")
    form = labels or UINT32
    targets = None if labels else tuple(TensorSpec((1, 1, 32, 32), kind, Layout.TILE) for kind in (BFLOAT16, form))
    options = {**options, "labels": labels and source.changed(data_format=labels)}
    plan = plan_topk(source, TopKArguments(count=32, targets=targets, **options), SPEC)
    (step,) = (step for step in plan.steps if isinstance(step, Operation) and step.name.startswith("TopK"))
    assert sum(buffer.size_bytes for buffer in step.circular_buffers) == size
