"""How a reshape of tiles takes its output tiles together: pieces of rows, and input tiles fetched one after another.

The program goes through an output tile row by row. A piece ends where a row of a face ends, in the input or in the
output; an input tile is fetched again whenever the piece before lay in another one. Both are counted over tiles evenly
spread through the output, so that a large tensor takes no longer to plan than a small one.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from device.memory.memory_config import FACE, TILE
from device.numbers.block_floats import Integers, div_up

COUNTED = 16  # output tiles at most


@dataclass(frozen=True, slots=True)
class TileMap:
    """Averages over output tiles."""

    segments: float  # Pieces of rows of an output tile
    fetched: float  # Input tiles that are fetched for it


def tile_map(source: tuple[int, ...], target: tuple[int, ...]) -> TileMap:
    """Pieces and input tiles of an output tile, for the logical shapes of both sides (the same volume)."""
    (in_rows, in_cols), (rows, cols) = ((1, *shape)[-2:] for shape in (source, target))  # a vector is one row
    number, plane, row, col = _elements(prod(target[:-2]), rows, cols)
    line, in_col = np.divmod((plane * rows + row) * cols + col, in_cols)
    in_plane, in_row = np.divmod(line, in_rows)
    in_tile = (in_plane * div_up(in_rows, TILE) + in_row // TILE) * div_up(in_cols, TILE) + in_col // TILE
    tiles = int(number[-1]) + 1
    segments = _runs(number, row, col // FACE, line, in_col // FACE)
    return TileMap(segments / tiles, _runs(number, in_tile) / tiles)


def _elements(planes: int, rows: int, cols: int) -> tuple[Integers, Integers, Integers, Integers]:
    """Elements of the counted tiles, tile by tile and row by row: number of the tile, plane, row and column."""
    down, across = div_up(rows, TILE), div_up(cols, TILE)
    tiles = np.unique(np.linspace(0, planes * down * across - 1, COUNTED).astype(np.int64))
    plane, place = np.divmod(tiles, down * across)
    inside = np.arange(TILE)
    row = (TILE * (place // across))[:, None, None] + inside[:, None]
    col = (TILE * (place % across))[:, None, None] + inside
    shape = (len(tiles), TILE, TILE)
    there = np.broadcast_to((row < rows) & (col < cols), shape)
    number = np.arange(len(tiles))[:, None, None]
    found = [np.broadcast_to(one, shape)[there] for one in (number, plane[:, None, None], row, col)]
    return found[0], found[1], found[2], found[3]


def _runs(*keys: Integers) -> int:
    """Runs of elements that agree in all keys."""
    changed = np.zeros(len(keys[0]) - 1, np.bool_)
    for key in keys:
        changed |= np.diff(key) != 0
    return 1 + int(changed.sum())
