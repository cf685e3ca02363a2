"""Device operations and buffers of argmax, as ttnn 0.81.1 plans them on a device of 8x8 cores."""

import re

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, INT32, UINT32
from device.plan import Allocate, Operation
from ops.op_models import load_spec
from ops.planners.argmax import ArgMaxArguments, is_of_images, plan_argmax
from tests.build import place, tensor_spec

SPEC = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


def cores(*rectangles):
    return CoreRangeSet([CoreRange(CoreCoord(x0, y0), CoreCoord(x1, y1)) for x0, y0, x1, y1 in rectangles])


NINE = cores((1, 1, 3, 3))
FIFTEEN = cores((1, 1, 3, 3), (5, 0, 5, 5))


def planned(shape, layout, dim=-1, data_format=BFLOAT16, *, keeps=True):
    return plan_argmax(TensorSpec(shape, data_format, layout), ArgMaxArguments(dim=dim, keeps=keeps), SPEC)


@pytest.mark.parametrize(
    ("call", "shape", "expected"),
    [
        (((1, 1, 32, 64), ROWS), (1, 1, 32, 1), [("ArgMax", 32, 32, 128, 128)]),
        (((1, 1, 1, 5000), ROWS), (1, 1, 1, 1), [("ArgMax", 160, 128, 32, 2048, 2048)]),
        (((2, 3, 64, 96), ROWS, None), (1, 1, 1, 1), [("ArgMax", 32, 32, 192, 192)]),
        (((2, 3, 64, 96), TILES, -2), (2, 3, 1, 96), [("ArgMax", 2048, 384)]),
        (((2, 3, 64, 96), ROWS, -2), (2, 3, 1, 96), [("Tilize", 6144, 6144), ("ArgMax", 2048, 384)]),
        (((2, 3, 64, 96), TILES, 1), (2, 1, 64, 96), [("ArgMaxNC", 4096, 8192), ("Untilize", 12288, 12288)]),
    ],
)
def test_device_operations(call, shape, expected):
    plan = planned(*call)
    found = [
        (step.name.removesuffix("DeviceOperation"), *(buffer.size_bytes for buffer in step.circular_buffers))
        for step in plan.steps
        if isinstance(step, Operation)
    ]
    assert (plan.tensors[plan.results["output"]].shape, found) == (shape, expected)


@pytest.mark.parametrize(
    ("device", "shape", "expected"),
    [  # a page holds the places of all rows: cores take two rows at a time, and exchange all results
        ("wormhole_n150", (64, 64), [(4, 64), (4, 256), (4, 1024), (4, 512)]),
        ("wormhole_n150", (2, 200), [(8, 128), (8, 32), (8, 256), (8, 256)]),  # not 13 cores with 16 elements each
        ("wormhole_n150", (2, 5000), [(57, 320), (7, 256), (64, 32), (64, 2048), (64, 2048)]),
        ("blackhole_p150", (64, 1000), [(13, 256), (3, 256), (16, 256), (16, 4096), (16, 2048)]),
    ],
)
def test_places_that_share_a_page(device, shape, expected):
    source = TensorSpec(shape, BFLOAT16, ROWS)
    plan = plan_argmax(source, ArgMaxArguments(dim=-1), load_spec(device))
    (step,) = (step for step in plan.steps if isinstance(step, Operation))
    assert [(buffer.cores.num_cores(), buffer.size_bytes) for buffer in step.circular_buffers] == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [  # 1,000 bfloat16 in units of 16: 63 units, of which each core takes as many
        ({"cores": NINE}, [(9, 448), (9, 128), (9, 1152), (9, 576)]),
        ({"cores": FIFTEEN}, [(9, 320), (6, 320), (15, 128), (15, 1920), (15, 960)]),
        ({"cores": NINE, "both": False}, [(9, 224), (9, 128), (9, 1152), (9, 576)]),
        ({"both": False}, [(63, 32), (63, 128), (63, 8064), (63, 4032)]),
    ],
)
def test_rows_on_some_cores_and_with_one_processor(options, expected):
    source = TensorSpec((2, 3, 32, 1000), BFLOAT16, ROWS)
    plan = plan_argmax(source, ArgMaxArguments(dim=-1, **options), SPEC)
    (step,) = (step for step in plan.steps if isinstance(step, Operation))
    assert [(buffer.cores.num_cores(), buffer.size_bytes) for buffer in step.circular_buffers] == expected


def test_images_on_some_cores():
    plan = plan_argmax(TensorSpec((2, 3, 64, 96), BFLOAT16, TILES), ArgMaxArguments(dim=1, cores=NINE), SPEC)
    first, *_ = (step for step in plan.steps if isinstance(step, Operation))
    assert {buffer.cores for buffer in first.circular_buffers} == {NINE}


@pytest.mark.parametrize(
    ("layout", "options", "message"),
    [
        (
            ROWS,
            {"dim": -1, "cores": cores((0, 0, 0, 0), (2, 0, 2, 0), (4, 0, 4, 0))},
            "up to 2 core grid ranges, but got 3",
        ),
        (
            ROWS,
            {"dim": -1, "cores": cores((1, 1, 9, 3))},
            "sub_core_grids {[1-1 - 9-3]} must be contained in device compute",
        ),
        (ROWS, {"dim": -1, "keeps": True, "both": True}, "enable_secondary_dm needs at least two output rows"),
        (TILES, {"dim": -1, "both": True}, "enable_secondary_dm applies only to ROW_MAJOR argmax over the last dim"),
    ],
)
def test_cores_and_processors_that_rows_cannot_have(layout, options, message):
    with pytest.raises(DeviceError, match=re.escape(message)):
        plan_argmax(TensorSpec((2, 3, 32, 64), BFLOAT16, layout), ArgMaxArguments(**options), SPEC)


@pytest.mark.parametrize(
    ("call", "error", "first"),
    [
        (
            ((2, 64, 96), TILES, 3),
            DeviceError,
            "argmax: Dimension out of range (expected to be in range of [-3, 2]",
        ),
        (((64, 96), TILES, None), DeviceError, "For inputs with TILE layout, dim parameter must be specified!"),
        (((64, 96), TILES, -1, BFLOAT8_B), DeviceError, "Only BFLOAT16, FLOAT32 are supported for inputs with TILE"),
        (((64, 96), ROWS, -2, INT32), DeviceError, "ROW_MAJOR: only argmax on the last dim is supported. Got dim=-2"),
    ],
)
def test_refusals(call, error, first):
    with pytest.raises(error, match=re.escape(first)):
        planned(*call)


@pytest.mark.parametrize(
    ("target", "first"),
    [
        (TensorSpec((2, 64), INT32, ROWS), "Only UINT32 is supported for outputs, got DataType::INT32"),
        (TensorSpec((2, 64), UINT32, TILES), "Output tensor must have ROW_MAJOR layout, got Layout::TILE"),
        (TensorSpec((1, 2, 64), UINT32, ROWS), ""),
        (
            TensorSpec((2, 64, 1), UINT32, ROWS),
            "Preallocated output tensor is not page-compatible with the reduction result! Got : Shape([2, 64, 1]), "
            "expected: Shape([2, 64]) (or any shape with the same volume and last dimension)",
        ),
    ],
)
@pytest.mark.parametrize("layout", [ROWS, TILES])
def test_a_target_is_a_page_for_each_page_of_the_result(layout, target, first):
    source, call = TensorSpec((2, 64, 96), BFLOAT16, layout), ArgMaxArguments(dim=-1, target=target)
    if not first:
        assert [step for step in plan_argmax(source, call, SPEC).steps if isinstance(step, Allocate)] == []
        return
    with pytest.raises(DeviceError) as refused:
        plan_argmax(source, call, SPEC)
    assert str(refused.value).splitlines()[0] == first


@pytest.mark.parametrize(
    ("source", "where", "first"),
    [
        ("64 tile", "height/32x64/2", "Shard shape must be 1D for 1D tensor!"),
        (
            "2 rows",
            "block/1x8/1x1",
            "Only INTERLEAVED memory layout is supported for outputs, got TensorMemoryLayout::B",
        ),
        ("64x64 tile bfloat8_b", "height/32x1/2", "Only BFLOAT16, FLOAT32 are supported for inputs with TILE layout"),
    ],
)
def test_the_result_is_looked_at_before_the_tensor_and_its_memory_last(source, where, first):
    call = ArgMaxArguments(dim=-1, place=place(where), keeps="x" in source)
    with pytest.raises(DeviceError, match=f"^{re.escape(first)}"):
        plan_argmax(tensor_spec(source), call, SPEC)


def test_a_sharded_target_is_refused_whatever_the_shape():
    place = MemoryConfig(TensorMemoryLayout.WIDTH_SHARDED, BufferType.L1, ShardSpec(cores((2, 4, 5, 7)), (4, 8)))
    call = ArgMaxArguments(dim=2, keeps=True, target=TensorSpec((4, 96), UINT32, ROWS, place))
    with pytest.raises(DeviceError, match=r"^Only INTERLEAVED memory layout is supported for outputs, got"):
        plan_argmax(TensorSpec((4, 24, 96), BFLOAT16, TILES), call, SPEC)


def test_shards_are_refused_before_a_single_place_is_put_into_them():
    source = TensorSpec((64,), BFLOAT16, ROWS, place("l1 height/1x64/1"))
    with pytest.raises(DeviceError, match="Only INTERLEAVED memory layout is supported for inputs"):
        plan_argmax(source, ArgMaxArguments(dim=None, keeps=False), SPEC)


def test_rows_of_integers_are_never_searched_image_by_image():
    call = ArgMaxArguments(dim=0, keeps=True)
    searched = [is_of_images(TensorSpec((2, 3, 64, 96), each, ROWS), call) for each in (BFLOAT16, INT32)]
    assert searched == [True, False]
