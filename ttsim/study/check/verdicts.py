"""Compares measured figures with their budgets: a verdict for each figure, and the changed operations."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from device.errors import ArgumentError, shown
from device.time.stages import nanoseconds
from ttsim.report.comparison import Pair, Reported, ReportedOperation, compare
from ttsim.report.formatting import counted, joined
from ttsim.study.check.budgets import FIGURES, OF_TIME, OPERATIONS, Budget, BudgetFile, Names, Number
from ttsim.study.check.measure import Measurement

MOST_CHANGES: Final = 4  # device operations that words name
PLACES: Final = 3  # decimals of a figure that is no integer


class Verdict(StrEnum):
    """The result of comparing a figure with its budget; the values appear in files and tables."""

    HOLDS = "holds"
    ABOVE = "above"
    BELOW = "below"  # A gain, which asks for a new budget
    DIFFERS = "differs"  # Other device operations
    DOES_NOT_RUN = "does not run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A figure of an entry."""

    budget: Budget
    report: Reported | None  # None if the entry does not run
    figure: str
    limit: Number | Names
    measured: Number | Names | None
    verdict: Verdict
    changes: tuple[str, ...] = ()  # Device operations that changed, the most changed first
    error: str = ""  # Why the entry does not run

    @property
    def share(self) -> float | None:
        """The excess of the measured figure over its budget, as a share of the budget; None if undefined."""
        if self.figure == OPERATIONS or self.measured is None or not self.limit:
            return None
        assert not isinstance(self.limit, tuple)
        assert not isinstance(self.measured, tuple)
        return float(self.measured / self.limit - 1)

    @property
    def text(self) -> str:
        """The finding in a sentence, without its file."""
        limit = described(self.limit)
        if self.verdict is Verdict.DOES_NOT_RUN:
            return f"{self.figure} has the budget {limit}, and the entry does not run: {self.error}"
        changed = f": {joined(self.changes)}" if self.changes else ""
        if self.verdict is Verdict.DIFFERS:
            return f"{counted(_count(self.measured), 'device operation')}, and the budget is {limit}{changed}"
        measured = f"{self.figure} is {described(self.measured)}"
        if self.verdict is Verdict.HOLDS:
            return f"{measured}, and the budget is {limit}"
        if not self.limit:
            return f"{measured}, and the budget is 0: ttsim check --update writes the first one"
        away = f"{self.verdict} the budget of {limit}"
        off = "" if self.share is None else f"{100 * abs(self.share):.2f} % "
        gain = "; this is a gain: ttsim check --update writes the new budget" if self.verdict is Verdict.BELOW else ""
        return f"{measured}, {off}{away} (band {band_text(self.budget)}){changed}{gain}"


def described(figure: Number | Names | None) -> str:
    """A figure as text, with thousands separators; for names, their number."""
    if isinstance(figure, tuple) or figure is None:
        return f"{_count(figure):,}"
    return f"{figure:,}" if isinstance(figure, int) else f"{float(figure):,.{PLACES}f}".rstrip("0").rstrip(".")


def plain_figure(figure: Number | tuple[object, ...] | None) -> Any:
    """A figure as a JSON or TOML value."""
    if isinstance(figure, tuple | None):
        return None if figure is None else list(figure)
    return int(figure) if figure.denominator == 1 else float(figure)


def band_text(budget: Budget, figure: str = "") -> str:
    """The band of an entry in percent; empty for device operations, which have none."""
    return "" if figure == OPERATIONS else f"{float(100 * budget.band):g} %"


def findings_of(file: BudgetFile, measurements: Sequence[Measurement]) -> list[Finding]:
    """A finding for each figure of each entry, in order; raises ArgumentError for a figure that a report lacks."""
    return [
        finding
        for budget, measurement in zip(file.budgets, measurements, strict=True)
        for finding in _findings(file.path, budget, measurement)
    ]


def _findings(path: Path, budget: Budget, measurement: Measurement) -> Iterator[Finding]:
    report = measurement.report
    for figure, limit in budget.figures.items():
        given: dict[str, Any] = {"budget": budget, "report": report, "figure": figure, "limit": limit}
        if report is None:
            yield Finding(**given, measured=None, verdict=Verdict.DOES_NOT_RUN, error=measurement.error)
            continue
        measured = names_of(report) if isinstance(limit, tuple) else FIGURES[figure](report)
        if measured is None:
            raise ArgumentError(
                f"{path}:{budget.line}: budget {shown(budget.name)}: its report has no {figure}; name one that has: "
                "report0.json of ttsim exec --report has every figure"
            )
        verdict = verdict_of(figure, limit, measured, budget.band)
        told = verdict is not Verdict.HOLDS and (figure in OF_TIME or figure == OPERATIONS)
        changes = tuple(_changes(budget, report)) if told else ()
        yield Finding(**given, measured=measured, verdict=verdict, changes=changes)


def verdict_of(figure: str, limit: Number | Names, measured: Number | Names, band: Fraction) -> Verdict:
    """The verdict on a figure; the band includes both ends, device operations must be equal."""
    if figure == OPERATIONS:
        return Verdict.HOLDS if limit == measured else Verdict.DIFFERS
    assert not isinstance(limit, tuple)
    assert not isinstance(measured, tuple)
    if measured > limit * (1 + band):
        return Verdict.ABOVE
    return Verdict.BELOW if measured < limit * (1 - band) else Verdict.HOLDS


def names_of(report: Reported) -> Names:
    """The device operations of a report, in order."""
    return tuple(op.name for op in report.operations)


def cycles_of(report: Reported) -> tuple[int, ...]:
    """The cycles of each device operation of a report; 0 if they are not known."""
    return tuple(op.cycles or 0 for op in report.operations)


def _changes(budget: Budget, report: Reported) -> Iterator[str]:
    """The device operations that are not in the budget's lists, or whose cycles changed."""
    names = budget.figures.get(OPERATIONS)
    if not isinstance(names, tuple):
        return
    cycles = budget.operation_cycles or ()
    before = [
        ReportedOperation(name=name, cycles=taken, nanoseconds=nanoseconds(taken, report.clock_hz or 1))
        for name, taken in zip(names, cycles or [0] * len(names), strict=True)
    ]
    pairs = compare(Reported(device="", clock_hz=report.clock_hz, operations=tuple(before)), report).pairs
    told = [pair for pair in pairs if not pair.in_both or (cycles and report.clock_hz and pair.change.more)]
    told.sort(key=lambda pair: (pair.in_both, -abs(pair.change.more)))
    texts = Counter(map(_change, told))  # in the order of `told`
    for text, count in [*texts.items()][:MOST_CHANGES]:
        yield text if count == 1 else f"{text} ({count} times)"
    if len(texts) > MOST_CHANGES:
        yield f"{len(texts) - MOST_CHANGES} more"


def _change(pair: Pair) -> str:
    if not pair.in_both:
        return f"{pair.name} is {'gone' if pair.after is None else 'new'}"
    before, after = pair.change
    return f"{pair.name} {before:,} -> {after:,} cycles"


def _count(figure: Number | Names | None) -> int:
    return len(figure) if isinstance(figure, tuple) else int(figure or 0)


def counts_of(findings: Sequence[Finding]) -> str:
    """The number of figures of each verdict, in one line."""
    counts = Counter(finding.verdict for finding in findings)
    entries = len({finding.budget.name for finding in findings})
    words = ", ".join(f"{count} {_worded(verdict, count)}" for verdict in Verdict if (count := counts[verdict]))
    return f"{counted(entries, 'budget')}, {counted(len(findings), 'figure')}: {words}"


def _worded(verdict: Verdict, count: int) -> str:
    """The number of figures of a verdict, followed by the verdict."""
    if verdict is Verdict.DOES_NOT_RUN:
        return "of entries that do not run"
    return verdict.removesuffix("s") if count > 1 else verdict
