"""Columns of tables in plain characters: which fit a width (whole ones go, no figure is cut), and how they line up."""

import re
import shutil
import sys
from collections.abc import Collection, Sequence

from ttsim.report.printable import cells_of

UNIT = re.compile(r"(?<=\d) (?=%|us\b|cycles\b|[kKMGT]?i?B\b|[MGT]?FLOP|GHz|K blocks?\b)")  # the space in front of one
NO_BREAK = "\N{NO-BREAK SPACE}"
GAP = 2  # spaces between columns
LEAST_WRAPPED = 40  # characters of a line of words, on a terminal that is narrower than that


def fitting_columns(
    rows: Sequence[Sequence[str]], width: int, *, gap: int, edge: int = 0, least_needed: Sequence[int] = ()
) -> list[int]:
    """Columns to show, in order; those without any entry below their heading are left out anyway.

    Args:
        rows: The cells as they show, the headings first; a row may be shorter than the table.
        width: Characters of a line.
        gap: What a column takes besides its cells.
        edge: What the table takes besides its columns; below 0, what it saves.
        least_needed: Columns that may go, in this order.
    """
    count = len(rows[0])
    kept = [at for at in range(count) if any(row[at] for row in rows[1:] if at < len(row)) or len(rows) == 1]
    widths = [max(cells_of(row[at]) for row in rows if at < len(row)) + gap for at in range(count)]
    for at in least_needed:
        if sum(widths[one] for one in kept) + edge <= width:
            break
        if at in kept:
            kept.remove(at)
    return kept


def aligned(rows: Sequence[Sequence[str]], *, words: Collection[int]) -> list[str]:
    """A table in plain characters, a line for each row: columns of words to the left, all others to the right.

    Args:
        rows: The cells, the headings first.
        words: Numbers of the columns that hold words.
    """
    widths = [max(map(cells_of, column)) for column in zip(*rows, strict=True)]
    return [
        (" " * GAP)
        .join(_padded(cell, width, left=at in words) for at, (cell, width) in enumerate(zip(row, widths, strict=True)))
        .rstrip()
        for row in rows
    ]


def fitted(
    rows: Sequence[Sequence[str]], width: int | None, *, words: Collection[str], least_needed: Sequence[str] = ()
) -> list[str]:
    """A table in plain characters whose columns go, whole and the least needed first, until it fits.

    Args:
        rows: The cells, the headings first; a row may be shorter than the table.
        width: Characters of a line; None: all columns stay.
        words: Headings of the columns that hold words.
        least_needed: Headings of the columns that may go, in this order.
    """
    headings = list(rows[0])
    kept = list(range(len(headings)))
    if width is not None:
        may_go = [headings.index(name) for name in least_needed]
        kept = fitting_columns(rows, width, gap=GAP, edge=-GAP, least_needed=may_go)
    shown = [[row[at] if at < len(row) else "" for at in kept] for row in rows]
    return aligned(shown, words=[at for at, column in enumerate(kept) if headings[column] in words])


def wrapped(text: str, width: int | None, *, indent: int = 0) -> list[str]:
    """A line of words as lines that fit, broken between words only, and not between figure and unit.

    Args:
        width: Characters of a line; None: it stays one line.
        indent: Spaces in front of every line but the first.
    """
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
    """Characters of a line where output goes to a terminal; None elsewhere, where nothing need be left out."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None


def _padded(cell: str, width: int, *, left: bool) -> str:
    room = " " * (width - cells_of(cell))
    return cell + room if left else room + cell
