"""Element-wise operations on small integers, and what a float32 keeps in them."""

from dataclasses import replace

import numpy as np
import pytest

from device.matrix_unit.arithmetic import EXACT, FAST
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, quantize
from ops.programs.eltwise.op import Activate, AddRow, activated, added_row

MATRIX = np.arange(-30, 30, dtype=np.float32).reshape(1, 1, 3, 20)


@pytest.mark.parametrize("arithmetic", [EXACT, FAST], ids=["exact", "fast"])
@pytest.mark.parametrize("data_format", [BFLOAT16, BFLOAT8_B, FLOAT32], ids=str)
@pytest.mark.parametrize("row_format", [BFLOAT16, FLOAT32], ids=str)
def test_added_row(arithmetic, data_format, row_format):
    row = np.arange(32, dtype=np.float32)
    op = AddRow(data_format=data_format, row_format=row_format)
    got = added_row(op, MATRIX.astype(data_format.storage), quantize(row, row_format), arithmetic)
    assert got.dtype == data_format.storage
    np.testing.assert_array_equal(got.astype(np.float32), MATRIX + row[:20])


def test_two_float32_are_added_as_floats():
    op = AddRow(data_format=FLOAT32, row_format=FLOAT32)
    got = added_row(op, np.full((1, 20), 1 + 2.0**-20, np.float32), np.zeros(32, np.float32), EXACT)
    assert (got == 1 + 2.0**-20).all()


@pytest.mark.parametrize("data_format", [BFLOAT16, BFLOAT8_B, FLOAT32], ids=str)
def test_relu_is_exact(data_format):
    op = Activate(name="relu", parameters=(), data_format=data_format)
    got = activated(op, MATRIX.astype(data_format.storage), EXACT, reciprocal_table=False)
    np.testing.assert_array_equal(got.astype(np.float32), np.maximum(MATRIX, 0))


def test_a_result_of_another_format_is_packed_to_it():
    """Sixteen neighbors share the exponent of 4: units of 1/16, half up."""
    op = Activate(name="relu", parameters=(), data_format=BFLOAT16, out_format=BFLOAT8_B)
    row = np.array([[4.0, 0.15625, 0.14] + [-1.0] * 13], np.float32).astype(BFLOAT16.storage)
    got = activated(op, row, EXACT, reciprocal_table=False)
    assert got.dtype == BFLOAT8_B.storage
    assert got[0, :4].astype(float).tolist() == [4.0, 0.1875, 0.125, 0.0]
    wide = replace(op, out_format=FLOAT32)
    assert activated(wide, row, EXACT, reciprocal_table=False).dtype == np.float32


def test_an_activation_with_a_parameter():
    op = Activate(name="leaky_relu", parameters=(0.5,), data_format=FLOAT32)
    np.testing.assert_array_equal(
        activated(op, MATRIX, EXACT, reciprocal_table=False), np.where(MATRIX > 0, MATRIX, MATRIX / 2)
    )
