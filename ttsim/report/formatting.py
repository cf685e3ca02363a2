"""Text of reports: names without control characters, tables that fit a width, JSON and CSV."""

import csv
import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import accumulate, zip_longest
from math import isfinite
from typing import Any, Final, Generic, TypeVar

STEERING: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories: control, formatting, lone surrogates, separators
LONGEST_FILE_NAME: Final = 80  # characters
LONGEST_NAME: Final = 40  # columns of a name in a table, which leave room for figures on a line of 80


def printable(text: str) -> str:
    """The text with control characters and line breaks escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode("ascii") if unicodedata.category(character) in STEERING else character
        for character in text
    )


def printable_lines(text: str) -> str:
    """`printable` for each line of a text."""
    return "\n".join(printable(line) for line in text.split("\n"))


def file_name(text: str) -> str:
    """The text as a portable file name; an underscore replaces any other character."""
    return re.sub(r"[^A-Za-z0-9_.-]|^[.-]", "_", text[:LONGEST_FILE_NAME]) or "_"


def short_name(text: str, longest: int = LONGEST_NAME) -> str:
    """A name for one line of a table; names of more than `longest` columns end with an ellipsis."""
    return _cut(printable(text[: longest + 1]), longest)


def short_place(text: str, longest: int = LONGEST_NAME) -> str:
    """A script location for one line of a table; long locations begin with an ellipsis and keep the line number."""
    return _cut(printable(text[-longest - 1 :])[::-1], longest)[::-1]


def cells_of(text: str) -> int:
    """The width of a text on a terminal; some characters take two columns, others none."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cut(text: str, longest: int) -> str:
    if cells_of(text) <= longest:
        return text
    end_cells = accumulate(map(_cells, text))
    return "".join(character for character, end_cell in zip(text, end_cells, strict=True) if end_cell < longest) + "…"


def _cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


RowT = TypeVar("RowT")
UNIT = re.compile(r"(?<=\d) (?=%|[mu]?s\b|cycles\b|[kKMGT]?i?B\b|[MGT]?FLOP|GHz|K blocks?\b)")  # the space before one
NO_BREAK = "\N{NO-BREAK SPACE}"
GAP = 2  # spaces between columns
LEAST_WRAPPED = 40  # least characters of a wrapped line, even on a narrower terminal


def fitted(
    rows: Sequence[Sequence[str]], width: int | None, *, words: Collection[str], least_needed: Sequence[str] = ()
) -> list[str]:
    """A plain-text table of `rows`, headings first; columns of `least_needed` are dropped until it fits `width`.

    Columns are dropped in the order of `least_needed`; with a limited width, empty columns are dropped as well; a width
    of None keeps all columns. `words` are the headings of left-aligned columns; rows may be shorter than the headings.
    """
    columns = list(zip_longest(*rows, fillvalue=""))
    if width is not None:
        columns = [column for column in columns if any(column[1:]) or len(rows) == 1]
        for name in least_needed:
            needed = sum(max(map(cells_of, column)) + GAP for column in columns) - GAP
            if needed > width:
                columns = [column for column in columns if column[0] != name]
    widths = [max(map(cells_of, column)) for column in columns]
    left = [column[0] in words for column in columns]
    return [(" " * GAP).join(map(_padded, row, widths, left)).rstrip() for row in zip(*columns, strict=True)]


@dataclass(frozen=True)
class TableColumn(Generic[RowT]):
    """A column of a table, on a terminal or on a page."""

    heading: str
    text: Callable[[RowT], str]  # The text of a row's cell
    words: bool = False  # Words stand to the left, figures to the right
    goes: int = 0  # Columns are dropped in this order if the table is too wide; 0: never


def table_lines(columns: Sequence[TableColumn[RowT]], rows: Iterable[RowT], width: int | None = None) -> list[str]:
    """A plain-text table that drops columns until it fits `width` characters; None keeps all columns."""
    cells = [[column.heading for column in columns], *([column.text(row) for column in columns] for row in rows)]
    going = sorted((column.goes, column.heading) for column in columns if column.goes)
    words = [column.heading for column in columns if column.words]
    return fitted(cells, width, words=words, least_needed=[heading for _, heading in going])


def wrapped(text: str, width: int | None, *, indent: int = 0) -> list[str]:
    """Words wrapped at `width`, with an indent below the first line and no break between a figure and its unit."""
    if width is None:
        return [text]
    first, *words = UNIT.sub(NO_BREAK, text).split(" ")
    lines, room = [first], max(width, LEAST_WRAPPED)
    for word in words:
        longer = f"{lines[-1]} {word}"
        if cells_of(longer) <= room or not lines[-1].strip():
            lines[-1] = longer
        else:
            lines.append(" " * indent + word)
    return [line.replace(NO_BREAK, " ").rstrip() for line in lines]


def terminal_width() -> int | None:
    """The width of a line: the variable COLUMNS, or the terminal's width; None if the output is not a terminal."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None


def _padded(cell: str, width: int, left: bool) -> str:
    room = " " * (width - cells_of(cell))
    return cell + room if left else room + cell


FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")  # first characters of cells that a spreadsheet runs


def text(document: dict[str, Any]) -> str:
    """Indented JSON without NaN: an infinite or undefined figure becomes null."""
    return json.dumps(plain(document), indent=1, allow_nan=False)


def csv_text(columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    """A header line, then a line for each record; unknown values are empty.

    An apostrophe precedes text that a spreadsheet would run as a formula; numbers stay numbers.
    """
    written = StringIO(newline="")
    writer = csv.DictWriter(written, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in record.items()} for record in records)
    return written.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value


def plain(value: Any) -> Any:
    """The value as JSON types."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def joined(phrases: Sequence[str]) -> str:
    """A list of phrases: a, b and c."""
    return " and ".join([", ".join(phrases[:-1]), phrases[-1]] if len(phrases) > 1 else phrases)


def counted(count: int, what: str) -> str:
    """A count with its noun: one core, 8 cores."""
    return f"one {what}" if count == 1 else f"{count:,} {what}s"


def percent(share: float) -> str:
    """A share as 12.3 %."""
    return f"{100 * share:.1f} %"


def cycles(value: float) -> str:
    """Cycles without a fraction."""
    return f"{value:,.0f}"


def time(nanoseconds: float, sign: str = "") -> str:
    """Nanoseconds in the unit with at most three digits before the point: 3.96 ms; `sign` "+" shows plus signs."""
    for unit, size in (("us", 1e3), ("ms", 1e6)):
        if abs(nanoseconds) < 999.995 * size:
            return f"{nanoseconds / size:{sign}.2f} {unit}"
    return f"{nanoseconds / 1e9:{sign},.2f} s"


def heaviest(rows: Sequence[RowT], most: int | None, weight: Callable[[RowT], float]) -> tuple[list[RowT], int]:
    """The `most` rows of the greatest weight, in order, and the number of omitted rows; None for all rows."""
    if most is None or len(rows) <= most:
        return list(rows), 0
    chosen = sorted(range(len(rows)), key=lambda at: -weight(rows[at]))[:most]
    return [rows[at] for at in sorted(chosen)], len(rows) - most


def count_of(value: float) -> str:
    """A number with a decimal prefix: 1.23 M."""
    for power, prefix in ((15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if value >= 10**power:
            return f"{value / 10**power:.3g} {prefix}"
    return f"{value:.3g} "


def by(sizes: Sequence[int]) -> str:
    """Sizes as text such as 2x3."""
    return "x".join(map(str, sizes))
