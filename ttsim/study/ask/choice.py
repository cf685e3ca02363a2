"""Ranks candidates by time, and marks ties within the expected error."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from math import fsum
from typing import Any, Final, NamedTuple

from device.errors import ArgumentError
from ttsim.report.cycle_report import CycleReport
from ttsim.report.cycles import ErrorBar, total_error
from ttsim.runtime.queried import ExecutionStatus, RuntimeQueryResponse

# Time that was never measured may be so many times shorter or longer: an assumption, larger than the errors that
# operations have when their own sources are left out of the fit (docs/reference/cycles.md)
DOUBT: Final = 2


class TimedPart(NamedTuple):
    """A device operation of a candidate; equal in two candidates if the same operation takes the same time."""

    identity: Hashable  # Its name, its tensors and its device
    kind: str  # For evidence of its time
    nanoseconds: float
    error: ErrorBar


def parts_of(report: CycleReport) -> tuple[TimedPart, ...]:
    """The device operations of a report."""
    return tuple(
        TimedPart((op.name, op.timed.ends, op.spec), op.timed.kind, op.nanoseconds, op.error)
        for call in report.calls
        for op in call.operations
    )


class Candidate(NamedTuple):
    """A candidate of a choice, by its index in the question."""

    number: int
    response: RuntimeQueryResponse
    parts: tuple[TimedPart, ...] = ()  # Its device operations; empty if it is refused


def bounds(parts: Sequence[TimedPart]) -> tuple[float, float]:
    """The shortest and longest likely time in ns: measured time by its error bar, other time halved and doubled."""
    total = fsum(part.nanoseconds for part in parts)
    shares = total_error([(part.kind, part.nanoseconds, part.error) for part in parts])
    unmeasured = shares.unmeasured_share
    error = (shares.share or 0.0) * (1 - unmeasured)
    shortest, longest = 1 - unmeasured - error + unmeasured / DOUBT, 1 - unmeasured + error + unmeasured * DOUBT
    return total * shortest, total * longest


def choice(candidates: Sequence[Candidate]) -> dict[str, Any]:
    """The candidates from fast to slow, and the refused candidates.

    A candidate ties with the best candidate if the error bars of the device operations that they do not share overlap.
    A candidate with device operations that have
    no model of time is not ranked. Raises ArgumentError if there are no candidates.
    """
    if not candidates:
        raise ArgumentError("choose has no candidates; give at least one object of fields")
    timed = [each for each in candidates if each.response.status is ExecutionStatus.Success]
    ranked = sorted((each for each in timed if not each.response.untimed), key=lambda each: each.response.runtime)
    best = ranked[0] if ranked else None
    return {
        "best": None if best is None else best.number,
        "tie": best is not None and any(_ties(best, other) for other in ranked[1:]),
        "ranked": [_row(best, each) for each in ranked if best is not None],
        "refused": [
            {
                "candidate": each.number,
                "error_message": each.response.error_message or f"no time: {', '.join(each.response.untimed)}",
                "refusal": each.response.refusal or "not simulated",
            }
            for each in candidates
            if each not in ranked
        ],
    }


def _ties(best: Candidate, other: Candidate) -> bool:
    """Whether the error bars overlap; the time of a shared operation is off by the same amount in both candidates."""
    shared = Counter(best.parts) & Counter(other.parts)
    return bounds(_without(shared, best.parts))[1] >= bounds(_without(shared, other.parts))[0]


def _without(shared: Counter[TimedPart], parts: Iterable[TimedPart]) -> list[TimedPart]:
    return list((Counter(parts) - shared).elements())


def _row(best: Candidate, each: Candidate) -> dict[str, Any]:
    response = each.response
    return {
        "candidate": each.number,
        "runtime": response.runtime,
        "error_share": response.error_share,
        "unmeasured_share": response.unmeasured_share,
        "times_best": round(response.runtime / best.response.runtime, 4) if best.response.runtime else 1.0,
        "tie": each is not best and _ties(best, each),
    }
