"""The page of a comparison: verdict, the operation that changed most, both timelines, and all matched operations."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ttsim.report.comparison import CYCLES, Comparison, KindChange, Pair, kind_of
from ttsim.report.formatting import percent, short_name, time
from ttsim.report.sections import Cell, Field, Mark, Page, Section, View, axis, bars, gain, rectangles, table, verdict

SIDES: Final = ("before", "after")
FEW_OPERATIONS: Final = 12  # that the picture shows one by one; of more, it shows the kinds
BARS_NOTE: Final = "Upper, paler bars are before; lower bars are after, with their figures."
TIMELINE_NOTE: Final = "Kernel time from left to right. Operations run one after the other."

Sides = tuple[float | None, float | None]


class Compared(NamedTuple):
    """An operation, or all operations of a kind, in both reports."""

    number: int | None  # None for a kind
    kind: str
    nanoseconds: Sides  # None where a report has no time
    more: float | None  # Nanoseconds after less nanoseconds before
    share: float | None  # The difference as a share of the time before
    counts: Sides = (None, None)  # Operations of a kind in each report
    differences: str = ""
    cycles: Sides = (None, None)  # None if the clocks differ

    @classmethod
    def of(cls, comparison: Comparison, row: Pair | KindChange, number: int | None) -> "Compared":
        """A row of the table of operations, or of the table of kinds."""
        before, after = (comparison.nanoseconds(taken) for taken in row.times)
        return cls(
            number=number,
            kind=kind_of(row.name),
            nanoseconds=(before, after),
            more=comparison.nanoseconds(row.change.more),
            share=row.change.share,
            counts=(None, None) if isinstance(row, Pair) else row.counts or (None, None),
            differences=_causes(row) if isinstance(row, Pair) else "",
            cycles=row.times if comparison.unit == CYCLES else (None, None),
        )


FIELDS: Final[Sequence[Field[Compared]]] = (
    Field("#", lambda row: row.number, "number"),
    Field("operation", lambda row: row.kind, "operation"),
    Field("before", lambda row: row.nanoseconds[0], "ns", total=True),
    Field("after", lambda row: row.nanoseconds[1], "ns", total=True),
    Field("difference", lambda row: row.more, "ns", total=True),
    Field("of before", lambda row: row.share, "share"),
    Field("count before", lambda row: row.counts[0], "number", total=True),
    Field("count after", lambda row: row.counts[1], "number", total=True),
    Field("what differs", lambda row: row.differences),
    Field("cycles before", lambda row: row.cycles[0], "cycles", total=True),
    Field("cycles after", lambda row: row.cycles[1], "cycles", total=True),
)


def page_of_comparison(comparison: Comparison, names: tuple[str, str] = SIDES) -> Page:
    """The page of two reports with these names."""
    devices = [short_name(device) or "an unknown device" for device in comparison.devices]
    device = devices[0] if devices[0] == devices[1] else f"{devices[0]} before, {devices[1]} after"
    asked = {side: f"{name} on {on}" for side, name, on in zip(SIDES, names, devices, strict=True)}
    source = "operations" if len(comparison.pairs) <= FEW_OPERATIONS else "kinds"
    operations = [Compared.of(comparison, pair, at) for at, pair in enumerate(comparison.pairs)]
    kinds = [Compared.of(comparison, kind, None) for kind in comparison.kinds]
    kinds.sort(key=lambda row: -abs(row.more or 0))
    own = [[at for at, row in enumerate(operations) if row.kind == kind.kind] for kind in kinds]
    sections = [
        verdict(_state(comparison), _verdict(comparison), _facts(comparison), asked),
        _most_changed(comparison),
        bars("picture", "Where the time goes", BARS_NOTE, source=source, label="operation", figures=SIDES),
        _timelines(operations),
        table("kinds", "By kind", FIELDS, kinds, ops=own),
        table("operations", "Operations", FIELDS, operations, ops=[[at] for at in range(len(operations))]),
    ]
    view = View(name="comparison", sections=sections)
    return Page(title=f"{names[1]} against {names[0]}", device=device, views=[view], notes=comparison.notes)


def _state(comparison: Comparison) -> str:
    more = comparison.change.more
    return "slow" if more > 0 else "good" if more < 0 else "known"


def _verdict(comparison: Comparison) -> str:
    before, after = map(comparison.nanoseconds, comparison.change)
    times = f"{time(before or 0)} -> {time(after or 0)}"
    share = comparison.change.share
    if not comparison.change.more:
        return f"Both take the same time: {times}."
    how_much = "" if share is None else f"{percent(abs(share))} "
    return f"Takes {how_much}{'more' if comparison.change.more > 0 else 'less'} time: {times}."


def _facts(comparison: Comparison) -> Iterator[tuple[str, Cell, str]]:
    change, pairs = comparison.change, comparison.pairs
    for name, value in (*zip(SIDES, change, strict=True), ("difference", change.more)):
        yield name, comparison.nanoseconds(value), "ns"
    yield "of before", change.share, "share"
    yield "operations in both", sum(pair.in_both for pair in pairs), "number"
    yield "of them the same", sum(pair.in_both and not pair.differs for pair in pairs), "number"
    yield "only before", sum(pair.after is None for pair in pairs) or None, "number"
    yield "only after", sum(pair.before is None for pair in pairs) or None, "number"


def _most_changed(comparison: Comparison) -> Section:
    """The operation whose time changed most, and its differences."""
    numbered = enumerate(comparison.pairs)
    at, pair = max(numbered, key=lambda item: abs(item[1].change.more), default=(0, None))
    if pair is None or not pair.change.more:
        return gain("No operation takes another time.")
    difference = time(comparison.nanoseconds(abs(pair.change.more)) or 0)
    amount = f"{difference} {'more' if pair.change.more > 0 else 'less'}"
    times = [time(comparison.nanoseconds(value) or 0) for value in pair.change]
    detail = f"{' -> '.join(times)}. {_causes(pair) or 'Both reports have the same configuration of it'}."
    return gain(f"Changed most: #{at} {kind_of(pair.name)} takes {amount}", detail)


def _causes(pair: Pair) -> str:
    return ", ".join(text for _, text in pair.causes)


def _timelines(operations: Sequence[Compared]) -> Section:
    """A timeline with a lane for each report."""
    marks, ends = [], [0.0, 0.0]
    for at, row in enumerate(operations):
        for lane, taken in enumerate(row.nanoseconds):
            if taken:
                begin, ends[lane] = ends[lane], ends[lane] + taken
                marks.append(Mark(begin, ends[lane], lane, lane + 1, row.kind, at, label=row.kind))
    return rectangles(
        "timeline",
        "Timelines",
        TIMELINE_NOTE,
        x=axis("kernel time", "ns", max(ends)),
        y=axis("", "lanes", len(SIDES), names=SIDES),
        marks={"operations": marks},
        legend={},
    )
