"""Elements of a document. Every text that is not `Markup` is escaped here, once."""

from collections.abc import Iterable
from html import escape
from typing import NewType

from ttsim.report.formatting import printable, printable_lines
from ttsim.report.sections import short

Markup = NewType("Markup", str)


def text(value: str) -> Markup:
    """A text of several lines."""
    return Markup(escape(printable_lines(value)))


def label(value: str) -> Markup:
    """A name, on one line."""
    return Markup(escape(printable(short(value))))


def tag(name: str, *children: Markup, **attributes: object) -> Markup:
    """An element; `class_` is its class, other underscores are hyphens."""
    attribute_text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{label(str(value))}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{attribute_text}>{''.join(children)}</{name}>")


def joined(elements: Iterable[Markup]) -> Markup:
    """Elements one after the other."""
    return Markup("\n".join(element for element in elements if element))
