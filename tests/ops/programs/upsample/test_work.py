"""Repeated pixels."""

import numpy as np
import pytest

from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from ops.programs.upsample import Upsample, UpsampleProgram, upsampled, upsampled_shape

STICKS, TILES, PAGES = UpsampleProgram.STICKS, UpsampleProgram.TILES, UpsampleProgram.PAGES


def work(scale, program=STICKS, shape=(1, 2, 3, 1), source=BFLOAT16, made=BFLOAT16):
    return Upsample(program=program, shape=shape, scale=scale, source_format=source, data_format=made)


def test_sides_are_rounded_down():
    assert upsampled_shape((2, 7, 5, 24), (1.5, 0.5)) == (2, 10, 2, 24)


def test_pixels_come_several_times():
    image = np.arange(6, dtype=np.float32).reshape(1, 2, 3, 1)
    assert upsampled(work((2.0, 1.0)), image).reshape(4, 3).tolist() == [[0, 1, 2], [0, 1, 2], [3, 4, 5], [3, 4, 5]]
    assert upsampled(work((1.0, 1.5), PAGES), image).reshape(2, 4).tolist() == [[0, 0, 1, 2], [3, 3, 4, 5]]
    assert upsampled(work((0.5, 0.5), PAGES), image).reshape(-1).tolist() == [0]


@pytest.mark.parametrize(
    ("program", "source", "made", "expected"),
    [
        (STICKS, FLOAT32, FLOAT32, 1.00390625),
        (TILES, FLOAT32, FLOAT32, 1.0),  # a 16-bit Dst has 7 bits of fraction
        (TILES, BFLOAT8_B, BFLOAT16, 1.015625),
    ],
)
def test_tiles_pass_the_matrix_unit(program, source, made, expected):
    given = np.full((1, 2, 32, 32), 1.015625 if source is BFLOAT8_B else 1.00390625, np.float32)
    result = upsampled(work((1.0, 1.0), program, given.shape, source, made), given)
    assert float(result[0, 0, 0, 0]) == expected
