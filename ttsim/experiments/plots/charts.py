"""What a chart shows, as plain data; `drawing` makes pictures of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """A value for each combination of two settings; less is better, and is drawn paler.

    Attributes:
        title: What it shows.
        x_name: What changes from left to right.
        y_name: What changes from top to bottom.
        columns: Names of the columns.
        rows: Names of the rows.
        cells: A value for each column, row by row; None where there is none.
        unit: Of the values.
    """

    title: str
    x_name: str
    y_name: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Values of several series, side by side in groups.

    Attributes:
        title: What it shows.
        value_name: What the bars measure, with its unit.
        groups: Names of the groups.
        series: Name and values of each series, one for each group; None where there is none.
    """

    title: str
    value_name: str
    groups: tuple[str, ...]
    series: tuple[tuple[str, tuple[float | None, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A candidate.

    Attributes:
        x: To the right.
        y: Upward.
        name: What it is.
        series: Of which it is one; series have colors.
    """

    x: float
    y: float
    name: str
    series: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Candidates by two costs, of each series the Pareto front joined by a line.

    Attributes:
        title: What it shows.
        x_name: The first cost, with its unit.
        y_name: The second, likewise.
        dots: The candidates, in any order.
    """

    title: str
    x_name: str
    y_name: str
    dots: tuple[Dot, ...]


Chart = HeatMap | Bars | Scatter
