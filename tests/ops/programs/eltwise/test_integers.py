"""Integers are exact, modulo two to the power of their bits."""

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT
from device.numbers.formats import FORMATS, INT32, UINT8, UINT16, UINT32
from device.spec.device_spec import load_spec
from ops.programs.eltwise.op import SUPPORTED, Binary, BinaryOperation, applied_to_integers, combined

COMPUTE = load_spec("wormhole_n150").compute


def result(operation, left, right, data_format, **fields):
    op = Binary(
        operation=operation,
        left_format=data_format,
        right_format=data_format if right is not None else None,
        data_format=data_format,
        **fields,
    )
    arrays = [None if one is None else np.array([one], data_format.storage) for one in (left, right)]
    made = combined(op, *arrays, EXACT, COMPUTE)
    assert made.dtype == data_format.storage
    return int(made[0])


def test_sums_differences_and_products():
    assert result(BinaryOperation.ADD, 2**24, 1, INT32) == 2**24 + 1  # no float32 between
    assert result(BinaryOperation.ADD, 65535, 2, UINT16) == 1
    assert result(BinaryOperation.SUBTRACT, 1, 2, UINT32) == 2**32 - 1
    assert result(BinaryOperation.MULTIPLY, 2**31 + 3, 2, UINT32) == 6
    assert result(BinaryOperation.MULTIPLY, -7, 3, INT32) == -21
    assert result(BinaryOperation.SUBTRACT, 3, None, INT32, scalar=10.0, scalar_first=True) == 7


def test_activations_of_operands_and_of_the_result():
    relu = (("relu", ()),)
    assert result(BinaryOperation.ADD, -5, 3, INT32, left_activations=relu) == 3
    assert result(BinaryOperation.ADD, 5, -3, INT32, right_activations=relu) == 5
    assert result(BinaryOperation.ADD, -5, 3, INT32, activations=relu) == 0


@pytest.mark.parametrize("name", SUPPORTED)
def test_functions_agree_with_numpy(name):
    definition = {
        "abs": np.abs,
        "relu": lambda one: max(one, 0),
        "relu6": lambda one: min(max(one, 0), 6),
        "leaky_relu": lambda one: one,
        "neg": lambda one: -one,
        "square": lambda one: one * one,
    }[name]
    for data_format in SUPPORTED[name]:
        least = -7 if data_format == INT32 else 0
        values = np.arange(least, 14)
        assert np.array_equal(
            applied_to_integers(values.astype(data_format.storage), name, data_format), [definition(v) for v in values]
        )
    assert not [one for one in SUPPORTED[name] if one not in FORMATS.values()]


def test_squares_wrap():
    assert applied_to_integers(np.array([257], np.uint16), "square", UINT16)[0] == (257 * 257) % 65536
    assert applied_to_integers(np.array([200], np.uint8), "relu6", UINT8)[0] == 6
