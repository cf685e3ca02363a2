"""What the element-wise operations compute, as frozen values; `values` gives them their meaning."""

from dataclasses import dataclass

from device.numbers.formats import DataFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRow:
    """A row is added to every row of a matrix.

    Attributes:
        data_format: Format of the matrix and of the sum.
        row_format: Format of the row.
    """

    data_format: DataFormat
    row_format: DataFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Activate:
    """A function of every element.

    Attributes:
        name: ttnn's name in lower case.
        parameters: Its parameters.
        data_format: Format of the tensor and of the result.
    """

    name: str
    parameters: tuple[float, ...]
    data_format: DataFormat
