"""Two reports, operation by operation: which took longer, and what about them is different."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from device.time.stages import nanoseconds
from ttsim.report.columns import aligned
from ttsim.report.comparison.read import Reported, ReportedOperation
from ttsim.report.cycles.explain import cycles, time
from ttsim.report.printable import printable

HEADINGS = ("operation", "before", "after", "change", "of it", "why")
TOLD_STAGES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An operation in both reports, or in one of them.

    Attributes:
        before: In the first; None if it is not there.
        after: In the second; None likewise.
        change: Cycles more in the second; one that is not there, or that no model knows, counts none.
        share: That, of the cycles in the first; None if it took none there.
        causes: What is different about it, in words.
    """

    before: ReportedOperation | None
    after: ReportedOperation | None
    change: int
    share: float | None
    causes: tuple[str, ...]

    @property
    def name(self) -> str:
        """Of the operation."""
        one = self.before or self.after
        return "" if one is None else one.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two reports.

    Attributes:
        before: Cycles of the first.
        after: Of the second.
        change: What the second has more.
        share: That, of the first; None if it has none.
        before_nanoseconds: Time of the first, by its clock.
        after_nanoseconds: Of the second.
        same_clock: Whether both have one clock, so that cycles compare as time does.
        pairs: Operations, matched in order by their names.
    """

    before: int
    after: int
    change: int
    share: float | None
    before_nanoseconds: float
    after_nanoseconds: float
    same_clock: bool
    pairs: tuple[Pair, ...]

    def fails(self, most_share: float) -> bool:
        """Whether the second takes longer than the first by more than a share of its time."""
        if self.same_clock:
            return self.change > most_share * self.before
        return self.after_nanoseconds > (1 + most_share) * self.before_nanoseconds

    def __str__(self) -> str:
        """A table of what differs, and both sums."""
        rows = [_row(one) for one in self.pairs if one.change or one.causes]
        same = len(self.pairs) - len(rows)
        total = ("together", cycles(self.before), cycles(self.after), f"{self.change:+,}", _percent(self.share), "")
        alike = [f"{same} operations are the same in both."] if same else []
        times = f"{time(self.before_nanoseconds)} before, {time(self.after_nanoseconds)} after"
        clocks = [] if self.same_clock else [f"Clocks differ, cycles are those of each: {times}."]
        return "\n".join([*aligned([HEADINGS, *rows, total], words=(0, 5)), *alike, *clocks])


def compare(before: Reported, after: Reported) -> Comparison:
    """The comparison of two reports, whose operations are matched in order."""
    first, second = (sum(one.cycles or 0 for one in side.operations) for side in (before, after))
    clock, other = (side.clock_hz or before.clock_hz or after.clock_hz or 1 for side in (before, after))
    return Comparison(
        before=first,
        after=second,
        change=second - first,
        share=_share(second - first, first),
        before_nanoseconds=nanoseconds(first, clock),
        after_nanoseconds=nanoseconds(second, other),
        same_clock=clock == other,
        pairs=tuple(_pair(*both) for both in _matched(before.operations, after.operations)),
    )


def _matched(
    before: Sequence[ReportedOperation], after: Sequence[ReportedOperation]
) -> Iterator[tuple[ReportedOperation | None, ReportedOperation | None]]:
    """Operations of equal names, in order; what stands between such pairs is in one report alone."""
    match = SequenceMatcher(None, [one.name for one in before], [one.name for one in after], autojunk=False)
    for kind, first, behind, other_first, other_behind in match.get_opcodes():
        if kind == "equal":
            yield from zip_longest(before[first:behind], after[other_first:other_behind])
        else:
            yield from ((one, None) for one in before[first:behind])
            yield from ((None, one) for one in after[other_first:other_behind])


def _pair(before: ReportedOperation | None, after: ReportedOperation | None) -> Pair:
    was, now = (0 if one is None or one.cycles is None else one.cycles for one in (before, after))
    return Pair(
        before=before, after=after, change=now - was, share=_share(now - was, was), causes=tuple(_causes(before, after))
    )


def _causes(before: ReportedOperation | None, after: ReportedOperation | None) -> Iterator[str]:
    """What is different, the stages that changed most among it."""
    if before is None or after is None:
        yield "only after" if before is None else "only before"
        return
    if (before.cycles is None) != (after.cycles is None):
        yield "no model before" if before.cycles is None else "no model after"
        return
    if before.core_count != after.core_count:
        yield f"{before.core_count} -> {after.core_count} cores"
    if before.bound_by != after.bound_by:
        yield f"bound by {before.bound_by} -> {after.bound_by}"
    if not before.stages or not after.stages:  # a network's report has none
        return
    were, are = dict(before.stages), dict(after.stages)
    changes = {name: are.get(name, 0) - were.get(name, 0) for name in {**were, **are}}
    most = sorted((name for name in changes if changes[name]), key=lambda name: -abs(changes[name]))
    for name in most[:TOLD_STAGES]:
        yield f"{name} {changes[name]:+,}"


def _row(one: Pair) -> tuple[str, ...]:
    sides = ("" if side is None or side.cycles is None else cycles(side.cycles) for side in (one.before, one.after))
    why = printable(", ".join(one.causes))
    return (printable(one.name[:80]), *sides, f"{one.change:+,}", _percent(one.share), why)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:+.1f} %"
