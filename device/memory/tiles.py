"""32x32 tiles of four 16x16 faces: the order of elements, and padding to whole tiles."""

from typing import Final

import numpy as np

from device.numbers.formats import Array
from device.numbers.integers import round_up

TILE: Final = 32
FACE: Final = 16


def pad_to_tiles(matrix: Array) -> Array:
    """Zero rows and columns after the last, up to whole tiles; the array itself when nothing is missing.

    Args:
        matrix: [..., R, C].

    Returns:
        [..., round_up(R, 32), round_up(C, 32)].
    """
    rows, cols = matrix.shape[-2:]
    padded = (round_up(rows, TILE), round_up(cols, TILE))
    if padded == (rows, cols):
        return matrix
    out = np.zeros((*matrix.shape[:-2], *padded), matrix.dtype)
    out[..., :rows, :cols] = matrix
    return out


def tilize(matrix: Array) -> Array:
    """Cut a matrix into tiles, elements in face order; ragged edges are padded with zeros.

    Args:
        matrix: [..., R, C].

    Returns:
        [..., tile_rows, tile_cols, 1024]: face (0, 0), (0, 1), (1, 0), (1, 1), each row by row.
    """
    padded = pad_to_tiles(matrix)
    tile_rows, tile_cols = padded.shape[-2] // TILE, padded.shape[-1] // TILE
    lead = padded.shape[:-2]
    faces = padded.reshape(*lead, tile_rows, 2, FACE, tile_cols, 2, FACE)
    axes = [len(lead) + axis for axis in (0, 3, 1, 4, 2, 5)]
    return faces.transpose(*range(len(lead)), *axes).reshape(*lead, tile_rows, tile_cols, TILE * TILE)


def untilize(tiles: Array, rows: int | None = None, cols: int | None = None) -> Array:
    """The matrix of which ``tiles`` are the tiles.

    Args:
        tiles: [..., tile_rows, tile_cols, 1024] in face order.
        rows: Rows to keep; None for all.
        cols: Columns to keep; None for all.

    Returns:
        [..., rows, cols], C-contiguous unless cut.
    """
    lead = tiles.shape[:-3]
    tile_rows, tile_cols = tiles.shape[-3:-1]
    faces = tiles.reshape(*lead, tile_rows, tile_cols, 2, 2, FACE, FACE)
    axes = [len(lead) + axis for axis in (0, 2, 4, 1, 3, 5)]
    matrix = faces.transpose(*range(len(lead)), *axes).reshape(*lead, tile_rows * TILE, tile_cols * TILE)
    return matrix[..., :rows, :cols]
