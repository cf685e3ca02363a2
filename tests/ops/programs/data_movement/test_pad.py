"""A number around a tensor, or in the padding of tiles."""

import numpy as np

from ops.op_model import Ends
from ops.op_models import load_spec
from ops.programs.data_movement.pad import FillTiles, PadWith, ragged_tiles, writes_halves
from tests.build import op_cycles, tensor_spec

SPEC = load_spec("wormhole_n150")
ROW_GROUPS = "1x1x2048x{} l1"


def test_a_number_of_32_bits_is_written_as_two_of_16():
    op = PadWith(shape=(1, 1), padding=((0, 0), (0, 1)), value=1.5, in_halves=True)
    assert op.moved(np.zeros((1, 1), np.float32)).view(np.uint32).tolist() == [[0, 0x3FC03FC0]]
    assert writes_halves(tensor_spec("8x8 float32"), tensor_spec("8x16 float32"))
    assert not writes_halves(tensor_spec("32x32 float32 tile"), tensor_spec("64x32 float32 tile"))
    assert not writes_halves(tensor_spec("8x8"), tensor_spec("8x16"))


def test_the_number_stands_behind_every_image():
    op = FillTiles(shape=(2, 1, 3), padded_shape=(2, 32, 32), value=2.0)
    values = np.arange(6, dtype=np.float32).reshape(2, 1, 3)
    full = op.moved(values)
    assert np.array_equal(full[:, :1, :3], values)
    assert full.sum() == values.sum() + 2 * (2 * 1024 - 6)
    assert np.array_equal(op.moved(full), full)


def test_only_tiles_with_padding_count():
    """Three of four tiles of each of five images: a copy of 15 tiles."""
    sizes = [ragged_tiles(shape) for shape in ((1, 1, 1024, 24), (1, 5, 33, 47), (2, 64, 32), (39,))]
    assert sizes == [32, 15, 0, 2]  # a vector is one row of tiles
    tensor = tensor_spec("1x5x33x47 tile")
    op = FillTiles(shape=tensor.shape, padded_shape=tensor.padded_shape, value=0.0)
    cycles = op_cycles(op, tensor)
    assert (cycles.dram_read_bytes, cycles.dram_written_bytes) == (15 * 2048, 15 * 2048)
    assert op.describe(Ends(read=tensor, written=tensor), SPEC).composed_of
