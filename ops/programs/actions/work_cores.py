"""The cores that share pages between them."""

from device.cores import CoreRangeSet, first_cores
from device.spec.parts import GridSpec


def page_cores(pages: int, grid: GridSpec, *, row_wise: bool = False) -> CoreRangeSet:
    """As many cores as there are pages, if the grid has them: column by column, or row by row."""
    return first_cores(min(pages, grid.cores), grid.cols, grid.rows, row_wise=row_wise).merged()
