"""Formats that two operands may have together."""

import pytest

from device.errors import ArgumentError, DeviceError
from device.numbers.formats import BFLOAT16, FLOAT32, INT32, UINT8, UINT16, UINT32
from ops.planners.eltwise import require_formats
from ops.programs.eltwise.op import Binary


def require(left, right=None, operation="add", **fields):
    op = Binary(operation=operation, left_format=left, right_format=right, data_format=left, **fields)
    require_formats(op)


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


def test_activations_of_integers_are_not_simulated():
    with pytest.raises(ArgumentError, match="activations of integers but relu"):
        require(INT32, scalar=2.0, activations=(("gelu", ()),))


@pytest.mark.parametrize(
    ("operation", "formats", "message"),
    [
        ("maximum", (BFLOAT16, FLOAT32), "Mixed dtype is not supported for binary operation BinaryOpType::MAXIMUM"),
        ("bitwise_and", (FLOAT32, INT32), "Input tensor A dtype DataType::FLOAT32 is not supported for binary"),
        ("div", (INT32, UINT32), "Input tensor B dtype DataType::UINT32 is not supported for binary operation"),
        ("pow", (INT32, INT32), "POWER: tensor exponents are not supported for integer inputs"),
    ],
)
def test_each_function_has_its_formats(operation, formats, message):
    with pytest.raises(DeviceError, match=message):
        require(*formats, operation=operation)


def test_floats_of_two_formats_are_compared():
    require(BFLOAT16, FLOAT32, operation="gt")
