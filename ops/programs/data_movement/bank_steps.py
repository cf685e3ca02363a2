"""The load of the busiest DRAM bank if all cores write parts of rows in step.

If a permutation moves rows to or from the last axis, a core writes a part of each row of a block in turn. These rows
are a fixed number of pages apart, so a block may use a few banks or only one, and cores that started together are at
the same position of their blocks. Source of the order: tt-metal 0.81.1 (data_movement/permute, the writers of rows and
of tiles).
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
def busiest_bank_rows(shape: Shape, axes: Shape, cores: int, banks: int, *, tiled: bool) -> float:
    """Mean number of rows that the busiest bank receives from all cores while each writes a block of the last axis.

    Args:
        shape: The source.
        axes: The axis of the source for each axis of the result; the last is not the source's last axis.
        cores: The number of cores; block counts of cores differ by at most one, in order.
        banks: The number of DRAM banks; the pages of the result are interleaved over them.
        tiled: Whether pages are tiles; otherwise rows.
    """
    last, moved, high = len(shape) - 1, axes[-1], TILE if tiled else 1  # a page has `high` rows
    after = [shape[axis] for axis in axes]
    images = [*after[:-2], div_up(after[-2], high), div_up(after[-1], TILE) if tiled else 1]  # in pages
    # Along an axis that the result lacks, because it has another one twice, nothing moves
    apart = dict.fromkeys(range(len(shape)), 0) | {axis: prod(images[place + 1 :]) for place, axis in enumerate(axes)}
    in_page = dict.fromkeys(range(len(shape)), 1) | dict.fromkeys(axes[last - 1 : last], high)

    wide, parts = div_up(shape[last], TILE), div_up(shape[moved], TILE)
    others = [axis for axis in range(last) if axis != moved]
    each, more = divmod(prod(shape[axis] for axis in others) * parts * wide, cores)
    step, core = np.indices((min(each + (more > 0), SAMPLED), cores)).reshape(2, -1)
    busy = step < each + (core < more)
    step, core = step[busy], core[busy]
    rest, column = np.divmod(core * each + np.minimum(core, more) + step, wide)
    rest, part = np.divmod(rest, parts)
    page = column * TILE // in_page[last] * apart[last] + part * tiled
    places = np.unravel_index(rest, [shape[axis] for axis in others]) if others else ()
    for axis, place in zip(others, places, strict=True):
        page = page + place // in_page[axis] * apart[axis]

    width, stride = np.minimum(TILE, shape[last] - column * TILE), apart[last] if in_page[last] == 1 else 0
    ring = banks // gcd(banks, stride)  # banks among which the rows of a block take turns
    loads = np.zeros((int(step.max()) + 1) * banks)
    for turn in range(min(ring, TILE)):
        rows = np.maximum(0, (width - turn + ring - 1) // ring)
        loads += np.bincount(step * banks + (page + turn * stride) % banks, rows, len(loads))
    return float(loads.reshape(-1, banks).max(axis=1).mean())
