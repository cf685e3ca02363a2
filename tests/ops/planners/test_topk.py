"""Device operations and buffers of topk, as ttnn 0.81.1 plans them on a device of 8x8 cores."""

import re

import pytest

from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, INT32
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.topk import TopKArguments, plan_topk

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
        (((64, 96), 8, BFLOAT16, Layout.TILE, 0), NotSimulatedError, "topk: an axis before the last is not simulated"),
        (((64, 1024), 8), NotSimulatedError, "topk: 1024 columns or more, which cores share, are not simulated"),
    ],
)
def test_refusals(call, error, first):
    with pytest.raises(error, match=re.escape(first)):
        planned(*call)
