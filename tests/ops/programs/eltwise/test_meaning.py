"""What the table says of element-wise operations."""

import numpy as np

from device.matrix_unit.arithmetic import EXACT
from device.numbers.formats import FLOAT32
from device.spec.device_spec import load_spec
from ops.op_model import ValuesContext
from ops.op_models import OP_MODELS
from ops.programs.eltwise.op import Activate, AddRow

READING = ValuesContext(spec=load_spec("wormhole_n150"), arithmetic=EXACT)


def test_the_row_that_is_added_is_the_first_of_a_prepared_bias():
    matrix = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    bias = np.zeros((1, 1, 32, 32), np.float32)
    bias[0, 0, 0, :2] = 10, 20
    op = AddRow(data_format=FLOAT32, row_format=FLOAT32)
    assert OP_MODELS[AddRow].values(op, [matrix, bias], READING).tolist() == [[[[10, 21], [12, 23]]]]


def test_an_activation_takes_every_element():
    op = Activate(name="relu", parameters=(), data_format=FLOAT32)
    got = OP_MODELS[Activate].values(op, [np.array([[-1.0, 2.0]], np.float32)], READING)
    assert got.tolist() == [[0.0, 2.0]]
