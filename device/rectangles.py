"""Areas as rectangles: what two of them share, or one has that the other does not, in few rectangles again.

Whatever the sizes, only the edges count: between two neighboring ones all columns, or rows, are alike.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

Rectangle: TypeAlias = tuple[int, int, int, int]  # first column, first row, last column, last row
Columns: TypeAlias = int  # a bit for each stretch between neighboring edges, the leftmost first


def without(one: Columns, other: Columns) -> Columns:
    """What one has and the other has not."""
    return one & ~other


def combined(
    one: Sequence[Rectangle], other: Sequence[Rectangle], operation: Callable[[Columns, Columns], Columns]
) -> list[Rectangle]:
    """What an operation makes of two areas, row by row: runs within a row, equal runs of neighboring rows together.

    Args:
        other: Another one.
        operation: ``operator.or_`` or ``and_``, or `without`.
    """
    columns = sorted({edge for left, _, right, _ in (*one, *other) for edge in (left, right + 1)})
    rows = sorted({edge for _, top, _, bottom in (*one, *other) for edge in (top, bottom + 1)})
    open_runs: dict[tuple[int, int], int] = {}  # (first column, behind the last one) -> first row
    found: list[Rectangle] = []
    for row, *covered in zip(rows, _rows(one, columns, rows), _rows(other, columns, rows), strict=True):
        runs = _runs(operation(*covered), columns)
        for first, end in [run for run in open_runs if run not in runs]:
            found.append((first, open_runs.pop((first, end)), end - 1, row - 1))
        for run in runs:
            open_runs.setdefault(run, row)
    return sorted(found, key=lambda rectangle: (rectangle[1], rectangle[0]))


def _rows(area: Sequence[Rectangle], columns: Sequence[int], rows: Sequence[int]) -> list[Columns]:
    """What an area covers of each row between two edges, and of what is behind the last: nothing."""
    covered = [0] * len(rows)
    for left, top, right, bottom in area:
        wide = (1 << columns.index(right + 1)) - (1 << columns.index(left))
        for row in range(rows.index(top), rows.index(bottom + 1)):
            covered[row] |= wide
    return covered


def _runs(covered: Columns, columns: Sequence[int]) -> list[tuple[int, int]]:
    """Consecutive columns as (first, behind the last)."""
    found = []
    while covered:
        lowest = covered & -covered
        above = covered + lowest  # the lowest run is gone, and carried to the bit behind it
        found.append((columns[lowest.bit_length() - 1], columns[(above & ~covered).bit_length() - 1]))
        covered &= above
    return found
