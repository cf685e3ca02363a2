"""What a chart shows, as plain data; `drawing` makes pictures of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """A value for each combination of two settings; less is better, and is drawn paler."""

    title: str  # What it shows
    x_name: str  # What changes from left to right
    y_name: str  # What changes from top to bottom
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    cells: tuple[tuple[float | None, ...], ...]  # A value for each column, row by row; None where there is none
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Values of several series, side by side in groups."""

    title: str  # What it shows
    value_name: str  # What the bars measure, with its unit
    groups: tuple[str, ...]
    # Name and values of each series, one for each group; None where there is none
    series: tuple[tuple[str, tuple[float | None, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A candidate."""

    x: float
    y: float
    name: str
    series: str = ""  # Of which it is one; series have colors


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Candidates by two costs, of each series the Pareto front joined by a line."""

    title: str  # What it shows
    x_name: str  # The first cost, with its unit
    y_name: str  # The second, likewise
    dots: tuple[Dot, ...]  # The candidates, in any order


Chart = HeatMap | Bars | Scatter
