"""Formats that two operands may have together."""

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet, core_rectangle
from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, INT32, UINT8, UINT16, UINT32
from ops.planners.eltwise import BinaryArguments, plan_binary, plan_unary, require_formats
from ops.programs.eltwise.functions import RELU
from ops.programs.eltwise.op import Binary
from ops.programs.eltwise.shards import works_on_shards
from tests.build import N150, place, tensor_spec


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


@pytest.mark.parametrize(("activation", "reason"), [("gelu", "add: numbers of activations of integers"), (RELU, None)])
def test_the_numbers_of_activations_of_integers_are_not_known(activation, reason):
    given = TensorSpec((32, 32), INT32, Layout.TILE)
    op = Binary(
        operation="add", left_format=INT32, data_format=INT32, scalar=2.0, right_format=None,
        activations=((activation, ()),),
    )  # fmt: skip
    found = plan_binary(BinaryArguments(op=op, left=given), N150).without_values
    assert found is reason or str(found).startswith(reason)


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


@pytest.mark.parametrize(
    ("left", "result", "in_place"),
    [  # beside one number in DRAM: shards of rows stay where they are, or all pass through buffers
        ("128x32 tile height/32x32/4", "height/32x32/4", True),
        ("128x32 tile height/32x32/4", "height/64x32/2", False),
        ("128x32 tile height/32x32/4", "height/32x32/4 col", False),
        ("128x32 tile height/32x32/4", "width/128x32/1", False),
        ("128x32 tile height/32x32/4 dram", "height/32x32/4 dram", False),
        ("128x32 tile height/32x32/4 dram", "height/32x32/4", False),
        ("128x32 tile width/128x32/1", "width/128x32/1", False),
    ],
)
def test_shards_beside_a_number_are_combined_where_they_lie(left, result, in_place):
    source, number = tensor_spec(left), tensor_spec("1x1 tile")
    target = source.changed(memory_config=place(result))
    assert works_on_shards(source, number, target, N150.release) is in_place


@pytest.mark.parametrize(("exact", "buffers"), [(False, ["left", "left_activated", "right", "result"]),
                                                (True, ["left", "right", "result"])])  # fmt: skip
def test_the_vector_unit_takes_a_difference_from_the_second_operand_at_once(exact, buffers):
    given = TensorSpec((32, 32), BFLOAT16, Layout.TILE)
    op = Binary(operation="rsub", left_format=BFLOAT16, right_format=BFLOAT16, data_format=BFLOAT16, exact=exact)
    (step,) = plan_binary(BinaryArguments(op=op, left=given, right=given), N150).steps
    assert [buffer.name for buffer in step.circular_buffers] == buffers


def test_formats_are_refused_before_cores_outside_the_device():
    outside = CoreRangeSet([CoreRange(CoreCoord(0, 0), CoreCoord(20, 0))])
    with pytest.raises(DeviceError, match="UnaryOpType::EXP does not support integer input dtype"):
        plan_unary(TensorSpec((32, 32), INT32, Layout.TILE), ("exp", ()), N150, cores=outside)


@pytest.mark.parametrize(
    ("orientation", "allowed", "outside"),
    [
        (ShardOrientation.ROW_MAJOR, (1, 1), None),  # the first core of the shards alone works
        (ShardOrientation.ROW_MAJOR, (5, 1), "0-1"),
        (ShardOrientation.COL_MAJOR, (5, 1), "0-1"),
        (ShardOrientation.COL_MAJOR, (1, 4), None),
    ],
)
def test_the_first_cores_of_shards_work_as_many_as_a_call_allows(orientation, allowed, outside):
    shards = ShardSpec(core_rectangle(4, 4), (64, 64), orientation)
    config = MemoryConfig(TensorMemoryLayout.BLOCK_SHARDED, BufferType.L1, shards)
    tensor = TensorSpec((256, 256), BFLOAT16, Layout.TILE, config)
    plan = plan_unary(tensor, ("trunc", ()), N150, cores=core_rectangle(*allowed))
    refused = plan.steps[-1].refused
    if outside is None:
        assert plan.without_values.startswith("trunc: shards on cores beside sub_core_grids")
    assert refused is None if outside is None else f"for node {outside}, but" in refused


@pytest.mark.parametrize(("data_format", "tiles"), [(BFLOAT16, 8), (FLOAT32, 2)])
def test_the_vector_unit_computes_ldexp_of_float32(data_format, tiles):
    given = tensor_spec("64x64 tile l1 height/32x64/2").changed(data_format=data_format)
    op = Binary(operation="ldexp", left_format=data_format, right_format=data_format, data_format=data_format)
    (step,) = plan_binary(BinaryArguments(op=op, left=given, right=given), N150).steps
    (power,) = [buffer for buffer in step.circular_buffers if buffer.name == "right_activated"]
    assert power.size_bytes == tiles * data_format.tile_bytes


@pytest.mark.parametrize(
    ("operation", "left", "right", "tiles"),
    [
        ("lt", BFLOAT16, BFLOAT16, 2),
        ("lt", BFLOAT16, None, 2),
        ("eq", BFLOAT8_B, BFLOAT8_B, 8),
        ("add", BFLOAT16, BFLOAT16, 8),
        ("add", BFLOAT16, FLOAT32, 4),
        ("add", FLOAT32, BFLOAT8_B, 4),
        ("multiply", FLOAT32, BFLOAT16, 2),
        ("multiply", BFLOAT8_B, FLOAT32, 4),
    ],
)
def test_as_many_tiles_wait_for_functions_of_an_operand_as_the_unit_takes(operation, left, right, tiles):
    """Two of the vector unit; of the matrix unit eight, and four where one of three tensors is float32."""
    given = tensor_spec("64x64 tile l1 height/32x64/2").changed(data_format=left)
    other = None if right is None else given.changed(data_format=right)
    op = Binary(
        operation=operation, left_format=left, right_format=right, scalar=2.0 if right is None else None,
        data_format=BFLOAT16, left_activations=(("neg", ()),),
    )  # fmt: skip
    target = given.changed(data_format=BFLOAT16)
    (step,) = plan_binary(BinaryArguments(op=op, left=given, right=other, target=target), N150).steps
    (negated,) = [buffer for buffer in step.circular_buffers if buffer.name == "left_activated"]
    assert negated.size_bytes == tiles * left.tile_bytes


def test_as_many_tiles_of_32_bits_wait_whatever_their_numbers():
    given = tensor_spec("64x64 tile l1 height/32x64/2")
    op = Binary(operation="rsub", left_format=BFLOAT16, right_format=BFLOAT16, data_format=INT32)
    target = given.changed(data_format=INT32)
    (step,) = plan_binary(BinaryArguments(op=op, left=given, right=given, target=target), N150).steps
    (negated,) = [buffer for buffer in step.circular_buffers if buffer.name == "left_activated"]
    assert negated.size_bytes == 4 * BFLOAT16.tile_bytes


@pytest.mark.parametrize(("data_format", "buffers"), [(UINT16, 3), (UINT8, 3), (INT32, 4)])
def test_unsigned_integers_are_their_own_magnitudes(data_format, buffers):
    given = tensor_spec("64x64 tile").changed(data_format=data_format)
    op = Binary(
        operation="eq", left_format=data_format, right_format=data_format, data_format=data_format,
        right_activations=(("abs", ()),),
    )  # fmt: skip
    (step,) = plan_binary(BinaryArguments(op=op, left=given, right=given), N150).steps
    assert len(step.circular_buffers) == buffers


def test_shards_of_the_second_operand_are_scaled_from_its_own_sides():
    left, right = tensor_spec("2x2x64x64 tile height/64x64/4"), tensor_spec("2x3x64x64 tile height/64x64/6")
    op = Binary(operation="add", left_format=BFLOAT16, right_format=BFLOAT16, data_format=BFLOAT16)
    with pytest.raises(DeviceError, match="Broadcasting rule violation at dimension index -3"):
        plan_binary(BinaryArguments(op=op, left=left, right=right), N150)


def test_rows_become_tiles_before_the_format_of_an_exact_sum_is_looked_at():
    shards = tensor_spec("64x64 rows l1 height/16x64/4").changed(data_format=FLOAT32)
    op = Binary(operation="add", left_format=FLOAT32, right_format=FLOAT32, data_format=FLOAT32, exact=True)
    with pytest.raises(DeviceError, match="must be tile"):
        plan_binary(BinaryArguments(op=op, left=shards, right=shards), N150)
    given = tensor_spec("64x64 tile").changed(data_format=FLOAT32)
    with pytest.raises(DeviceError, match="fast_and_approximate_mode=false is only supported for a BFLOAT16 output"):
        plan_binary(BinaryArguments(op=op, left=given, right=given), N150)


def test_a_vector_in_shards_is_written_into_interleaved_memory():
    vector = TensorSpec((128,), BFLOAT16, Layout.ROW_MAJOR, place("l1 width/1x32/4"))
    with pytest.raises(DeviceError, match="Rank must be at least 2"):
        plan_unary(vector, ("relu", ()), N150)
    target = TensorSpec((128,), BFLOAT16, Layout.ROW_MAJOR)
    assert not plan_unary(vector, ("relu", ()), N150, target=target).steps[-1].refused
