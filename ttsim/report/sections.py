"""Sections of pages as JSON data, which page.js draws: verdict, gain, tables, charts, code.

A chart shows rows of a table of its view: a mark names its row, and headings name columns. The rows of a table list the
numbers of their device operations, so all sections can show one selection.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil, floor, log10
from typing import Any, Final, Generic

from ttsim.report.formatting import RowT, printable_lines

Cell = str | int | float | None  # None: no figure
Section = dict[str, Any]
LONGEST_CELL: Final = 200  # characters
LONGEST_TEXT: Final = 20_000
DIGITS: Final = ".9g"
MOST_POINTS: Final = 2000  # that a page of points shows, so that it stays small
WIDE: Final = 50  # least ratio of the ends of a logarithmic axis


@dataclass(frozen=True)
class Field(Generic[RowT]):
    """A column of a table on a page: raw figures, which page.js formats by their unit.

    Units: "text", "operation" (in its color), "code", "number", "cycles", "ns", "share", "B", "B/s", "FLOP", "FLOP/s",
    "FLOP/B", "slope" (a derivative), "figure" (any other number), "view" (the name of a view).
    """

    name: str
    of: Callable[[RowT], Cell]
    unit: str = "text"
    total: bool = False  # Whether the figures of several rows add up


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The visible part of a page; pages of several layers have several views."""

    name: str
    sections: Sequence[Section]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page."""

    title: str
    device: str  # Its name and clock
    views: Sequence[View]
    notes: Sequence[str] = ()  # What the figures include and leave out


def verdict(state: str, text: str, facts: Iterable[tuple[str, Cell, str]], asked: Mapping[str, str]) -> Section:
    """The result in a sentence, its most important figures (name, figure, unit), and the request.

    `state` is "good" (no tried config is faster), "slow" (some config is faster), "known" (none tried), or "bad".
    """
    known = [list(fact) for fact in facts if fact[1] is not None]
    return {"kind": "verdict", "id": "verdict", "state": state, "text": text, "facts": known, "asked": dict(asked)}


def gain(text: str, detail: str = "", code: str = "") -> Section:
    """The change that saves most time, with code to paste; or why there is none."""
    return {"kind": "gain", "id": "gain", "text": text, "detail": detail, "code": code}


def table(
    name: str,
    title: str,
    fields: Sequence[Field[RowT]],
    rows: Iterable[RowT],
    *,
    ops: Iterable[Sequence[int]] = (),
    folded: bool = False,
    note: str = "",
) -> Section:
    """A table without empty columns; `ops` are the numbers of the operations of each row."""
    rows = list(rows)
    cells = [[_cell(field, row) for row in rows] for field in fields]
    filled = [(field, column) for field, column in zip(fields, cells, strict=True) if set(column) - {None, ""}]
    return {
        "kind": "table",
        "id": name,
        "title": title,
        "note": note,
        "folded": folded,
        "columns": [{"name": field.name, "unit": field.unit, "total": field.total} for field, _ in filled],
        "rows": [list(row) for row in zip(*(column for _, column in filled), strict=True)],
        "ops": [spans(numbers) for numbers in ops],
    }


def _cell(field: Field[RowT], row: RowT) -> Cell:
    value = field.of(row)
    return short(value) if isinstance(value, str) and field.unit != "code" else value


def spans(numbers: Sequence[int]) -> list[int]:
    """Ascending numbers as the first and last number of each run: 1, 2, 3, 7 becomes [1, 3, 7, 7]."""
    firsts = [number for at, number in enumerate(numbers) if not at or numbers[at - 1] != number - 1]
    lasts = [number for at, number in enumerate(numbers, 1) if at == len(numbers) or numbers[at] != number + 1]
    return list(chain.from_iterable(zip(firsts, lasts, strict=True)))


def axis(
    label: str, unit: str, end: float, *, start: float = 0, names: Sequence[str] = (), log: bool = False
) -> Section:
    """An axis from `start` to `end`; `names` are the names of the intervals between integers."""
    return {"label": label, "unit": unit, "start": start, "end": end, "names": list(names), "log": log}


def axis_around(label: str, unit: str, values: Sequence[float]) -> Section:
    """An axis with margins around the values; logarithmic if the values are far apart."""
    low, high = min(values), max(values)
    if low > 0 and high / low > WIDE:
        return axis(label, unit, 10.0 ** ceil(log10(high)), start=10.0 ** floor(log10(low)), log=True)
    room = (high - low) / 12 or high / 12 or 1.0
    return axis(label, unit, high + room, start=max(0.0, low - room))


@dataclass(frozen=True, slots=True)
class Mark:
    """A rectangle of a chart."""

    left: float
    right: float
    low: float
    high: float
    color: str  # The name of what has the color: an operation, a kind of buffer ...
    row: int  # Of the table
    strength: float = 1.0  # Of the color, from 0 to 1
    label: str = ""


def rectangles(
    name: str,
    title: str,
    note: str,
    *,
    x: Section,
    y: Section,
    marks: Mapping[str, Sequence[Mark]],
    legend: Mapping[str, str],
    limit: tuple[str, float] | None = None,
) -> Section:
    """A chart of rectangles for rows of a table; `legend` explains colors other than operations.

    `limit` is a named horizontal line at a value of the y axis.
    """
    parts = [
        {
            "table": source,
            "marks": [[m.left, m.right, m.low, m.high, m.color, m.row, m.strength, short(m.label)] for m in own],
        }
        for source, own in marks.items()
        if own
    ]
    return {"kind": "rectangles", "id": name, "title": title, "note": note, "x": x, "y": y, "parts": parts,
            "legend": dict(legend), "limit": limit and list(limit)}  # fmt: skip


def points(
    name: str,
    title: str,
    note: str,
    *,
    x: Section,
    y: Section,
    source: str,
    marks: Sequence[tuple[float, float, str, int]],
    lines: Sequence[tuple[str, Sequence[tuple[float, float]]]] = (),
) -> Section:
    """A chart of points (x, y, name of the color, row of the table `source`) and named lines."""
    return {"kind": "points", "id": name, "title": title, "note": note, "x": x, "y": y, "table": source,
            "marks": [list(mark) for mark in marks],
            "lines": [{"name": line, "points": [list(point) for point in path]} for line, path in lines]}  # fmt: skip


def heat(
    name: str,
    title: str,
    note: str,
    *,
    source: str,
    across: str,
    down: str,
    figures: Sequence[str],
    axes: Sequence[str] = (),
) -> Section:
    """A heat map over two columns of a table that shows one of several figures.

    With `axes`, the user chooses the two columns; each cell then shows the smallest figure of its rows.
    """
    return {"kind": "heat", "id": name, "title": title, "note": note, "table": source, "across": across, "down": down,
            "figures": list(figures), "axes": list(axes)}  # fmt: skip


def links(
    name: str,
    title: str,
    note: str,
    *,
    size: tuple[int, int],
    names: Sequence[Sequence[str]],
    operations: Sequence[tuple[int, str, float, float, Sequence[Sequence[int]]]],
    first: int,
) -> Section:
    """The links of a grid of nodes, `size` columns and rows, for one operation at a time.

    `names` are the names of nodes on each network, row by row. An operation is its number, its name, the nanoseconds
    per byte on a link, its own nanoseconds, and the bytes on the links that leave each node: right, down, left and up.
    `first` is the number of the operation that is shown first.
    """
    return {"kind": "links", "id": name, "title": title, "note": note, "size": list(size), "names": list(names),
            "parts": [list(operation) for operation in operations], "first": first}  # fmt: skip


def bars(
    name: str,
    title: str,
    note: str,
    *,
    source: str,
    label: str,
    figures: Sequence[str],
    bound: str = "",
    most: int = 12,
) -> Section:
    """A bar chart of the rows of a table, the largest first, with a line at the figure `bound`."""
    return {"kind": "bars", "id": name, "title": title, "note": note, "table": source, "label": label,
            "figures": list(figures), "bound": bound, "most": most}  # fmt: skip


def lines(name: str, title: str, texts: Iterable[str]) -> Section:
    """Paragraphs."""
    return {"kind": "text", "id": name, "title": title, "lines": list(texts)}


def code(name: str, title: str, note: str, texts: Iterable[tuple[str, str]]) -> Section:
    """Named pieces of Python to paste."""
    return {"kind": "code", "id": name, "title": title, "note": note, "texts": [list(text) for text in texts]}


def document(page: Page) -> Section:
    """The whole page for JSON, without empty sections and control characters."""
    cleaned: Section = _clean({
        "title": page.title,
        "device": page.device,
        "views": [{"name": view.name, "sections": list(filter(_shows, view.sections))} for view in page.views],
        "notes": list(page.notes),
    })  # fmt: skip
    return cleaned


def _shows(section: Section) -> bool:
    content = [section[key] for key in ("rows", "marks", "parts", "lines", "texts") if key in section]
    return not content or any(content)


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, str):
        return printable_lines(short(value, LONGEST_TEXT))
    return float(format(value, DIGITS)) if isinstance(value, float) else value


def short(text: str, longest: int = LONGEST_CELL) -> str:
    """A text of at most `longest` characters; a longer text is replaced by its beginning and length."""
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text):,} characters)"
