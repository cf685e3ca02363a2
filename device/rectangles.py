"""Areas as rectangles: what two of them share, or one has that the other does not, in few rectangles again.

Whatever the sizes, only the edges count: between two neighboring ones all columns, or rows, are alike.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias

Rectangle: TypeAlias = tuple[int, int, int, int]  # first column, first row, last column, last row
Cells: TypeAlias = set[tuple[int, int]]  # (row, column), counted from edge to edge


def combined(
    one: Sequence[Rectangle], other: Sequence[Rectangle], operation: Callable[[Cells, Cells], Cells]
) -> list[Rectangle]:
    """What a set operation makes of two areas, row by row: runs within a row, equal runs of neighboring rows together.

    Args:
        one: An area.
        other: Another one.
        operation: Such as ``set.intersection``.
    """
    columns = sorted({edge for left, _, right, _ in (*one, *other) for edge in (left, right + 1)})
    rows = sorted({edge for _, top, _, bottom in (*one, *other) for edge in (top, bottom + 1)})
    cells = operation(_cells(one, columns, rows), _cells(other, columns, rows))
    open_runs: dict[tuple[int, int], int] = {}  # (first column, last column) -> first row
    found: list[Rectangle] = []
    for row in range(len(rows)):  # behind the last edge is nothing
        runs = _runs([column for column in range(len(columns)) if (row, column) in cells])
        for first, last in [run for run in open_runs if run not in runs]:
            top = open_runs.pop((first, last))
            found.append((columns[first], rows[top], columns[last + 1] - 1, rows[row] - 1))
        for run in runs:
            open_runs.setdefault(run, row)
    return sorted(found, key=lambda rectangle: (rectangle[1], rectangle[0]))


def _cells(area: Sequence[Rectangle], columns: Sequence[int], rows: Sequence[int]) -> Cells:
    """The cells of an area between these edges."""
    return {
        (row, column)
        for left, top, right, bottom in area
        for row in range(rows.index(top), rows.index(bottom + 1))
        for column in range(columns.index(left), columns.index(right + 1))
    }


def _runs(columns: Sequence[int]) -> list[tuple[int, int]]:
    """Consecutive columns as (first, last)."""
    if not columns:
        return []
    breaks = [(left, right) for left, right in pairwise(columns) if right != left + 1]
    return list(
        zip([columns[0], *(right for _, right in breaks)], [*(left for left, _ in breaks), columns[-1]], strict=True)
    )
