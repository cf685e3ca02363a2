"""Device operations and buffers of sort, as ttnn 0.81.1 plans them on a device of 8x8 cores."""

import re

import pytest

from device.errors import DeviceError, NotSimulatedError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16, FLOAT32, INT32, UINT16
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.sort import SortArguments, plan_sort

SPEC = load_spec("wormhole_n150")


def planned(shape, dim=-1, data_format=BFLOAT16, layout=Layout.TILE):
    return plan_sort(TensorSpec(shape, data_format, layout), SortArguments(dim=dim), SPEC)


def operations(plan):
    return [
        (step.name.removesuffix("DeviceOperation"), *(buffer.size_bytes for buffer in step.circular_buffers))
        for step in plan.steps
        if isinstance(step, Operation)
    ]


@pytest.mark.parametrize(
    ("shape", "data_format", "expected"),
    [
        ((1, 1, 32, 64), BFLOAT16, [8192, 8192, 4096, 4096, 4096, 4096, 1024]),
        ((1, 1, 32, 1024), BFLOAT16, [8192, 8192, 65536, 65536, 4096, 4096, 1024]),
        ((1, 1, 64, 128), FLOAT32, [16384, 16384, 16384, 16384, 8192, 8192, 1024]),
        ((1, 1, 64, 128), UINT16, [16384, 16384, 16384, 16384, 8192, 8192, 1024, 2048, 2048]),
    ],
)
def test_circular_buffers(shape, data_format, expected):
    assert operations(planned(shape, data_format=data_format)) == [("Sort", *expected)]


@pytest.mark.parametrize(
    ("shape", "dim", "names"),
    [
        ((1, 1, 32, 100), -1, ["FillPad", "Sort"]),
        ((1, 1, 64, 96), -1, ["Pad", "Sort", "Slice", "Slice"]),
        ((2, 3, 50, 70), -1, ["FillPad", "FillPad", "Pad", "Sort", "Slice", "Slice"]),
        ((50, 70), 0, ["Transpose", "FillPad", "Sort", "Transpose", "Transpose"]),
    ],
)
def test_rows_are_padded_to_a_power_of_two(shape, dim, names):
    plan = planned(shape, dim)
    assert [name for name, *_ in operations(plan)] == names
    assert {plan.tensors[name].shape for name in plan.results.values()} == {shape}


@pytest.mark.parametrize(
    ("call", "error", "first"),
    [
        (((64, 96), 2), DeviceError, "Sort dim 2 is out of range for rank-2 tensor"),
        (
            ((64, 96), 1, INT32),
            DeviceError,
            "Input tensor data type must be BFLOAT16, UINT16, or FLOAT32, got DataType::",
        ),
        (((64, 4096),), NotSimulatedError, "sort: rows of 4096 elements, which cores share, are not simulated"),
        (((64, 64), 1, BFLOAT16, Layout.ROW_MAJOR), NotSimulatedError, "sort: ROW_MAJOR tensors are not simulated"),
    ],
)
def test_refusals(call, error, first):
    with pytest.raises(error, match=re.escape(first)):
        planned(*call)
