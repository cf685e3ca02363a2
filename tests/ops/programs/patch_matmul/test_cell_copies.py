"""Copies between images and cells, by hand."""

import numpy as np
import pytest

from ops.programs.patch_matmul.shifted_layer import Asked, Bundles, Cells, back, copies_of, copy_cells, gaps_of

# 3 x 5 positions of 2 bundles of 2 channels; rows in cells of one from position -1 on, columns in cells of two from -1
IMAGE = np.arange(1, 61, dtype=np.float32).reshape(3, 5, 4)
CELLS = (Cells(-1, 1, 3), Cells(-1, 2, 5))
ASKED = (Asked(0, 4), Asked(0, 3))


def in_cells(folded):
    copies = copies_of(CELLS, ASKED, (3, 1), (2, 4), folded=folded)
    cells = np.zeros((2, 48), np.float32)
    copy_cells(cells.reshape(-1), IMAGE.reshape(-1), copies, Bundles(2, 48, 2))
    return copies, cells


def padded():
    """[bundles, rows, cells, residues, channels]."""
    return np.pad(IMAGE, ((1, 0), (1, 0), (0, 0))).reshape(4, 3, 2, 2, 2).transpose(3, 0, 1, 2, 4)


def test_residues_lie_side_by_side():
    assert np.array_equal(in_cells(folded=True)[1].reshape(2, 4, 3, 2, 2), padded())


def test_residues_lie_on_planes():
    assert np.array_equal(in_cells(folded=False)[1].reshape(2, 2, 4, 3, 2), padded().transpose(0, 3, 1, 2, 4))


@pytest.mark.parametrize("folded", [True, False])
def test_gaps_are_the_zeros_around(folded):
    copies, cells = in_cells(folded)
    gaps = [n for first, last in gaps_of(copies, 48).tolist() for n in range(first, last)]
    assert gaps == np.flatnonzero(cells[0] == 0).tolist()


@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("storage", [np.float32, np.float16])
def test_cells_are_copied_back(folded, storage):
    copies, cells = in_cells(folded)
    image = np.zeros(60, storage)
    copy_cells(image, cells.reshape(-1), back(copies), Bundles(2, 2, 48))
    assert np.array_equal(image.reshape(IMAGE.shape), IMAGE)


def test_a_row_of_all_channels_is_one_piece():
    copies = copies_of(CELLS, ASKED, (3, 1), (4, 4), folded=True)
    assert copies.tolist() == [[28, 0, 3, 1, 20, 24, 4, 20, 4]]


def test_axes_before_the_last_two_are_copied_one_position_at_a_time():
    cells = (Cells(0, 1, 2), *CELLS)
    copies = copies_of(cells, (Asked(0, 2), *ASKED), (12, 3, 1), (2, 4), folded=True)
    assert copies[:, :2].tolist() == [[14, 0], [62, 60]]
