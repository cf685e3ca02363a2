"""Tables of predictions and their errors."""

import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from tools.validate.prediction import NotPredicted, Prediction
from ttsim.report.formatting import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Relative errors of some configurations, as fractions."""

    rows: int  # Rows they come from
    configurations: int  # How many there are
    mean: float  # Mean absolute error
    median: float  # Median absolute error
    bias: float  # Mean error
    worst: float  # The largest absolute error


def errors_by_configuration(predictions: Iterable[Prediction]) -> dict[tuple[str, ...], list[float]]:
    """Errors of the rows of every configuration."""
    errors: dict[tuple[str, ...], list[float]] = {}
    for one in predictions:
        errors.setdefault(one.configuration, []).append(one.error)
    return errors


def sum_up(predictions: Sequence[Prediction]) -> Errors:
    """Sum up; rows of one configuration count as one, with their median error."""
    grouped = errors_by_configuration(predictions)
    return sum_up_errors([statistics.median(errors) for errors in grouped.values()], rows=len(predictions))


def sum_up_errors(errors: Sequence[float], *, rows: int) -> Errors:
    """Sum up one error for each configuration."""
    sizes = [abs(error) for error in errors]
    return Errors(
        rows=rows,
        configurations=len(errors),
        mean=statistics.fmean(sizes),
        median=statistics.median(sizes),
        bias=statistics.fmean(errors),
        worst=max(sizes),
    )


WIDTH_OF_A_PIPE = 140


def console() -> Console:
    """Where tables go; in a pipe they are not cut to 80 columns."""
    return Console(markup=False) if sys.stdout.isatty() else Console(width=WIDTH_OF_A_PIPE, markup=False)


def error_table(title: str, rows: Iterable[tuple[tuple[str, ...], Errors]]) -> Table:
    """A table of errors by group, in percent."""
    table = Table(title=title)
    table.add_column("group")
    for heading in ("rows", "configurations", "mean %", "median %", "bias %", "worst %"):
        table.add_column(heading, justify="right")
    for group, errors in rows:
        figures = (f"{100 * errors.mean:.1f}", f"{100 * errors.median:.1f}", f"{100 * errors.bias:+.1f}")
        table.add_row(
            printable(", ".join(group)),
            str(errors.rows),
            str(errors.configurations),
            *figures,
            f"{100 * errors.worst:.1f}",
        )
    return table


def architecture_errors(predictions: Sequence[Prediction]) -> list[tuple[tuple[str, ...], Errors]]:
    """Errors of the measurements of each architecture."""
    counted = [one for one in predictions if one.counted]
    architectures = sorted({one.architecture for one in counted})
    return [((name,), sum_up([one for one in counted if one.architecture == name])) for name in architectures]


def group_errors(predictions: Sequence[Prediction]) -> list[tuple[tuple[str, ...], Errors]]:
    """Errors of all, of each architecture and of each group; rows that are no measurements come last, by themselves."""
    counted = [one for one in predictions if one.counted]
    whole = [(("all",), sum_up(counted))] if counted else []
    by_architecture = [((f"all of {name}",), errors) for (name,), errors in architecture_errors(predictions)]
    groups = sorted({one.group for one in predictions})
    by_group = [(group, sum_up([one for one in predictions if one.group == group])) for group in groups]
    return [*whole, *by_architecture, *by_group]


def worst_table(predictions: Sequence[Prediction], count: int) -> Table:
    """The configurations with the largest errors."""
    table = Table(title="worst configurations")
    for heading in ("group", "configuration", "remark"):
        table.add_column(heading)
    for heading in ("measured us", "predicted us", "error %"):
        table.add_column(heading, justify="right")
    ordered = sorted(predictions, key=lambda one: -abs(one.error))
    shown = {one.configuration: one for one in reversed(ordered)}
    for one in sorted(shown.values(), key=lambda one: -abs(one.error))[:count]:
        figures = (f"{one.measured_ns / 1000:.1f}", f"{one.predicted_ns / 1000:.1f}", f"{100 * one.error:+.1f}")
        table.add_row(printable(", ".join(one.group)), printable(" ".join(one.configuration)), one.remark, *figures)
    return table


def skipped_table(skipped: Sequence[NotPredicted]) -> Table:
    """Rows without a prediction, by reason."""
    table = Table(title="not predicted")
    table.add_column("reason")
    table.add_column("rows", justify="right")
    for reason, count in Counter(one.reason for one in skipped).most_common():
        table.add_row(printable(reason), str(count))
    return table
