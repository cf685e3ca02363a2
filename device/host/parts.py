"""Rows some at a time, so that what is between a large array and its result stays in the cache."""

from collections.abc import Iterator
from typing import Final

PART_ELEMENTS: Final = 1 << 16  # a quarter of a MiB in float32


def parts_of(rows: int, columns: int, elements: int = PART_ELEMENTS) -> Iterator[slice]:
    """All rows in order, in slices of as many as have so many elements, one at least.

    Args:
        rows: How many there are.
        columns: Elements of a row.
    """
    step = max(1, elements // max(1, columns))
    return (slice(first, min(first + step, rows)) for first in range(0, rows, step))
