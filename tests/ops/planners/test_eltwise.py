"""Formats that two operands may have together."""

import pytest

from device.errors import ArgumentError, DeviceError
from device.numbers.formats import BFLOAT16, FLOAT32, INT32, UINT8, UINT16, UINT32
from ops.planners.eltwise import require_formats
from ops.programs.eltwise.op import Binary, BinaryOperation


def require(left, right=None, out_format=None, operation=BinaryOperation.ADD, **fields):
    op = Binary(operation=operation, left_format=left, right_format=right, data_format=left, **fields)
    require_formats(op, out_format or left)


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        (UINT8, BFLOAT16, "Input tensor A dtype DataType::UINT8 is not supported for binary operation {add}"),
        (INT32, UINT8, "Input tensor B dtype DataType::UINT8 is not supported for binary operation {add}"),
        (
            BFLOAT16,
            INT32,
            "Mixed dtype is not supported for binary operation {add}, dtype A: DataType::BFLOAT16, dtype B: "
            "DataType::INT32",
        ),
        (
            UINT16,
            UINT32,
            "Mixed dtype is not supported for binary operation {add}, dtype A: DataType::UINT16, dtype B: "
            "DataType::UINT32",
        ),
    ],
)
def test_formats_that_do_not_go_together(left, right, message):
    with pytest.raises(DeviceError) as refused:
        require(left, right)
    assert str(refused.value).splitlines()[0] == message.format(add="BinaryOpType::ADD")


@pytest.mark.parametrize(("data_format", "number"), [(UINT32, 0.5), (UINT32, -1.0), (INT32, 2.0**31), (INT32, 1.5)])
def test_a_number_that_the_tensor_does_not_hold(data_format, number):
    with pytest.raises(DeviceError) as refused:
        require(data_format, scalar=number)
    assert f"cannot represent the scalar {number:g}: only a finite integer" in str(refused.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scalar": 2.0, "activations": (("gelu", ()),)}, "activations of integers but relu"),
        ({"scalar": 2.0, "out_format": BFLOAT16}, "with a result of another format, bfloat16,"),
        ({"scalar": 0.5, "operation": BinaryOperation.MULTIPLY}, "0.5 with a tensor of int32 is not simulated"),
        ({"right": FLOAT32, "operation": BinaryOperation.MULTIPLY}, "int32 and float32 are not simulated together"),
    ],
)
def test_what_is_not_simulated_of_integers(fields, message):
    with pytest.raises(ArgumentError, match=message):
        require(INT32, **fields)
