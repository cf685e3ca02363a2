"""What the element-wise operations compute, as frozen values; `meaning` says what they mean."""

from dataclasses import dataclass

from device.numbers.formats import DataFormat
from device.plan import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRow(Work):
    """A row is added to every row of a matrix.

    Attributes:
        data_format: Format of the matrix and of the sum.
        row_format: Format of the row.
    """

    data_format: DataFormat
    row_format: DataFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Activate(Work):
    """A function of every element.

    Attributes:
        name: ttnn's name in lower case.
        parameters: Its parameters.
        data_format: Format of the tensor and of the result.
    """

    name: str
    parameters: tuple[float, ...]
    data_format: DataFormat
