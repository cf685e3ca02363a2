"""Sums, differences and products of single elements, worked by hand."""

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.programs.eltwise.op import Activate, Binary, BinaryOperation, activated, combined

COMPUTE = load_spec("wormhole_n150").compute


def result(op, left, right=None):
    arrays = [None if one is None else np.array([one], np.float32) for one in (left, right)]
    return float(combined(op, *arrays, EXACT, COMPUTE)[0])


def op(operation, **fields):
    return Binary(operation=operation, **{"left_format": BFLOAT16, "data_format": BFLOAT16, **fields})


def test_a_small_addend_is_rounded_to_the_larger_operand_first():
    both = op(BinaryOperation.ADD, right_format=BFLOAT16)
    assert result(both, 1.0, 2.0**-8) == 1.0078125  # 1 + 1/256 lies halfway between 1 and 1 + 1/128: up
    assert result(both, 1.0, -(2.0**-9)) == 1.0  # 1 - 1/512 is 255.5/256, and goes up, too


def test_tensors_without_axes_stay_without():
    both, four = op(BinaryOperation.ADD, right_format=BFLOAT16), np.float32(4)
    assert combined(both, np.array(four), np.array(four), EXACT, COMPUTE).shape == ()
    relu = Activate(name="relu", parameters=(), data_format=BFLOAT16)
    assert activated(relu, np.array(four), EXACT, reciprocal_table=False).shape == ()


def test_a_number_is_packed_as_bfloat16():
    assert result(op(BinaryOperation.SUBTRACT, scalar=1.7), 2.0) == 0.296875  # 2 - 1.703125


def test_a_product_of_one_format_is_rounded_to_even():
    squared = op(BinaryOperation.MULTIPLY, right_format=BFLOAT16)
    assert result(squared, 1.0 + 2.0**-7, 1.5) == 1.5 + 2.0**-6  # 193.5 / 128 is a tie, and 194 even
    assert result(squared, 1.0 + 3 * 2.0**-7, 1.5) == 196 / 128  # 196.5 / 128 is a tie, and 196 even


def test_a_product_of_two_formats_takes_four_phases():
    mixed = op(BinaryOperation.MULTIPLY, right_format=BFLOAT8_B)
    # -0.466796875 is -0.4375 and -0.029296875: -308 / 1024, then 20.625 / 1024 more is 329 with 8 bits, which is 330
    assert result(mixed, -0.466796875, 0.6875) == -330 / 1024


def test_a_product_of_block_floats_is_the_matrix_units():
    blocks = op(BinaryOperation.MULTIPLY, left_format=BFLOAT8_B, right_format=BFLOAT8_B)
    assert result(blocks, -0.4375, 0.6875) == -0.30078125  # -77 / 256 exactly
    number = op(BinaryOperation.MULTIPLY, left_format=BFLOAT8_B, scalar=0.7)  # as bfloat16 179 / 256
    # -0.984375 has 6 bits in the first activation part: -63 / 64 * 179 / 256 = -11277 / 16384 is -176.2 / 256
    assert result(number, -0.984375) == -176 / 256


def test_a_fast_product_of_one_format_is_the_matrix_units():
    fast = op(BinaryOperation.MULTIPLY, right_format=BFLOAT16, fast=True)
    assert result(fast, -0.466796875, 0.6875) == -330 / 1024  # as above; rounded once it is -328.625, which is 328
    wide = op(BinaryOperation.MULTIPLY, left_format=FLOAT32, right_format=FLOAT32, data_format=FLOAT32, fast=True)
    assert result(wide, 1.0 + 2.0**-20, 1.5) == 1.5 + 1.5 * 2.0**-20  # float32 stays with the vector unit


def test_float32_operands_keep_their_bits():
    wide = op(BinaryOperation.ADD, left_format=FLOAT32, right_format=FLOAT32, data_format=FLOAT32)
    assert result(wide, 1.0, 2.0**-20) == 1.0 + 2.0**-20


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_relu_comes_last(sign):
    rectified = op(BinaryOperation.MULTIPLY, scalar=sign, activations=(("relu", ()),))
    assert result(rectified, 3.0) == max(3.0 * sign, 0.0)


def test_an_operand_is_activated_before_the_operation():
    relu, square = (("relu", ()),), (("square", ()),)
    both = {"right_format": BFLOAT16}
    assert result(op(BinaryOperation.ADD, left_activations=relu, **both), -3.0, 2.0) == 2.0
    assert result(op(BinaryOperation.ADD, right_activations=relu, **both), 2.0, -3.0) == 2.0
    assert result(op(BinaryOperation.ADD, left_activations=square, **both), -3.0, 2.0) == 11.0
    assert result(op(BinaryOperation.SUBTRACT, left_activations=relu, scalar=2.0), -3.0) == -2.0
