"""Columns of tables in plain characters: which fit a width (whole ones go, no figure is cut), and how they line up."""

from collections.abc import Collection, Sequence


def fitting_columns(
    rows: Sequence[Sequence[str]], width: int, *, gap: int, edge: int = 0, least_needed: Sequence[int] = ()
) -> list[int]:
    """Columns to show, in order; those without any entry below their heading are left out anyway.

    Args:
        rows: The cells as they show, the headings first; a row may be shorter than the table.
        width: Characters of a line.
        gap: What a column takes besides its cells.
        edge: What the table takes besides its columns.
        least_needed: Columns that may go, in this order.
    """
    count = len(rows[0])
    kept = [at for at in range(count) if any(row[at] for row in rows[1:] if at < len(row)) or len(rows) == 1]
    widths = [max(len(row[at]) for row in rows if at < len(row)) + gap for at in range(count)]
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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if at in words else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
