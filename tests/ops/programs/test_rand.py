"""Evenly distributed numbers, and the program that makes them."""

import numpy as np

from device.numbers.formats import BFLOAT16
from ops.programs.rand import EvenlyDistributed, rand_buffers
from tests.build import N150, op_values, tensor_spec


def drawn(seed):
    op = EvenlyDistributed(shape=(64, 64), low=2.0, high=4.0, seed=seed, data_format=BFLOAT16)
    return op_values(op).astype(np.float32)


def test_numbers_follow_from_the_seed_and_lie_between_the_ends():
    values = drawn(3)
    assert np.array_equal(values, drawn(3))
    assert not np.array_equal(values, drawn(4))
    assert 2 <= values.min() < 2.1 < 3.9 < values.max() <= 4


def test_two_tiles_are_on_their_way():
    (tiles,) = rand_buffers(tensor_spec("2x3x50x70 float32 tile"), N150)
    assert (tiles.size_bytes, str(tiles.cores)) == (8192, "{[0-0 - 3-7], [4-0 - 4-3]}")  # 36 tiles, column by column
