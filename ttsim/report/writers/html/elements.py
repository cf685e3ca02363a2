"""Elements of a page. Every text that is not `Markup` is escaped here, once."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NewType

from ttsim.report.formatting import RowT, TableColumn, printable, printable_lines

Markup = NewType("Markup", str)
LONGEST_LABEL: Final = 120  # characters; longer names are cut, since a page shows each many times
SHORT_CELL: Final = 40  # characters that stay on one line
LONGEST_TEXT: Final = 20_000
LONGEST_HINT: Final = 400  # characters of a hint


def text(value: str) -> Markup:
    """A text of several lines."""
    return Markup(escape(printable_lines(_cut(value, LONGEST_TEXT))))


def label(value: str) -> Markup:
    """A name, on one line."""
    return Markup(escape(printable(_cut(value, LONGEST_LABEL))))


def short(name: str) -> str:
    """A name within a longer text, cut to `LONGEST_LABEL` characters."""
    return name if len(name) <= LONGEST_LABEL else f"{name[:LONGEST_LABEL]}..."


def hint(value: str) -> Markup:
    """The hint of a part of a picture, as its first child."""
    return tag("title", Markup(escape(printable(_cut(value, LONGEST_HINT)))))


def picture(name: str, *children: Markup) -> Markup:
    """A picture with its axes and keys; `script` shows the hints of its parts."""
    return tag("div", *(child for child in children if child), class_="picture", role="group", aria_label=name)


def image(name: str, *children: Markup, **attributes: object) -> Markup:
    """A drawing that is one image to screen readers, with all its parts."""
    return tag("svg", tag("g", *children, aria_hidden="true"), role="img", aria_label=name, **attributes)


def tag(name: str, *children: Markup, **attributes: object) -> Markup:
    """An element; `class_` is its class, other underscores are hyphens."""
    attribute_text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{label(str(value))}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{attribute_text}>{''.join(children)}</{name}>")


def joined(elements: Iterable[Markup]) -> Markup:
    """Elements one after the other."""
    return Markup("\n".join(element for element in elements if element))


def lines(texts: Iterable[str]) -> Markup:
    """A paragraph for each line."""
    return joined(tag("p", text(line)) for line in texts)


def section(heading: str, *children: Markup) -> Markup:
    """A section under a heading; empty without children."""
    if not any(children):
        return Markup("")
    return tag("section", tag("h3", text(heading)), joined(child for child in children if child))


def more(heading: str, content: Markup) -> Markup:
    """A collapsed section; empty without content."""
    if not content:
        return Markup("")
    return tag("details", tag("summary", text(heading)), content)


def table(caption: str, columns: Sequence[TableColumn[RowT]], rows: Iterable[RowT]) -> Markup:
    """A table with its own scrollbar; columns without any entry are left out."""
    cells = [[column.text(row) for column in columns] for row in rows]
    filled = [at for at in range(len(columns)) if any(row[at] for row in cells)]
    if not filled:
        return Markup("")
    words = [at for at, column in enumerate(columns) if column.words]
    sides = {at: "words" if at in words else "figures" for at in filled}
    named = next((at for at in filled if at in words), filled[0])  # the column that names a row
    head = tag("tr", *(tag("th", text(columns[at].heading), scope="col", class_=sides[at]) for at in filled))
    body = (tag("tr", *(_cell(row[at], sides[at], heads_row=at == named) for at in filled)) for row in cells)
    whole = tag("table", tag("caption", text(caption)), tag("thead", head), tag("tbody", joined(body)))
    return tag("div", whole, class_="wide", tabindex=0, role="region", aria_label=caption)


def share(value: float) -> str:
    """A share as a length in a picture."""
    return f"{100 * value:.4f}%"


def _cell(value: str, side: str, *, heads_row: bool) -> Markup:
    kind = f"{side} long" if len(value) > SHORT_CELL and side == "words" else side
    return tag("th", label(value), scope="row", class_=kind) if heads_row else tag("td", label(value), class_=kind)


def _cut(value: str, longest: int) -> str:
    return value if len(value) <= longest else f"{value[:longest]}... ({len(value):,} characters)"
