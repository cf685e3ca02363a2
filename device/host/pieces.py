"""How deep products are, and into how many pieces work is cut."""

from collections.abc import Iterator
from typing import Final

DEPTH: Final = 448  # what OpenBLAS's kernels for AVX-512 add up in one go, of small matrices and of large ones
_MULTIPLE: Final = 16


def depth_of_part(depth: int) -> int:
    """How many of so many products are added up in one go, as OpenBLAS with AVX-512 does where matrices are large."""
    if depth >= 2 * DEPTH:
        return DEPTH
    return depth if depth <= DEPTH else (depth // 2 + _MULTIPLE - 1) // _MULTIPLE * _MULTIPLE


PART_ELEMENTS: Final = 1 << 16  # a quarter of a MiB in float32


def parts_of(rows: int, columns: int, elements: int = PART_ELEMENTS) -> Iterator[slice]:
    """Slices of rows of ``columns`` elements, each of about ``elements`` elements and at least one row."""
    step = max(1, elements // max(1, columns))
    return (slice(first, min(first + step, rows)) for first in range(0, rows, step))
