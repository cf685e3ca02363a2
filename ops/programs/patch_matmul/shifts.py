"""Inputs and outputs of an axis in cells, so that a tap is a shift: an output's cell meets the cell some places on.

A cell is as many neighboring positions as it takes until the same taps meet inputs again; of one side, or of both, that
is a single position. Every tap leads from one residue, the place in a cell of inputs, to one of outputs.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from device.numbers.block_floats import div_up
from ops.window import PaddedAxis

MOST_KEPT = 64  # axes that are kept


class Cells(NamedTuple):
    """Positions in cells."""

    low: int  # The first position of cell 0, at most 0 or what is met first
    size: int  # Positions of a cell
    length: int  # Positions that there are, from 0 on; all others are zeros


class Run(NamedTuple):
    """Positions of an array that lie evenly among cells of one residue."""

    residue: int
    cell: int  # The cell of the first, counted from the first of those that were asked for
    position: int
    positions: int  # How many there are


class Shift(NamedTuple):
    """What a tap does."""

    tap: int
    source: int  # Residue of the inputs that it meets
    target: int  # Residue of the outputs under which it meets them
    cells: int  # How many cells farther on the inputs lie


@dataclass(frozen=True, slots=True)
class AxisShifts:
    """One axis."""

    sources: Cells
    targets: Cells
    cells: int  # Cells that hold all outputs
    reach: int  # The farthest shift
    taps: tuple[Shift, ...]  # What each tap does; none that meets no input at all


@lru_cache(MOST_KEPT)
def axis_shifts(axis: PaddedAxis) -> AxisShifts | None:
    """An axis whose outputs are all that there are; None if no tap meets an input.

    Where the cells of outputs begin is chosen so that shifts are short.
    """
    size = axis.input_dilation // gcd(axis.input_dilation, axis.stride)
    tries = [_beginning_at(axis, size, -before) for before in range(size)]
    return min((one for one in tries if one is not None), key=lambda one: one.reach, default=None)


def _beginning_at(axis: PaddedAxis, size: int, low: int) -> AxisShifts | None:
    """The axis with cells of so many outputs, the first of which begins at ``low``."""
    step = size * axis.stride // axis.input_dilation
    met = []
    for tap in range(axis.kernel):
        for target in range(size):
            place, between = divmod(
                (low + target) * axis.stride + axis.start + tap * axis.dilation, axis.input_dilation
            )
            if not between:
                met.append((tap, target, place))
    if not met:
        return None
    first = min(place for _, _, place in met)
    shifts = tuple(Shift(tap, (place - first) % step, target, (place - first) // step) for tap, target, place in met)
    return AxisShifts(
        sources=Cells(first, step, axis.input_length),
        targets=Cells(low, size, axis.outputs),
        cells=div_up(axis.outputs - low, size),
        reach=max(one.cells for one in shifts),
        taps=shifts,
    )


def runs_of(cells: Cells, first: int, count: int) -> list[Run]:
    """Where positions lie among ``count`` cells from ``first`` on; residues that have none are left out."""
    found = []
    for residue in range(cells.size):
        begin = max(first, div_up(-cells.low - residue, cells.size))
        end = min(first + count, div_up(cells.length - cells.low - residue, cells.size))
        if begin < end:
            found.append(Run(residue, begin - first, cells.low + begin * cells.size + residue, end - begin))
    return found


def positions_of(cells: Cells, first: int, count: int) -> list[Run]:
    """The same as one run, of cells of one position each: residues lie side by side."""
    low = cells.low + first * cells.size
    return runs_of(Cells(low, 1, cells.length), 0, count * cells.size)
