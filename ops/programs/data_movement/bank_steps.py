"""Pieces of rows that all cores write in step: how many of them the busiest bank of DRAM takes at a time.

Where a tensor's rows move to or from the last axis, a core writes one element of each row of a block after the other,
a fixed number of rows apart, so that a block may lie in a few banks, or in one; and cores that began together are at
the same place of their own blocks. Source of the order: tt-metal 0.81.1 (data_movement/permute, row-major writer).
"""

from functools import lru_cache
from math import gcd, prod
from typing import Final

import numpy as np

from device.memory.memory_config import TILE
from device.numbers.formats import div_up

Shape = tuple[int, ...]
SAMPLED: Final = 64  # steps that are looked at: patterns repeat
KEPT: Final = 1024


@lru_cache(KEPT)
def busiest_bank_rows(shape: Shape, axes: Shape, cores: int, banks: int) -> float:
    """Rows that the busiest bank takes from all cores while each writes a block of the last axis, in the mean of steps.

    Args:
        shape: The tensor, row-major.
        axes: The axis of the source that each axis of the result is; the last is not the source's last.
        cores: The cores, each with as many blocks as the others or one more, in order.
        banks: The banks of DRAM, to which the rows of the result go in turn.
    """
    rank, after = len(shape), [shape[axis] for axis in axes]
    rows_apart = {axis: prod(after[place + 1 : -1]) for place, axis in enumerate(axes[:-1])}
    others = [axis for axis in range(rank - 1) if axis != axes[-1]]
    wide, high = div_up(shape[-1], TILE), div_up(shape[axes[-1]], TILE)
    count = prod(shape[axis] for axis in others) * high * wide
    each, more = divmod(count, cores)
    number = np.arange(cores)
    step, core = np.meshgrid(np.arange(min(each + (more > 0), SAMPLED)), number, indexing="ij")
    busy = step < each + (core < more)
    block = (core * each + np.minimum(core, more) + step)[busy]
    rest, column = np.divmod(block, wide)
    row = column * TILE * rows_apart[rank - 1]
    places = np.unravel_index(rest // high, [shape[axis] for axis in others]) if others else ()
    for axis, place in zip(others, places, strict=True):
        row = row + place * rows_apart[axis]
    width, apart = np.minimum(TILE, shape[-1] - column * TILE), rows_apart[rank - 1]
    ring = banks // gcd(banks, apart)  # banks among which the rows of a block take turns
    loads = np.zeros(len(step) * banks)
    for turn in range(min(ring, TILE)):
        rows = np.maximum(0, (width - turn + ring - 1) // ring)
        loads += np.bincount(step[busy] * banks + (row + turn * apart) % banks, rows, len(loads))
    return float(loads.reshape(-1, banks).max(axis=1).mean())
