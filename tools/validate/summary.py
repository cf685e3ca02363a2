"""Errors of many predictions in a few numbers: mean, median, bias, worst."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tools.validate.prediction import Prediction


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
