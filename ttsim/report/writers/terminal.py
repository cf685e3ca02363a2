"""Lines on a terminal: words break where it ends, and nothing in them is markup, or steers it."""

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from ttsim.report.columns import wrapped
from ttsim.report.printable import printable_lines


def say(console: Console, text: str, *, indent: int = 0, style: str = "") -> None:
    """Words, over as many lines as they need.

    Args:
        text: The words; lines of their own stay so.
        indent: Spaces in front of every line but the first.
        style: How all of it looks.
    """
    for line in printable_lines(text).split("\n"):
        show(console, wrapped(line, console.width, indent=indent), style=style)


def show(console: Console, lines: Iterable[str], *, style: str = "") -> None:
    """Lines as they are, such as those of a table."""
    for line in lines:
        console.print(escape(line), highlight=False, soft_wrap=True, style=style or None)


def escaped(text: str) -> str:
    """A text as a cell of a table shows it: nothing in it is markup, or steers the terminal."""
    return escape(printable_lines(text))
