"""Evenly distributed numbers, and the program that makes them."""

import numpy as np

from device.matrix_unit.arithmetic import EXACT
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.op_model import ValuesContext
from ops.programs.rand import EvenlyDistributed, rand_buffers

SPEC = load_spec("wormhole_n150")


def drawn(**changed):
    op = EvenlyDistributed(
        **{"shape": (64, 64), "low": 2.0, "high": 4.0, "seed": 3, "data_format": BFLOAT16, **changed}
    )
    return op.values([], ValuesContext(spec=SPEC, arithmetic=EXACT))


def test_numbers_follow_from_the_seed_and_lie_between_the_ends():
    values = drawn().astype(np.float32)
    assert np.array_equal(values, drawn().astype(np.float32))
    assert not np.array_equal(values, drawn(seed=4).astype(np.float32))
    assert 2 <= values.min() < 2.1 < 3.9 < values.max() <= 4


def test_two_tiles_are_on_their_way():
    (tiles,) = rand_buffers(TensorSpec((2, 3, 50, 70), FLOAT32, Layout.TILE), SPEC)
    assert (tiles.size_bytes, str(tiles.cores)) == (8192, "{[0-0 - 3-7], [4-0 - 4-3]}")  # 36 tiles, column by column
