"""The cores that share pages between them."""

from device.cores import CoreRangeSet, first_cores
from device.spec.device_spec import DeviceSpec


def page_cores(pages: int, spec: DeviceSpec, *, row_wise: bool = False) -> CoreRangeSet:
    """As many cores as there are pages, if the device has them: column by column, or row by row."""
    return first_cores(min(pages, spec.grid.cores), spec.grid.cols, spec.grid.rows, row_wise=row_wise).merged()
