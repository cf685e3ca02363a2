"""The best points of a sweep, as a table in plain characters."""

from collections.abc import Mapping
from typing import Any, Final

from ttsim.report.columns import fitted
from ttsim.report.cycles.explain import counted, cycles, percent, time
from ttsim.report.printable import printable, short_name
from ttsim.study.points.row import Verdict
from ttsim.study.sweep.result import Best, SweepResult

HEADINGS: Final = ("layer", "device", "fit", "cycles", "+-", "time", "slowest", "L1 peak B", "headroom B", "fastest")
WORDS: Final = ("layer", "device", "fastest")
LEAST_NEEDED: Final = ("headroom B", "L1 peak B", "slowest", "+-", "fit", "time", "device")  # on a narrow terminal
TOLD_MISTAKES: Final = 3
LONGEST_REASON: Final = 100  # characters of an error in a line
DEVICE: Final = "device."


def best_table(result: SweepResult, width: int | None = None) -> str:
    """A line for each layer on each device: the settings of its fastest point, what that takes, and how many run.

    Args:
        width: Characters of a line; None: all columns stay.
    """
    lines = fitted([HEADINGS, *map(_cells, result.best())], width, words=WORDS, least_needed=LEAST_NEEDED)
    told = f"{counted(len(result.samples), 'point')}, {counted(result.plans, 'different plan')}"
    parts = [f"{count} {what}" for what, count in result.verdicts.items()]
    return "\n".join([*lines, f"{told}: {', '.join(parts)}", *_mistakes(result), ""])


def words_of(labels: Mapping[str, Any]) -> str:
    """Values on the axes but those of devices, which their names have, as they would be given."""
    told = [
        f"{name.split('.', 1)[-1]}={word_of(value)}" for name, value in labels.items() if not name.startswith(DEVICE)
    ]
    return ", ".join(told) or "as given"


def word_of(value: Any) -> str:
    """A value of an axis, as it would be given."""
    if isinstance(value, tuple | list):
        return "x".join(map(str, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _mistakes(result: SweepResult) -> list[str]:
    """The errors that are not the points' own, each once, the first few."""
    errors = dict.fromkeys(row.error for row in result.rows if row.verdict in (Verdict.FAILED, Verdict.LOST))
    return [f"{Verdict.FAILED}: {printable(error)}" for error in [*errors][:TOLD_MISTAKES]]


def _cells(best: Best) -> tuple[str, ...]:
    fitting = f"{best.fitting} of {best.points}"
    row, named = best.row, (short_name(best.layer), printable(best.device), fitting)
    if row is None or row.cycles is None or best.labels is None:
        return (*named, *[""] * 6, f"nothing runs: {short_name(best.reason, LONGEST_REASON)}")
    return (
        *named,
        cycles(row.cycles),
        "?" if row.cycles_error_share is None else percent(row.cycles_error_share),
        time(best.nanoseconds or 0),
        cycles(best.slowest_cycles or 0),
        cycles(row.l1_peak_bytes or 0),
        cycles(row.l1_headroom_bytes or 0),
        printable(words_of(best.labels)),
    )
