"""Element-wise operations by hand: what they compute, their circular buffers (as ttnn 0.81.1 without kernels), time."""

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT, FAST
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, INT32, UINT16, UINT32, quantize
from ops.builder import PlanTensor
from ops.programs.eltwise.op import Activate, AddRow, Binary
from ops.programs.eltwise.shards import lies_in_place, unary_buffers
from tests.build import N150, op_values, tensor_spec

MATRIX = np.arange(-30, 30, dtype=np.float32).reshape(1, 1, 3, 20)
ADD, SUBTRACT, MULTIPLY = "add", "subtract", "multiply"
RELU, SQUARE = (("relu", ()),), (("square", ()),)


@pytest.mark.parametrize("arithmetic", [EXACT, FAST], ids=["exact", "fast"])
@pytest.mark.parametrize("data_format", [BFLOAT16, BFLOAT8_B, FLOAT32], ids=str)
@pytest.mark.parametrize("row_format", [BFLOAT16, FLOAT32], ids=str)
def test_the_first_row_of_a_prepared_bias_is_added(arithmetic, data_format, row_format):
    bias = np.zeros((1, 1, 32, 32), np.float32)
    bias[..., 0, :] = np.arange(32)
    op = AddRow(data_format=data_format, row_format=row_format)
    result = op_values(op, MATRIX.astype(data_format.storage), quantize(bias, row_format), arithmetic=arithmetic)
    assert result.dtype == data_format.storage
    np.testing.assert_array_equal(result.astype(np.float32), MATRIX + np.arange(20))


def test_two_float32_are_added_as_floats():
    op = AddRow(data_format=FLOAT32, row_format=FLOAT32)
    result = op_values(op, np.full((1, 20), 1 + 2.0**-20, np.float32), np.zeros((32, 32), np.float32))
    assert (result == 1 + 2.0**-20).all()


NUMBER = 1 + 3 * 2.0**-8  # three halves of a place of a bfloat16, which a 16-bit Dst cuts


@pytest.mark.parametrize(
    ("name", "parameters", "data_format", "want"),
    [
        *(("relu", (), data_format, np.maximum(MATRIX, 0)) for data_format in (BFLOAT16, BFLOAT8_B, FLOAT32)),
        ("leaky_relu", (0.5,), FLOAT32, np.where(MATRIX > 0, MATRIX, MATRIX / 2)),
        ("fill", (NUMBER,), BFLOAT16, np.full_like(MATRIX, 1 + 2.0**-7)),
        ("fill", (NUMBER,), FLOAT32, np.full_like(MATRIX, NUMBER)),
    ],
)
def test_functions_by_hand(name, parameters, data_format, want):
    op = Activate(name=name, parameters=parameters, data_format=data_format)
    np.testing.assert_array_equal(op_values(op, MATRIX.astype(data_format.storage)).astype(np.float32), want)


def test_a_result_of_another_format_is_packed_to_it():
    """Sixteen neighbors share the exponent of 4: units of 1/16, half up."""
    row = np.array([[4.0, 0.15625, 0.14] + [-1.0] * 13], np.float32).astype(BFLOAT16.storage)
    result = op_values(Activate(name="relu", parameters=(), data_format=BFLOAT16, out_format=BFLOAT8_B), row)
    assert result.dtype == BFLOAT8_B.storage
    assert result[0, :4].astype(float).tolist() == [4.0, 0.1875, 0.125, 0.0]
    wide = Activate(name="relu", parameters=(), data_format=BFLOAT16, out_format=FLOAT32)
    assert op_values(wide, row).dtype == np.float32


def test_tensors_without_axes_stay_without():
    four = np.array(4, np.float32)
    both = Binary(operation=ADD, left_format=BFLOAT16, right_format=BFLOAT16, data_format=BFLOAT16)
    assert op_values(both, four, four).shape == ()
    assert op_values(Activate(name="relu", parameters=(), data_format=BFLOAT16), four).shape == ()


PLACE = 2.0**-7  # the last place of a bfloat16 from 1 on
BOTH, BLOCKS = {"right_format": BFLOAT16}, {"left_format": BFLOAT8_B, "right_format": BFLOAT8_B}
FLOATS = {"left_format": FLOAT32, "right_format": FLOAT32, "data_format": FLOAT32}


@pytest.mark.parametrize(
    ("operation", "fields", "left", "right", "want"),
    [
        # A small addend is rounded to the larger operand first: 1 + 1/256 lies halfway between 1 and 1 + 1/128, and
        # 1 - 1/512 is 255.5/256; both go up.
        (ADD, BOTH, 1.0, PLACE / 2, 1 + PLACE),
        (ADD, BOTH, 1.0, -PLACE / 4, 1.0),
        (ADD, FLOATS, 1.0, 2.0**-20, 1.0 + 2.0**-20),
        (SUBTRACT, {"scalar": 1.7}, 2.0, None, 0.296875),  # a number is packed as bfloat16: 2 - 1.703125
        (SUBTRACT, {"scalar": 1.5, "scalar_first": True}, 2.0, None, -0.5),
        # A product of one format is rounded once, to even: 193.5 / 128 and 196.5 / 128 are ties.
        (MULTIPLY, BOTH, 1.0 + PLACE, 1.5, 194 / 128),
        (MULTIPLY, BOTH, 1.0 + 3 * PLACE, 1.5, 196 / 128),
        # One of two formats takes four phases of the matrix unit: -0.466796875 is -0.4375 and -0.029296875, so that
        # -308 / 1024 and then 20.625 / 1024 more is 329 with 8 bits, which is 330. So does a fast one of one format.
        (MULTIPLY, {"right_format": BFLOAT8_B}, -0.466796875, 0.6875, -330 / 1024),
        (MULTIPLY, BOTH | {"fast": True}, -0.466796875, 0.6875, -330 / 1024),
        (MULTIPLY, FLOATS | {"fast": True}, 1.0 + 2.0**-20, 1.5, 1.5 + 1.5 * 2.0**-20),  # stays with the vector unit
        (MULTIPLY, BLOCKS, -0.4375, 0.6875, -77 / 256),
        # The number is 179 / 256 as bfloat16; -0.984375 has 6 bits in the first part: -11277 / 16384 is -176.2 / 256.
        (MULTIPLY, {"left_format": BFLOAT8_B, "scalar": 0.7}, -0.984375, None, -176 / 256),
        (MULTIPLY, {"scalar": 1.0, "activations": RELU}, 3.0, None, 3.0),
        (MULTIPLY, {"scalar": -1.0, "activations": RELU}, 3.0, None, 0.0),
        (ADD, BOTH | {"left_activations": RELU}, -3.0, 2.0, 2.0),
        (ADD, BOTH | {"right_activations": RELU}, 2.0, -3.0, 2.0),
        (ADD, BOTH | {"left_activations": SQUARE}, -3.0, 2.0, 11.0),
        (ADD, BOTH | {"left_activations": (*RELU, *SQUARE)}, -3.0, 2.0, 2.0),
        (SUBTRACT, {"left_activations": RELU, "scalar": 2.0}, -3.0, None, -2.0),
    ],
)
def test_floats_are_combined(operation, fields, left, right, want):
    op = Binary(operation=operation, **{"left_format": BFLOAT16, "data_format": BFLOAT16, **fields})
    arrays = [None if number is None else np.array([number], np.float32) for number in (left, right)]
    assert float(op_values(op, *arrays)[0]) == want


@pytest.mark.parametrize(
    ("operation", "data_format", "fields", "left", "right", "want"),
    [
        (ADD, INT32, {}, 2**24, 1, 2**24 + 1),  # no float32 between
        (ADD, UINT16, {}, 65535, 2, 1),
        (SUBTRACT, UINT32, {}, 1, 2, 2**32 - 1),
        (MULTIPLY, UINT32, {}, 2**31 + 3, 2, 6),
        (MULTIPLY, INT32, {}, -7, 3, -21),
        (SUBTRACT, INT32, {"scalar": 10.0, "scalar_first": True}, 3, None, 7),
        (ADD, INT32, {"left_activations": RELU}, -5, 3, 3),
        (ADD, INT32, {"right_activations": RELU}, 5, -3, 5),
        (ADD, INT32, {"activations": RELU}, -5, 3, 0),
    ],
)
def test_integers_are_exact_modulo_their_range(operation, data_format, fields, left, right, want):
    second = None if right is None else data_format
    op = Binary(operation=operation, left_format=data_format, right_format=second, data_format=data_format, **fields)
    arrays = [None if number is None else np.array([number], data_format.storage) for number in (left, right)]
    result = op_values(op, *arrays)
    assert (result.dtype, int(result[0])) == (data_format.storage, want)


def test_a_function_packs_to_the_format_of_its_result():
    ends = [PlanTensor(name, tensor_spec(f"64x64 {name} tile")) for name in ("bfloat16", "bfloat8_b")]
    assert [buffer.size_bytes for buffer in unary_buffers(*ends, N150)] == [4096, 2176]


@pytest.mark.parametrize(
    ("place", "in_place"),
    [
        ("2048x8 height/1024x8/2", True),
        ("2048x4 height/1024x4/2", False),  # 8 bytes: a row does not end where L1 is aligned
        ("2048x4 float32 height/1024x4/2", True),
        ("2048x3 float32 height/1024x3/2", False),
        ("32x32 height/16x32/2", False),  # rows are no whole tiles
        ("64x32 tile height/32x32/2", True),
        ("64x32 tile height/32x32/2 dram", False),
        ("96x32 tile height/64x32/2", False),  # the last shard is not full
        ("64x32 tile", False),
    ],
)
def test_functions_that_work_on_shards_where_they_lie(place, in_place):
    tensor = tensor_spec(place)
    assert lies_in_place(tensor, tensor, N150) is in_place
    views = [buffer.view_of for buffer in unary_buffers(PlanTensor("x", tensor), PlanTensor("y", tensor), N150)]
    assert views == (["x", "y"] if in_place else [None, None])


def test_both_ends_must_lie_alike():
    tensor = tensor_spec("64x32 tile height/32x32/2")
    for other in ("64x32 tile height/64x32/1", "64x32 tile width/64x32/1", "64x32 tile l1", "64x32 tile"):
        assert not lies_in_place(tensor, tensor_spec(other), N150)
        assert not lies_in_place(tensor_spec(other), tensor, N150)


@pytest.mark.parametrize("other", ["64x64 tile block/32x64/2x2", "64x64 tile block/32x32/2x2 col"])
def test_shards_of_another_shape_or_order_on_the_same_cores_are_copied(other):
    tensor = tensor_spec("64x64 tile block/32x32/2x2")
    assert tensor.shards.grid == tensor_spec(other).shards.grid
    assert not lies_in_place(tensor, tensor_spec(other), N150)
