"""Compares two reports: matches operations in order, and lists the differences in time and in configuration."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from math import fsum
from typing import Any, Final, NamedTuple

import numpy as np

from device.errors import ArgumentError
from device.time.stages import nanoseconds
from ttsim.report.formatting import TableColumn, printable, short_name, table_lines, terminal_width, text, time, wrapped

Difference = tuple[str, str]  # its kind (cores, fidelity, shapes ..), and its text: of a figure with {} for both values
FORMAT: Final = 1  # raised when a field of the JSON changes its meaning or goes
CYCLES, NANOSECONDS = "cycles", "ns"
SHOWN_STAGES: Final = 2
CORES: Final[Difference] = ("cores", "{} -> {} cores")
FIDELITY: Final[Difference] = ("fidelity", "{} -> {}")
BOUND: Final[Difference] = ("bound", "bound by {} -> {}")
MISSING, MODEL, STAGES = "matched", "known times", "stages"
OF_TENSORS: Final = ("shapes", "data types", "layouts", "memory")
CONFIGURED: Final = ("cores", "fidelity", *OF_TENSORS)  # differences that are known before a run


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedOperation:
    """A device operation of a report."""

    name: str  # As a graph capture shows it
    # None without a model, and in the rows of a profiler, which have times only
    cycles: int | None
    nanoseconds: float | None  # None if unknown
    # Compared figures: cores, fidelity, binding stage, and shape, data type, layout and memory of each tensor; a figure
    # that the report lacks is empty
    figures: Mapping[Difference, str] = field(default_factory=dict)
    # Critical cycles by stage, or busy cycles if no path is known; empty in a network's report
    stages: Mapping[str, int] = field(default_factory=dict)

    def taken(self, unit: str) -> int | None:
        """The cycles of the operation, or its whole nanoseconds."""
        if unit == CYCLES:
            return self.cycles
        return None if self.nanoseconds is None else round(self.nanoseconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A report read from a file."""

    device: str  # Name of the device, or its architecture; empty if unknown
    clock_hz: int  # 0 if the report has times and no cycles
    operations: tuple[ReportedOperation, ...]
    arch: str = ""  # Empty if unknown
    left_out: tuple[str, ...] = ()  # Rows that are no operations of the device, in words
    # Sums that not every report has; None without
    l1_peak_bytes: int | None = None  # Of a core, circular buffers and buffers together
    dram_bytes: int | None = None  # Read and written
    replay_nanoseconds: int | None = None  # Of a trace replay, with the dispatch between kernels
    error_share: float | None = None  # Expected error of the cycles
    unmeasured_share: float | None = None  # Share of the cycles in operations without a measurement

    @property
    def cycles(self) -> int | None:
        """Cycles of all operations that have a model; None if the report has only times."""
        return sum(op.cycles or 0 for op in self.operations) if self.clock_hz else None

    @property
    def whole_nanoseconds(self) -> int:
        """Nanoseconds of all operations whose time is known."""
        if self.clock_hz:
            return round(Fraction(10**9 * (self.cycles or 0), self.clock_hz))
        return round(fsum(op.nanoseconds or 0 for op in self.operations))


def causes_of(
    before: ReportedOperation | None,
    after: ReportedOperation | None,
    *,
    stages: bool = True,
    clocks_hz: tuple[int, int] | None = None,
) -> tuple[Difference, ...]:
    """The differences of an operation between two reports; None means that a report lacks the operation.

    With ``stages``, the stages that changed most come last, in cycles, or in nanoseconds if the two clocks are given.
    """
    if before is None or after is None:
        return ((MISSING, "only after" if before is None else "only before"),)
    if (before.nanoseconds is None) != (after.nanoseconds is None):
        return ((MODEL, f"no time {'before' if before.nanoseconds is None else 'after'}"),)
    both = ((what, text, was, after.figures.get((what, text), "")) for (what, text), was in before.figures.items())
    differences = [(what, text.format(was, now)) for what, text, was, now in both if was and now and was != now]
    if stages and before.stages and after.stages:
        names = dict.fromkeys((*before.stages, *after.stages))
        was, now = (
            {
                name: side.stages.get(name, 0) if hz is None else round(nanoseconds(side.stages.get(name, 0), hz))
                for name in names
            }
            for side, hz in zip((before, after), clocks_hz or (None, None), strict=True)
        )
        changes, unit = {name: now[name] - was[name] for name in names}, " ns" if clocks_hz else ""
        most = sorted(filter(changes.get, changes), key=lambda name: -abs(changes[name]))
        differences += [(STAGES, f"{name} {changes[name]:+,}{unit}") for name in most[:SHOWN_STAGES]]
    return tuple(differences)


MOST_CELLS: Final = 100_000_000  # cells of the matching table, two bytes each
ENDING: Final = re.compile(r"(?<=.)(Device)?Operation$")
GENERATED: Final = "Codegen"  # in names such as UntilizeCodegenDeviceOperation, which earlier versions do not have
# Names of operations in tt-metal of 2025 and earlier.
FORMER: Final = {"OptimizedConvNew": "Conv2d", "UntilizeWithHaloV2": "Halo", "UntilizeWithHalo": "Halo"}


def kind_of(name: str) -> str:
    """The kind of an operation in any version of tt-metal: Conv2d, Halo ..."""
    short = ENDING.sub("", printable(name.replace(GENERATED, "")))
    return FORMER.get(short, short)


def matched(before: Sequence[str], after: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """The indices of operations of equal kinds, matched in order; None for an unmatched operation.

    Raises ArgumentError if the lists are so long and so different that the match would take too much memory.
    """
    same = min(len(before), len(after))
    head = next((at for at in range(same) if before[at] != after[at]), same)
    tail = next((at for at in range(same - head) if before[-1 - at] != after[-1 - at]), same - head)
    inner = _common(before[head : len(before) - tail], after[head : len(after) - tail])
    pairs = [(at, at) for at in range(head)] + [(head + row, head + column) for row, column in inner]
    pairs += [(len(before) - at, len(after) - at) for at in range(tail, -1, -1)]  # the last stands behind the end
    matches: list[tuple[int | None, int | None]] = []
    for (first, second), (row, column) in pairwise([(-1, -1), *pairs]):
        matches += [(at, None) for at in range(first + 1, row)]
        matches += [(None, at) for at in range(second + 1, column)]
        matches.append((row, column))
    return matches[:-1]


def _common(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """The longest common subsequence, as pairs of indices."""
    if (len(before) + 1) * (len(after) + 1) > MOST_CELLS or min(len(before), len(after)) > np.iinfo(np.int16).max:
        raise ArgumentError(
            f"compare: {len(before):,} and {len(after):,} operations that differ are too many to match; compare parts"
        )
    codes = {name: number for number, name in enumerate(dict.fromkeys((*before, *after)))}
    others = np.array([codes[name] for name in after], np.int64)
    longest = np.zeros((len(before) + 1, len(after) + 1), np.int16)  # [row, column]: of all behind both
    for row in range(len(before) - 1, -1, -1):
        below = longest[row + 1]
        best = np.maximum(below[:-1], below[1:] + (others == codes[before[row]]))
        longest[row, :-1] = np.maximum.accumulate(best[::-1])[::-1]
    pairs, row, column = [], 0, 0
    while row < len(before) and column < len(after):
        if before[row] == after[column]:
            pairs.append((row, column))
            row, column = row + 1, column + 1
        elif longest[row + 1, column] >= longest[row, column + 1]:
            row += 1
        else:
            column += 1
    return pairs


LONGEST_CAUSES: Final = 1000  # characters of the differences of one operation


class Change(NamedTuple):
    """The times of two reports, of operations with a time in both."""

    before: int
    after: int

    @property
    def more(self) -> int:
        """The second time minus the first."""
        return self.after - self.before

    @property
    def share(self) -> float | None:
        """The difference as a share of the first time; None if the first time is 0."""
        return self.more / self.before if self.before else None


class Pair(NamedTuple):
    """An operation in both reports, or in one of them."""

    before: ReportedOperation | None  # None if the first report lacks the operation
    after: ReportedOperation | None  # None if the second report lacks the operation
    times: tuple[int | None, int | None]  # Of both; None if unknown
    change: Change  # A missing operation counts 0
    causes: tuple[Difference, ...]  # Its differences

    @property
    def name(self) -> str:
        """The name of the operation."""
        return next(side.name for side in (self.before, self.after) if side is not None)

    @property
    def in_both(self) -> bool:
        """Whether both reports have the operation."""
        return self.before is not None and self.after is not None

    @property
    def differs(self) -> bool:
        """Whether its time or its configuration differs."""
        return bool(self.change.more or self.causes)


class KindChange(NamedTuple):
    """The change of all operations of one kind."""

    name: str  # Conv2d, Halo ..
    counts: tuple[int, int] | None  # How many there are in each report; None of all kinds together
    change: Change

    @property
    def times(self) -> tuple[int, int]:
        """The time in both reports."""
        return self.change


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The differences between two reports."""

    # Cycles if both reports have the same clock; else whole nanoseconds, which a profiler writes
    unit: str
    devices: tuple[str, str]  # Names, or architectures of reports that know no name; empty if unknown
    archs: tuple[str, str]  # Architectures; empty if unknown
    change: Change  # Sum over all operations
    pairs: tuple[Pair, ...]  # Operations, matched in order by their kinds
    kinds: tuple[KindChange, ...]  # Sums by kind, in order of the first
    notes: tuple[str, ...]  # Further notes
    clock_hz: int  # Of both devices; 0 if the unit is nanoseconds

    def nanoseconds(self, figure: int | None) -> float | None:
        """A time in nanoseconds, from the unit of the comparison."""
        return figure if figure is None or not self.clock_hz else nanoseconds(figure, self.clock_hz)

    def fails(self, most_share: float) -> bool:
        """Whether the second time exceeds the first by more than this share."""
        return self.change.more > most_share * self.change.before

    def to_json(self) -> str:
        """All figures; the same bytes for the same reports."""
        operations = [
            {
                "name": pair.name,
                "before": pair.times[0],
                "after": pair.times[1],
                "causes": [text for _, text in pair.causes],
            }
            for pair in self.pairs
        ]
        sums = {"unit": self.unit, "devices": self.devices, "before": self.change.before, "after": self.change.after}
        return text({"format": FORMAT, **sums, "operations": operations, "notes": self.notes})

    def table(self, width: int | None = None) -> str:
        """The sums, the kinds, and the differing operations with their causes, in lines of `width` characters."""
        different = [pair for pair in self.pairs if pair.differs]
        lines = [line for text in (*self._words(different), *self.notes) for line in wrapped(text, width, indent=2)]
        name = TableColumn[Any]("kind", lambda row: short_name(row.name), words=True)
        times = (
            TableColumn[Any]("before", lambda row: self._text(row.times[0])),
            TableColumn[Any]("after", lambda row: self._text(row.times[1])),
            TableColumn[Any]("change", lambda row: self._text(row.change.more, sign="+"), goes=1),
            TableColumn[Any]("of it", lambda row: _percent(row.change.share)),
        )
        if self.kinds:
            kinds = sorted(self.kinds, key=lambda kind: -abs(kind.change.more))
            columns = (name, TableColumn[Any]("count", _count, goes=2), *times)
            lines += ["", *table_lines(columns, [*kinds, KindChange("together", None, self.change)], width)]
        if different:
            head, *rest = table_lines((replace(name, heading="operation"), *times), different, width)
            lines += ["", head]
            for pair, line in zip(different, rest, strict=True):
                why = printable(", ".join(text for _, text in pair.causes)[:LONGEST_CAUSES])
                lines += [line, *(wrapped(f"    {why}", width, indent=4) if why else ())]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.table(terminal_width())

    def _words(self, different: Sequence[Pair]) -> Iterator[str]:
        """The sums, the number of operations in both reports, and the number that differ by each cause."""
        first, second = map(_device_words, self.devices, self.archs)
        sums = f"{self._text(self.change.before)} -> {self._text(self.change.after)}"
        share = "" if self.change.share is None else f" ({_percent(self.change.share)})"
        yield f"{sums}{' cycles' if self.unit == CYCLES else ''}{share}, {first} before, {second} after"
        alone = Counter(pair.causes[0][1] for pair in different if not pair.in_both)
        same = len(self.pairs) - len(different)
        both = len(self.pairs) - alone.total()
        counts = [f"{both} {'operation is' if both == 1 else 'operations are'} in both"]
        counts += [f"{same} of them the same"] if same else []
        yield ", ".join((*counts, *(f"{alone[text]} {text}" for text in sorted(alone, reverse=True)))) + "."
        differs = Counter(what for pair in different for what in dict(pair.causes))
        differences = [f"{what} in {differs[what]}" for what in sorted(CONFIGURED) if differs[what]]
        if differences:
            yield f"What differs: {', '.join(differences)}."

    def _text(self, value: int | None, *, sign: str = "") -> str:
        if value is None:
            return ""
        return f"{value:{sign},}" if self.unit == CYCLES else time(value, sign)


def compare(before: Reported, after: Reported) -> Comparison:
    """Compares two reports; raises ArgumentError if they are too long and too different to match."""
    unit = CYCLES if before.clock_hz == after.clock_hz != 0 else NANOSECONDS
    kinds = [[kind_of(op.name) for op in side.operations] for side in (before, after)]
    clocks = (before.clock_hz, after.clock_hz)
    pairs = [
        _pair(
            None if row is None else before.operations[row], None if at is None else after.operations[at], unit, clocks
        )
        for row, at in matched(*kinds)
    ]
    of_kinds = (
        (kind, (kinds[0].count(kind), kinds[1].count(kind)), [pair for pair in pairs if kind_of(pair.name) == kind])
        for kind in dict.fromkeys((*kinds[0], *kinds[1]))
    )
    return Comparison(
        unit=unit,
        devices=(before.device, after.device),
        archs=(before.arch, after.arch),
        change=_together(pairs),
        pairs=tuple(pairs),
        kinds=tuple(KindChange(kind, counts, _together(own)) for kind, counts, own in of_kinds),
        notes=tuple(_notes(before, after)),
        clock_hz=before.clock_hz if unit == CYCLES else 0,
    )


def _pair(
    before: ReportedOperation | None, after: ReportedOperation | None, unit: str, clocks_hz: tuple[int, int]
) -> Pair:
    was, now = (0 if side is None else side.taken(unit) for side in (before, after))
    change = Change(0, 0) if was is None or now is None else Change(was, now)
    times = (was if before else None, now if after else None)
    own = None if unit == CYCLES else clocks_hz
    return Pair(before, after, times, change, causes_of(before, after, stages=all(clocks_hz), clocks_hz=own))


def _together(pairs: Iterable[Pair]) -> Change:
    return Change(*(sum(side) for side in zip((0, 0), *(pair.change for pair in pairs), strict=True)))


def _notes(before: Reported, after: Reported) -> Iterator[str]:
    if before.arch != after.arch and before.arch and after.arch:
        yield f"Architectures differ: {short_name(before.arch)} before, {short_name(after.arch)} after."
    elif before.clock_hz != after.clock_hz and before.clock_hz and after.clock_hz:
        yield f"Clocks differ: {before.clock_hz / 1e9:g} GHz before, {after.clock_hz / 1e9:g} GHz after."
    for which, side in (("before", before), ("after", after)):
        if side.left_out:
            yield f"Left out {which}: {' and '.join(side.left_out)}."
        untimed = sum(op.nanoseconds is None for op in side.operations)
        if untimed:
            yield f"Without a time {which}, and in no sum: {untimed} operation{'s' * (untimed > 1)}."


def _device_words(device: str, arch: str) -> str:
    """The name of a device, or its architecture."""
    if device == arch:
        return f"a {short_name(arch)} device" if arch else "an unknown device"
    return short_name(device)


def _count(kind: KindChange) -> str:
    first, second = kind.counts or ("", "")
    return f"{first}" if first == second else f"{first} -> {second}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:+.1f} %"
