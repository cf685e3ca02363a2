"""What the host does to weights and bias; the program itself is held by its values and its cycles."""

import numpy as np

from device.matrix_unit.arithmetic import EXACT
from device.memory.memory_config import TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import load_spec
from ops.op_model import ValuesContext
from ops.op_models import OP_MODELS
from ops.programs.conv2d.weights import PrepareBias, PrepareWeights, WeightsLayout

READING = ValuesContext(spec=load_spec("wormhole_n150"), arithmetic=EXACT)
LAYOUT = WeightsLayout(
    in_channels=2,
    out_channels=3,
    kernel=(1, 1),
    scheme=TensorMemoryLayout.HEIGHT_SHARDED,
    padded_in_channels=8,
    padded_out_channels=32,
    data_format=BFLOAT16,
)


def test_weights_and_bias_are_prepared():
    weights = np.arange(6, dtype=np.float32).reshape(2, 3, 1, 1)
    got = OP_MODELS[PrepareWeights].values(PrepareWeights(LAYOUT), [weights], READING)
    assert (got.shape, got.dtype) == ((1, 1, 32, 32), BFLOAT16.storage)
    assert got[0, 0, :2, :3].tolist() == [[0, 1, 2], [3, 4, 5]]
    bias = np.array([[[[7, 8, 9]]]], np.float32)
    row = OP_MODELS[PrepareBias].values(PrepareBias(LAYOUT), [bias], READING)
    assert row.shape == (1, 1, 32, 32)
    assert row[0, 0, 0, :3].tolist() == [7, 8, 9]
