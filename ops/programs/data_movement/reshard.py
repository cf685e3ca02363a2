"""Which parts of rows Reshard moves between shards of different widths, and where it loses or misplaces them.

Source: tt-metal 0.81.1, reshard's get_core_page_ranges_diff_width. The program cuts rows into the largest units that
fill the rows of both shards, and counts those of the shards' padding out. It finds the padding only in the last column
of cores of the *grid*, so that in a wider grid, or one that does not begin at the first core, units are counted on.
"""

from enum import Enum, auto
from math import gcd, prod

import numpy as np

from device.cores import CoreCoord
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, ShardOrientation, TensorMemoryLayout
from device.numbers.formats import Integers, div_up
from device.plan import Operation, Plan
from ops.programs.buffer_shapes import row_bytes
from ops.programs.data_movement.copy import Conversion

WORD = 1 << 32  # the library counts units without a sign, in 32 bits
CORES = 1 << 12  # more than there are in a row or column of cores


class Uneven(Enum):
    """The fate of uneven units."""

    MOVED = auto()
    MISPLACED = auto()
    LOST = auto()  # a core of the result gets none, which the library does not expect


def uneven(source: TensorSpec, target: TensorSpec) -> Uneven:
    """How Reshard treats uneven rows in shards of another width; other rows are moved."""
    pages = [row_bytes(tensor, tensor.shards.shape[1]) for tensor in (source, target)]
    same_scheme = source.memory_config.memory_layout is target.memory_config.memory_layout
    by_block = source.memory_config.memory_layout is TensorMemoryLayout.BLOCK_SHARDED
    if source.layout is Layout.TILE or pages[0] == pages[1] or (same_scheme and not by_block):
        return Uneven.MOVED
    unit_bytes, lines = gcd(*pages), prod(source.shape[:-1])
    units = div_up(row_bytes(source, source.shape[-1]), unit_bytes)
    if all(units * unit_bytes == row_bytes(tensor) for tensor in (source, target)):
        return Uneven.MOVED
    counted, wanted = (_counted(tensor, lines, units, unit_bytes) for tensor in (source, target))
    if set(_cores(target).ravel().tolist()) - set((wanted // WORD).tolist()):
        return Uneven.LOST
    moved = dict(zip(wanted.tolist(), counted.tolist(), strict=True))
    right = (_unit_places(tensor, lines, units, unit_bytes).tolist() for tensor in (target, source))
    return Uneven.MOVED if all(moved.get(at) == unit for at, unit in zip(*right, strict=True)) else Uneven.MISPLACED


def misplaced_rows(plan: Plan) -> str | None:
    """What a Reshard of a plan misplaces in the real library; None if it misplaces nothing, or refuses the call."""
    for step in plan.steps:
        if not isinstance(step, Operation) or step.name != f"{Conversion.RESHARD.value}DeviceOperation":
            continue
        if step.refused is not None:
            return None
        source = plan.tensors[step.inputs[0]]
        result = plan.tensors[step.outputs[0].tensor if step.outputs else step.inputs[-1]]
        if uneven(source, result) is not Uneven.MOVED:
            return (
                f"rows of {source.shape[-1]} do not fill their shards, whose grid has more columns of cores than they "
                "take or does not begin at the first core: the real library misplaces parts of them; give a grid of "
                "just these cores, or go by way of interleaved memory"
            )
    return None


def _cores(tensor: TensorSpec) -> Integers:
    """The core of each shard, down and across, as a number."""
    (rows, columns), (high, wide) = tensor.matrix, tensor.shards.shape
    shards, scheme = tensor.shards, tensor.memory_config.memory_layout
    by_rows = shards.orientation is ShardOrientation.ROW_MAJOR
    down, across = div_up(rows, high), div_up(columns, wide)
    if scheme is TensorMemoryLayout.BLOCK_SHARDED:
        start = shards.grid.bounding_box().start
        places = ((j, i) if by_rows else (i, j) for i, j in np.ndindex(down, across))
        cores = [CoreCoord(start.x + x, start.y + y) for x, y in places]
    else:
        cores = list(shards.grid.cores(by_rows)[: down * across])
    return np.array([core.x * CORES + core.y for core in cores], np.int64).reshape(down, across)


def _unit_places(tensor: TensorSpec, lines: int, units: int, unit_bytes: int) -> Integers:
    """The place of every unit, row by row, as one number: its core and its place among the core's units."""
    high, wide = tensor.shards.shape
    per_page = row_bytes(tensor, wide) // unit_bytes
    row, unit = np.indices((lines, units))
    core = _cores(tensor)[row // high, unit // per_page]
    return (core * WORD + row % high * per_page + unit % per_page).ravel()


def _counted(tensor: TensorSpec, lines: int, units: int, unit_bytes: int) -> Integers:
    """The place at which the library expects every unit; units that it does not count lie first on the first core.

    It counts units of padding out by the first page in the last cores of the grid that has some.
    """
    (high, wide), first = tensor.shards.shape, tensor.shards.grid.ranges[0]
    per_page, cores = row_bytes(tensor, wide) // unit_bytes, _cores(tensor)
    per_row = per_page * cores.shape[1]
    begins, places = [], []
    for (down, across), core in np.ndenumerate(cores):
        row = np.arange(down * high, min((down + 1) * high, lines))
        begins.append(row * per_row + across * per_page)
        places.append(core * WORD + (row - down * high) * per_page)
    begin, place = np.concatenate(begins), np.concatenate(places)
    line = begin // per_row
    end, (x, y) = (line + 1) * units, np.divmod(place // WORD, CORES)
    by_rows = tensor.shards.orientation is ShardOrientation.ROW_MAJOR
    last = x == first.end.x - first.start.x if by_rows else y == first.end.y - first.start.y
    left = (end - begin)[last] % WORD
    padding = next((int(per_page - count) for count in left if count < per_page), 0)
    begin = begin - line * padding
    valid = np.minimum((end - begin) % WORD, per_page)
    unit = np.arange(per_page)
    index = begin[:, None] + unit
    counts = (unit < valid[:, None]) & (index >= 0) & (index < lines * units)
    taken = np.zeros(lines * units, np.int64)
    taken[index[counts]] = (place[:, None] + unit)[counts]  # of pages that meet, the last
    return taken
