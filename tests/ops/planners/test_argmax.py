"""Device operations and buffers of argmax, as ttnn 0.81.1 plans them on a device of 8x8 cores."""

import re

import pytest

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, INT32, UINT32
from device.plan import Allocate, Operation
from ops.op_models import load_spec
from ops.planners.argmax import ArgMaxArguments, plan_argmax

SPEC = load_spec("wormhole_n150")
ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE


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
