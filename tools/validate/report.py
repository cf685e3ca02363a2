"""Tables of predictions and their errors."""

import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from tools.validate.prediction import Prediction
from tools.validate.rows import Skipped
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
    grouped = defaultdict[Group, list[float]](list)
    for prediction in predictions:
        grouped[prediction.configuration].append(prediction.error)
    return sum_up_errors(list(map(statistics.median, grouped.values())), rows=len(predictions))


def sum_up_errors(errors: Sequence[float], *, rows: int) -> Errors:
    """Sums up one error for each configuration."""
    sizes = list(map(abs, errors))
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
    groups = defaultdict[Group, list[Prediction]](list)
    for prediction in predictions:
        groups[name(prediction)].append(prediction)
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
    cells = []
    for group, errors in rows:
        shares = (errors.mean, errors.median, errors.bias, errors.worst)
        shown = (f"{100 * share:{sign}.1f}" for share, sign in zip(shares, ("", "", "+", ""), strict=True))
        cells.append((", ".join(group), str(errors.rows), str(errors.configurations), *shown))
    return table(title, ["group"], ["rows", "configurations", "mean %", "median %", "bias %", "worst %"], cells)


def worst_table(predictions: Sequence[Prediction], count: int) -> Table:
    """The configurations with the largest errors."""
    shown: dict[Group, Prediction] = {}
    for prediction in sorted(predictions, key=lambda row: -abs(row.error)):
        shown.setdefault(prediction.configuration, prediction)
    cells = []
    for row in list(shown.values())[:count]:
        figures = (f"{row.measured_ns / 1000:.1f}", f"{row.predicted_ns / 1000:.1f}", f"{100 * row.error:+.1f}")
        cells.append((", ".join(row.group), " ".join(row.configuration), row.remark, *figures))
    numbers = ["measured us", "predicted us", "error %"]
    return table("worst configurations", ["group", "configuration", "remark"], numbers, cells)


def skipped_table(skipped: Iterable[Skipped]) -> Table:
    """Rows without a prediction, by reason."""
    reasons = Counter(reason for _, reason in skipped).most_common()
    return table("not predicted", ["reason"], ["rows"], [(reason, str(count)) for reason, count in reasons])
