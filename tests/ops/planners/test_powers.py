"""Powers of integers: the program, as ttnn 0.81.1 plans it on a device of 8x8 cores, and its numbers."""

import re

import numpy as np
import pytest

import ttsim
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import INT32
from device.plan import Operation
from ops.op_models import load_spec
from ops.planners.powers import plan_integer_power
from tests.build import tensor_spec

SPEC = load_spec("wormhole_n150")


def planned(exponent, layout=Layout.TILE):
    return plan_integer_power(TensorSpec((64, 224), INT32, layout), exponent, SPEC)


def test_tiles_are_shared_column_by_column():
    (step,) = [step for step in planned(4.0).steps if isinstance(step, Operation)]
    assert step.name == "PowIntDeviceOperation"
    assert [(str(buffer.cores), buffer.size_bytes) for buffer in step.circular_buffers] == [
        ("{[0-0 - 1-5], [0-6 - 0-7]}", 8192)
    ] * 2


@pytest.mark.parametrize(
    ("call", "first"),
    [
        ((2.5,), "pow: DataType::INT32 input requires an integral exponent, got 2.5"),
        ((2.0**31,), "pow: DataType::INT32 input requires an integral exponent, got 2.1474836e+09"),
        ((-1.0,), "pow: integers to negative integer powers are not allowed, got -1"),
        ((2.0, Layout.ROW_MAJOR), "pow_int: input must be in TILE layout, got Layout::ROW_MAJOR"),
    ],
)
def test_refusals(call, first):
    with pytest.raises(DeviceError, match=re.escape(first)):
        planned(*call)


def test_rows_in_shards_have_a_result_of_whole_tiles_before_their_layout_is_looked_at():
    rows = tensor_spec("64x16 rows l1 height/32x16/2").changed(data_format=INT32)
    with pytest.raises(DeviceError, match=r"^Physical shard shape \(32, 16\) must be tile"):
        plan_integer_power(rows, 2.0, SPEC)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "uint16"])
def test_numbers_are_those_of_the_bits_that_the_format_has(dtype):
    numbers = np.array([[1, 2, 3, 300, 65535]]) if dtype != "int32" else np.array([[-3, 2, -70000, 300, 0]])
    with ttsim.open_device() as device:
        tensor = ttsim.Tensor(numbers, ttsim.DataType[dtype.upper()], device, ttsim.TILE_LAYOUT)
        result = ttsim.pow(tensor, 5).to_numpy()
    bits = 16 if dtype == "uint16" else 32
    expected = [[int(number) ** 5 % 2**bits for number in numbers[0]]]
    assert (result.astype(np.int64) % 2**bits).tolist() == expected
