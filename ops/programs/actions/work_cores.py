"""The cores that share pages between them."""

from device.cores import CoreRangeSet, first_cores
from device.numbers.integers import div_up
from device.spec.parts import GridSpec


def dealt_evenly(items: int, cores: int) -> tuple[int, int]:
    """How many of some cores have items, and how many items each of them has; the last may have fewer."""
    core_items = div_up(items, cores)
    return div_up(items, core_items), core_items


def page_cores(pages: int, grid: GridSpec, *, row_wise: bool = False) -> CoreRangeSet:
    """As many cores as there are pages, if the grid has them: column by column, or row by row."""
    return first_cores(min(pages, grid.cores), grid.cols, grid.rows, row_wise=row_wise).merged()
