"""Rows that the busiest bank takes while all cores write a block in step, counted by hand."""

import pytest

from ops.programs.data_movement.bank_steps import busiest_bank_rows

IN_TURN, APART = (1, 2, 0), (2, 1, 0)  # rows of a block lie one behind the other, or as far apart as the middle axis


@pytest.mark.parametrize(
    ("shape", "axes", "cores", "rows"),
    [
        ((2, 8, 32), IN_TURN, 2, 2 * 32 / 4),  # a block's rows are in all four banks
        ((2, 8, 32), APART, 2, 2 * 32),  # eight apart: a block is in one bank, the fifth in that of the first
        ((2, 8, 32), APART, 8, 2 * 32),  # two of eight blocks in each bank
        ((2, 6, 32), APART, 3, 3 * 16),  # six apart: two banks a block, the same for blocks 0, 2 and 4
        ((2, 1, 40), IN_TURN, 1, (32 + 8) / 4 / 2),  # two blocks, one behind the other, of 32 rows and of 8
        ((40, 1, 32), IN_TURN, 1, 32 / 4),  # two blocks of the same rows, of 32 elements and of 8
        ((2, 3, 4, 32), (1, 3, 2, 0), 12, 3 * 32),  # four apart: three of twelve blocks in each bank
        ((2, 1, 3, 32), (1, 3, 2, 0), 2, (32 / 4 + 2 * 32 / 4) / 2),  # two cores write, then one
        ((2, 8, 32), (1, 1, 0), 2, 2 * 32),  # the last axis is lost: all rows of a block come into one place
    ],
)
def test_rows_of_the_busiest_of_four_banks(shape, axes, cores, rows):
    assert busiest_bank_rows(shape, axes, cores, 4, tiled=False) == rows


@pytest.mark.parametrize(
    ("shape", "axes", "cores", "rows"),
    [
        ((8, 4, 32), (1, 2, 0), 4, 32),  # four images of one tile, in which all 32 rows of a block are
        ((8, 8, 32), (1, 2, 0), 2, 2 * 32),  # eight: tiles 0 and 4 at a time, in the same bank
        ((40, 4, 32), (1, 2, 0), 8, 2 * 32),  # two tiles across, of which each has a block
        ((8, 4, 32), (2, 1, 0), 4, 4 * 32 / 4),  # 32 images of one tile, in which a core's row is one of four
        (
            (8, 36, 32),
            (2, 1, 0),
            2,
            (14 * 32 + 4 * 16) / 18,
        ),  # two tiles down, so two banks a block; the last four apart
    ],
)
def test_rows_of_tiles_are_in_the_bank_of_their_tile(shape, axes, cores, rows):
    assert busiest_bank_rows(shape, axes, cores, 4, tiled=True) == rows
