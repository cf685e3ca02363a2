import numpy as np
from hypothesis import given, strategies as st

from device.memory.memory_config import FACE, TILE, pad_to_tiles, tilize, untilize

SIZES = st.integers(1, 70)


def test_face_order():
    tile = tilize(np.arange(1024).reshape(32, 32))[0, 0]
    assert tile[:16].tolist() == list(range(16))  # row 0 of face (0, 0)
    assert tile[16] == 32  # row 1
    assert tile[256] == 16  # face (0, 1) begins at column 16
    assert tile[512] == 16 * 32  # face (1, 0) begins at row 16
    assert tile[768] == 16 * 32 + 16


@given(SIZES, SIZES, st.lists(st.integers(1, 3), max_size=2))
def test_every_element_is_where_the_definition_puts_it(rows, cols, lead):
    matrix = np.arange(1, np.prod(lead, dtype=int) * rows * cols + 1).reshape(*lead, rows, cols)
    tiles = tilize(matrix)
    row, col = rows - 1, cols // 2
    face = (row % TILE // FACE) * 2 + col % TILE // FACE
    element = face * FACE * FACE + row % FACE * FACE + col % FACE
    assert (tiles[..., row // TILE, col // TILE, element] == matrix[..., row, col]).all()
    assert tiles.sum() == matrix.sum()  # the padding is zero
    assert np.array_equal(untilize(tiles, rows, cols), matrix)
    assert np.array_equal(untilize(tiles), pad_to_tiles(matrix))


def test_whole_tiles_are_not_copied():
    matrix = np.zeros((64, 32), np.float32)
    assert pad_to_tiles(matrix) is matrix
    assert pad_to_tiles(matrix[:33]).shape == (64, 32)
