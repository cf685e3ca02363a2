"""Which columns of a table fit a width: whole columns go, the least needed first, so that no figure is ever cut."""

from collections.abc import Sequence


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
