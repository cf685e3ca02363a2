"""Tables of predictions and their errors."""

import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from tools.validate.prediction import NotPredicted, Prediction
from ttsim.report.formatting import printable

WIDTH_OF_A_PIPE = 140
Group = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Relative errors of some configurations, as fractions."""

    rows: int  # Rows they come from
    configurations: int  # How many there are
    mean: float  # Mean absolute error
    median: float  # Median absolute error
    bias: float  # Mean error
    worst: float  # The largest absolute error


def sum_up(predictions: Sequence[Prediction]) -> Errors:
    """Sums up; rows of one configuration count as one, with their median error."""
    grouped: dict[Group, list[float]] = {}
    for prediction in predictions:
        grouped.setdefault(prediction.configuration, []).append(prediction.error)
    return sum_up_errors([statistics.median(errors) for errors in grouped.values()], rows=len(predictions))


def sum_up_errors(errors: Sequence[float], *, rows: int) -> Errors:
    """Sums up one error for each configuration."""
    sizes = [abs(error) for error in errors]
    return Errors(
        rows=rows,
        configurations=len(errors),
        mean=statistics.fmean(sizes),
        median=statistics.median(sizes),
        bias=statistics.fmean(errors),
        worst=max(sizes),
    )


def by_group(predictions: Sequence[Prediction], name: Callable[[Prediction], Group]) -> list[tuple[Group, Errors]]:
    """The errors of each group of predictions, in the order of their names."""
    groups: dict[Group, list[Prediction]] = {}
    for prediction in predictions:
        groups.setdefault(name(prediction), []).append(prediction)
    return [(group, sum_up(groups[group])) for group in sorted(groups)]


def architecture_errors(predictions: Sequence[Prediction]) -> list[tuple[Group, Errors]]:
    """Errors of the measurements of each architecture."""
    return by_group([row for row in predictions if row.counted], lambda row: (row.architecture,))


def group_errors(predictions: Sequence[Prediction]) -> list[tuple[Group, Errors]]:
    """Errors of all, of each architecture and of each group; rows that are no measurements come last, by themselves."""
    counted = [row for row in predictions if row.counted]
    whole = [(("all",), sum_up(counted))] if counted else []
    architectures = [((f"all of {name}",), errors) for (name,), errors in architecture_errors(predictions)]
    return [*whole, *architectures, *by_group(predictions, lambda row: row.group)]


def console() -> Console:
    """Where tables go; in a pipe they are not cut to 80 columns."""
    return Console(markup=False) if sys.stdout.isatty() else Console(width=WIDTH_OF_A_PIPE, markup=False)


def table(title: str, texts: Iterable[str], numbers: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table whose first columns are texts and whose others are numbers, to the right."""
    result = Table(title=title)
    for heading in texts:
        result.add_column(heading)
    for heading in numbers:
        result.add_column(heading, justify="right")
    for row in rows:
        result.add_row(*map(printable, row))
    return result


def error_table(title: str, rows: Iterable[tuple[Group, Errors]]) -> Table:
    """A table of errors by group, in percent."""
    cells = [
        (
            ", ".join(group),
            str(errors.rows),
            str(errors.configurations),
            f"{100 * errors.mean:.1f}",
            f"{100 * errors.median:.1f}",
            f"{100 * errors.bias:+.1f}",
            f"{100 * errors.worst:.1f}",
        )
        for group, errors in rows
    ]
    return table(title, ["group"], ["rows", "configurations", "mean %", "median %", "bias %", "worst %"], cells)


def worst_table(predictions: Sequence[Prediction], count: int) -> Table:
    """The configurations with the largest errors."""
    ordered = sorted(predictions, key=lambda row: -abs(row.error))
    shown = {row.configuration: row for row in reversed(ordered)}
    cells = [
        (
            ", ".join(row.group),
            " ".join(row.configuration),
            row.remark,
            f"{row.measured_ns / 1000:.1f}",
            f"{row.predicted_ns / 1000:.1f}",
            f"{100 * row.error:+.1f}",
        )
        for row in sorted(shown.values(), key=lambda row: -abs(row.error))[:count]
    ]
    numbers = ["measured us", "predicted us", "error %"]
    return table("worst configurations", ["group", "configuration", "remark"], numbers, cells)


def skipped_table(skipped: Sequence[NotPredicted]) -> Table:
    """Rows without a prediction, by reason."""
    reasons = Counter(row.reason for row in skipped).most_common()
    return table("not predicted", ["reason"], ["rows"], [(reason, str(count)) for reason, count in reasons])
