"""How shells and notebooks show objects: a headline, and an HTML table."""

from collections.abc import Container, Sequence
from html import escape


class Headed:
    """An object that a shell shows by its headline."""

    __slots__ = ()

    @property
    def headline(self) -> str:
        """A summary of the object in one line."""
        raise NotImplementedError

    def __repr__(self) -> str:
        kind = next(base for base in type(self).__mro__ if "headline" in vars(base))
        return f"<{kind.__name__}: {self.headline}>"


def html_table(rows: Sequence[Sequence[str]], *, words: Container[str] = (), caption: str = "") -> str:
    """Rows of cells as an HTML table; the first row has the headings, and `words` names the text columns."""
    left = ["left" if heading in words else "right" for heading in rows[0]]

    def line(cells: Sequence[str], kind: str) -> str:
        columns = zip(cells, left, strict=True)
        return "".join(f'<{kind} style="text-align: {side}">{escape(cell)}</{kind}>' for cell, side in columns)

    head, *body = rows
    lines = "".join(f"<tr>{line(cells, 'td')}</tr>" for cells in body)
    title = f'<caption style="text-align: left">{escape(caption)}</caption>' if caption else ""
    return f"<table>{title}<thead><tr>{line(head, 'th')}</tr></thead><tbody>{lines}</tbody></table>"
