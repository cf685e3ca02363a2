"""Two reports side by side: operations matched in order, which took longer, and what about them is different."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from device.errors import ArgumentError
from ttsim.report.export.spelling import operation_name
from ttsim.report.formatting import fitted, printable, short_name, terminal_width, wrapped


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedTensor:
    """A tensor that an operation reads or makes, in words; what is not told is empty."""

    name: str  # INPUT_0, OUTPUT_0 ..
    shape: str = ""  # Its logical one, as 1x1x64x32
    dtype: str = ""  # BFLOAT16 ..
    layout: str = ""  # TILE or ROW_MAJOR
    memory: str = ""  # L1_HEIGHT_SHARDED ..


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedOperation:
    """A device operation, as a report tells of it."""

    name: str  # As a graph capture shows it
    # What it takes; None where no model knows it, and in the rows of a profiler, which have times alone
    cycles: int | None
    nanoseconds: float | None  # The same in time; None where nobody knows
    bound_by: str  # The stage that binds it; empty where nobody says
    core_count: int  # Cores that take part; 0 likewise
    fidelity: str = ""  # LoFi to HiFi4; empty where nothing is multiplied, or nobody says
    tensors: tuple[ReportedTensor, ...] = ()  # What it reads and makes; none in a report in JSON
    # Cycles of the critical path, or busy ones where no path is known, by stage; none in a network's report
    stages: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What a report tells."""

    device: str  # Name of the device, or its architecture; empty if nobody says
    clock_hz: int  # Its clock; 0 where times are told and no cycles
    operations: tuple[ReportedOperation, ...]
    arch: str = ""  # Its architecture; likewise
    left_out: tuple[str, ...] = ()  # Rows that are no operations of the device, in words


TOLD_STAGES = 2
MISSING, MODEL, CORES, FIDELITY, SHAPES, DTYPES, LAYOUTS, MEMORY, BOUND, STAGES = (
    "matched", "known times", "cores", "fidelity", "shapes", "data types", "layouts", "memory", "bound", "stages"
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A difference."""

    what: str  # Differs: cores, fidelity, shapes ..
    text: str  # How, in words


def causes_of(
    before: ReportedOperation | None, after: ReportedOperation | None, *, stages: bool = True
) -> tuple[Cause, ...]:
    """What is different, the stages that changed most last.

    Args:
        before: In the first report; None if it is not there.
        after: In the second; None likewise.
        stages: Whether cycles of their stages compare: those of two clocks do not.
    """
    if before is None or after is None:
        return (Cause(what=MISSING, text="only after" if before is None else "only before"),)
    if (before.nanoseconds is None) != (after.nanoseconds is None):
        return (Cause(what=MODEL, text=f"no time {'before' if before.nanoseconds is None else 'after'}"),)
    found = [*_configs(before, after), *_tensors(before, after)]
    if stages:
        found += _stages(dict(before.stages), dict(after.stages))
    return tuple(Cause(what=what, text=text) for what, text in found)


def _configs(before: ReportedOperation, after: ReportedOperation) -> Iterator[tuple[str, str]]:
    if before.core_count != after.core_count and before.core_count and after.core_count:
        yield CORES, f"{before.core_count} -> {after.core_count} cores"
    if before.fidelity != after.fidelity and before.fidelity and after.fidelity:
        yield FIDELITY, f"{before.fidelity} -> {after.fidelity}"
    if before.bound_by != after.bound_by and before.bound_by and after.bound_by:
        yield BOUND, f"bound by {before.bound_by} -> {after.bound_by}"


def _tensors(before: ReportedOperation, after: ReportedOperation) -> Iterator[tuple[str, str]]:
    """Of tensors that both tell of."""
    others: Mapping[str, ReportedTensor] = {one.name: one for one in after.tensors}
    for one in before.tensors:
        other = others.get(one.name)
        if other is None:
            continue
        sides = (
            (SHAPES, one.shape, other.shape),
            (DTYPES, one.dtype, other.dtype),
            (LAYOUTS, one.layout, other.layout),
            (MEMORY, one.memory, other.memory),
        )
        yield from ((what, f"{one.name} {was} -> {now}") for what, was, now in sides if was and now and was != now)


def _stages(were: Mapping[str, int], are: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    if not were or not are:  # a network's report has none
        return
    changes = {name: are.get(name, 0) - were.get(name, 0) for name in {**were, **are}}
    most = sorted((name for name in changes if changes[name]), key=lambda name: -abs(changes[name]))
    yield from ((STAGES, f"{name} {changes[name]:+,}") for name in most[:TOLD_STAGES])


MOST_CELLS: Final = 100_000_000  # of the table of names that is looked through, two bytes each
ENDING: Final = re.compile(r"(?<=.)(Device)?Operation$")
# What operations were called before: tt-metal of 2025 and earlier.
FORMER: Final = {"OptimizedConvNew": "Conv2d", "UntilizeWithHaloV2": "Halo", "UntilizeWithHalo": "Halo"}


def kind_of(name: str) -> str:
    """An operation's kind, by whatever name a version of tt-metal calls it: Conv2d, Halo ..."""
    short = ENDING.sub("", operation_name(name))
    return FORMER.get(short, short)


def matched(before: Sequence[str], after: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """Numbers of operations of equal kinds, in order, as many as can be; between them those that have no other.

    Raises:
        ArgumentError: Both are so long, and so different, that it would take too much memory.
    """
    same = min(len(before), len(after))
    head = next((at for at in range(same) if before[at] != after[at]), same)
    tail = next((at for at in range(same - head) if before[-1 - at] != after[-1 - at]), same - head)
    inner = _common(before[head : len(before) - tail], after[head : len(after) - tail])
    middle = [(head + one, head + other) for one, other in inner]
    ends = [(len(before) - at, len(after) - at) for at in range(tail, 0, -1)]
    both = [*((at, at) for at in range(head)), *middle, *ends]
    return _with_the_others(both, len(before), len(after))


def _common(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """The longest common subsequence, as numbers in both."""
    if (len(before) + 1) * (len(after) + 1) > MOST_CELLS or min(len(before), len(after)) > np.iinfo(np.int16).max:
        raise ArgumentError(
            f"compare: {len(before):,} and {len(after):,} operations that differ are too many to match; compare parts"
        )
    codes = {name: number for number, name in enumerate(dict.fromkeys((*before, *after)))}
    others = np.array([codes[name] for name in after], np.int64)
    longest = np.zeros((len(before) + 1, len(after) + 1), np.int16)  # [row, column]: of all behind both
    for row in range(len(before) - 1, -1, -1):
        below = longest[row + 1]
        found = np.maximum(below[:-1], below[1:] + (others == codes[before[row]]))
        longest[row, :-1] = np.maximum.accumulate(found[::-1])[::-1]
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


def _with_the_others(both: Sequence[tuple[int, int]], before: int, after: int) -> list[tuple[int | None, int | None]]:
    """Pairs, and in front of each what has none: first that of the one, then that of the other."""
    found: list[tuple[int | None, int | None]] = []
    first = second = 0
    for one, other in (*both, (before, after)):
        found += [(at, None) for at in range(first, one)]
        found += [(None, at) for at in range(second, other)]
        first, second = one + 1, other + 1
        found.append((one, other))
    return found[:-1]


HEADINGS = ("operation", "before", "after", "change", "of it")
KIND_HEADINGS = ("kind", "count", "before", "after", "change", "of it")
LONGEST_CAUSES = 1000  # characters of what is different about one operation
CYCLES, NANOSECONDS = "cycles", "ns"
CONFIGURED = (CORES, DTYPES, FIDELITY, LAYOUTS, MEMORY, SHAPES)  # what differs before anything runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An operation in both reports, or in one of them."""

    before: ReportedOperation | None  # In the first; None if it is not there
    after: ReportedOperation | None  # In the second; None likewise
    change: int  # What it takes longer in the second; one that is not there takes none. 0 where one does not tell it.
    share: float | None  # That, of what it takes in the first; None if it takes none there
    causes: tuple[Cause, ...]  # What is different about it

    @property
    def name(self) -> str:
        """Of the operation."""
        one = self.before or self.after
        return "" if one is None else one.name


@dataclass(frozen=True, slots=True, kw_only=True)
class KindChange:
    """All operations of a kind."""

    kind: str  # Conv2d, Halo ..
    counts: tuple[int, int]  # How many there are in each report
    before: int  # What they take in the first
    after: int
    change: int  # What the second has more
    share: float | None  # That, of the first; None if it has none


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two reports."""

    # Cycles where both have one clock; whole nanoseconds where it differs, or only times are known, of which a profiler
    # writes whole ones
    unit: str
    devices: tuple[str, str]
    before: int  # What the first takes, without operations whose time one of both does not tell
    after: int  # The second, likewise
    change: int  # What the second has more
    share: float | None  # That, of the first; None if it has none
    pairs: tuple[Pair, ...]  # Operations, matched in order by their kinds
    kinds: tuple[KindChange, ...]  # Sums by kind, in order of the first
    notes: tuple[str, ...]  # What else is to be known, in words

    def fails(self, most_share: float) -> bool:
        """Whether the second takes longer than the first by more than a share of its time."""
        return self.change > most_share * self.before

    def table(self, width: int | None = None) -> str:
        """Both sums, the kinds, and the operations that differ, with what is different about them.

        Args:
            width: Characters of a line: what does not fit is left out column by column, and words go on below. None:
                everything, on lines as long as it takes.
        """
        different = [one for one in self.pairs if one.change or one.causes]
        words = [self._head(), *self._counts(different), *self.notes]
        lines = [line for text in words for line in wrapped(text, width, indent=2)]
        if self.kinds:
            ordered = sorted(self.kinds, key=lambda one: -abs(one.change))
            rows = [KIND_HEADINGS, *map(self._kind_row, ordered), ("together", "", *self._sums(self))]
            lines += ["", *fitted(rows, width, words=KIND_HEADINGS[:1], least_needed=("change", "count"))]
        if different:
            head, *rest = fitted(
                [HEADINGS, *map(self._row, different)], width, words=HEADINGS[:1], least_needed=["change"]
            )
            lines += ["", head]
            for one, line in zip(different, rest, strict=True):
                lines += [line, *(part for part in wrapped(_why(one), width, indent=4) if part)]
        return "\n".join(lines)

    def __str__(self) -> str:
        """The table: as wide as the terminal where one shows it, whole elsewhere."""
        return self.table(terminal_width())

    def _head(self) -> str:
        first, second = (short_name(one) or "an unknown device" for one in self.devices)
        shown = "cycles" if self.unit == CYCLES else "us"
        sums = f"{self._text(self.before)} -> {self._text(self.after)} {shown}"
        share = "" if self.share is None else f" ({_percent(self.share)})"
        return f"{sums}{share}, {first} before, {second} after"

    def _counts(self, different: Sequence[Pair]) -> Iterator[str]:
        """How many operations are in both, and what differs in how many."""
        only = Counter(cause.text for one in different for cause in one.causes if None in (one.before, one.after))
        both = len(self.pairs) - only.total()
        alone = [f"{count} {text}" for text, count in sorted(only.items(), reverse=True)]
        same = len(self.pairs) - len(different)
        parts = [f"{both} operations are in both", *([f"{same} of them the same"] if same else []), *alone]
        yield ", ".join(parts) + "."
        both_told = [one for one in different if one.before is not None and one.after is not None]
        differs = Counter(what for one in both_told for what in {cause.what for cause in one.causes})
        told = [f"{what} in {count}" for what, count in sorted(differs.items()) if what in CONFIGURED]
        if told:
            yield f"What differs: {', '.join(told)}."

    def _row(self, one: Pair) -> tuple[str, ...]:
        sides = (None if side is None else _measure(side, self.unit) for side in (one.before, one.after))
        shown = ("" if side is None else self._text(side) for side in sides)
        return (short_name(one.name), *shown, self._text(one.change, sign="+"), _percent(one.share))

    def _kind_row(self, one: KindChange) -> tuple[str, ...]:
        first, second = one.counts
        return (short_name(one.kind), str(first) if first == second else f"{first} -> {second}", *self._sums(one))

    def _sums(self, one: "KindChange | Comparison") -> tuple[str, ...]:
        sums = (self._text(one.before), self._text(one.after), self._text(one.change, sign="+"))
        return (*sums, _percent(one.share))

    def _text(self, value: int, *, sign: str = "") -> str:
        return f"{value:{sign},}" if self.unit == CYCLES else f"{value / 1e3:{sign},.2f}"


def compare(before: Reported, after: Reported) -> Comparison:
    """The comparison of two reports, whose operations are matched in order.

    Raises:
        ArgumentError: They are too long and too different to be matched.
    """
    unit = CYCLES if before.clock_hz == after.clock_hz != 0 else NANOSECONDS
    kinds = [[kind_of(one.name) for one in side.operations] for side in (before, after)]
    pairs = [
        _pair(None if one is None else before.operations[one], None if other is None else after.operations[other], unit)
        for one, other in matched(*kinds)
    ]
    sums = _sums(pairs, unit)
    return Comparison(
        unit=unit,
        devices=(before.device, after.device),
        before=sums[0],
        after=sums[1],
        change=sums[1] - sums[0],
        share=_share(sums[1] - sums[0], sums[0]),
        pairs=tuple(pairs),
        kinds=tuple(_kind(kind, pairs, unit) for kind in dict.fromkeys((*kinds[0], *kinds[1]))),
        notes=tuple(_notes(before, after)),
    )


def _kind(kind: str, pairs: Sequence[Pair], unit: str) -> KindChange:
    found = [pair for pair in pairs if kind_of(pair.name) == kind]
    first, second = _sums(found, unit)
    return KindChange(
        kind=kind,
        counts=(sum(pair.before is not None for pair in found), sum(pair.after is not None for pair in found)),
        before=first,
        after=second,
        change=second - first,
        share=_share(second - first, first),
    )


def _notes(before: Reported, after: Reported) -> Iterator[str]:
    """Where both are of different machines, and what is left out."""
    if before.arch != after.arch and before.arch and after.arch:
        first, second = short_name(before.arch), short_name(after.arch)
        yield f"Architectures differ: {first} before, {second} after."
    elif before.clock_hz != after.clock_hz and before.clock_hz and after.clock_hz:
        yield f"Clocks differ: {before.clock_hz / 1e9:g} GHz before, {after.clock_hz / 1e9:g} GHz after."
    for which, side in (("before", before), ("after", after)):
        if side.left_out:
            yield f"Left out {which}: {' and '.join(side.left_out)}."
        untimed = sum(one.nanoseconds is None for one in side.operations)
        if untimed:
            yield f"Without a time {which}, and in no sum: {untimed} operation{'s' * (untimed > 1)}."


def _pair(before: ReportedOperation | None, after: ReportedOperation | None, unit: str) -> Pair:
    was, now = _taken(before, after, unit)
    causes = causes_of(before, after, stages=unit == CYCLES)
    return Pair(before=before, after=after, change=now - was, share=_share(now - was, was), causes=causes)


def _taken(before: ReportedOperation | None, after: ReportedOperation | None, unit: str) -> tuple[int, int]:
    """What an operation takes in both; none in either where one of them does not tell it."""
    was, now = (0 if one is None else _measure(one, unit) for one in (before, after))
    return (0, 0) if was is None or now is None else (was, now)


def _sums(pairs: Iterable[Pair], unit: str) -> tuple[int, int]:
    taken = [_taken(pair.before, pair.after, unit) for pair in pairs]
    return sum(was for was, _ in taken), sum(now for _, now in taken)


def _measure(one: ReportedOperation, unit: str) -> int | None:
    """What an operation takes."""
    if unit == CYCLES:
        return one.cycles
    return None if one.nanoseconds is None else round(one.nanoseconds)


def _why(one: Pair) -> str:
    """What is different about an operation, indented; empty where nothing is known."""
    text = printable(", ".join(cause.text for cause in one.causes)[:LONGEST_CAUSES])
    return f"    {text}" if text else ""


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:+.1f} %"
