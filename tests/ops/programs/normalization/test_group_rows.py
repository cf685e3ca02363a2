"""Blocks of group_norm on interleaved images."""

import pytest

from device.numbers.formats import BFLOAT16, FLOAT32
from ops.programs.normalization.group_rows import Blocks, chosen_blocks


@pytest.mark.parametrize(
    ("high", "wide", "data_format", "count"),
    [
        (8, 1, BFLOAT16, 1),
        (9, 1, BFLOAT16, 2),  # more than 8 tiles of bfloat16
        (33, 1, FLOAT32, 1),
        (160, 1, BFLOAT16, 2),  # 2.5 times 64 tiles
        (192, 1, BFLOAT16, 4),
        (700, 1, FLOAT32, 16),
        (1, 16, BFLOAT16, 1),  # one row is not cut
    ],
)
def test_blocks_that_the_real_library_chooses(high, wide, data_format, count):
    assert chosen_blocks(high, wide, data_format, few=True) == count
    assert chosen_blocks(9, 1, BFLOAT16, few=False) == 1  # the program of two passes


def test_rows_that_are_left_over_make_more_sums():
    """9 rows in 4 blocks of 2 leave one, whose sum takes a place of its own."""
    assert (Blocks(high=9, wide=3, count=4).tiles, Blocks(high=9, wide=3, count=4).sums) == (6, 5)
