"""A number in the padding of tiles."""

import numpy as np

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16
from ops.op_model import CyclesContext, Ends
from ops.op_models import load_spec
from ops.programs.rearrange.filling import OP_MODELS, FillTiles, filled

SPEC = load_spec("wormhole_n150")
RAGGED = TensorSpec((1, 5, 33, 47), BFLOAT16, Layout.TILE)


def test_the_number_stands_behind_every_image():
    work = FillTiles(shape=(2, 1, 3), padded_shape=(2, 32, 32), value=2.0)
    values = np.arange(6, dtype=np.float32).reshape(2, 1, 3)
    full = filled(work, values)
    assert np.array_equal(full[:, :1, :3], values)
    assert full.sum() == values.sum() + 2 * (2 * 1024 - 6)
    assert np.array_equal(filled(work, full), full)


def test_it_takes_as_long_as_a_copy_of_those_tiles():
    reading = CyclesContext(spec=SPEC, contention=True)
    few = FillTiles(shape=RAGGED.shape, padded_shape=RAGGED.padded_shape, value=0.0)
    meaning, ends = OP_MODELS[0], Ends(read=RAGGED, written=RAGGED)
    assert meaning.cycles(few, ends, reading).cycles > 0
    assert meaning.account(few, ends, SPEC).composed_of
