"""Text of a user's own, such as names, without the characters that would steer a terminal."""

import unicodedata
from itertools import accumulate
from typing import Final

STEERING: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories: control, formatting, lone surrogates, separators
LONGEST_NAME: Final = 40  # places of a name in a table: it leaves room for figures on a line of 80


def printable(text: str) -> str:
    """The text with characters that steer a terminal, or break a line, written out by their numbers."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_written(one) if unicodedata.category(one) in STEERING else one for one in text)


def printable_lines(text: str) -> str:
    """The same, line by line."""
    return "\n".join(printable(line) for line in text.split("\n"))


def short_name(text: str, longest: int = LONGEST_NAME) -> str:
    """A name on one line of a table: what is too long ends in an ellipsis.

    Args:
        longest: Places of the line that it may take.
    """
    return _cut(printable(text[: longest + 1]), longest)


def short_place(text: str, longest: int = LONGEST_NAME) -> str:
    """A place in a script on one line of a table: what is too long begins with an ellipsis, its end has the line."""
    return _cut(printable(text[-longest - 1 :])[::-1], longest)[::-1]


def cells_of(text: str) -> int:
    """How many places of a line a text takes: some characters take two, others none of their own."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cut(text: str, longest: int) -> str:
    if cells_of(text) <= longest:
        return text
    ends = accumulate(map(_cells, text))
    return "".join(one for one, end in zip(text, ends, strict=True) if end < longest) + "…"


def _cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _written(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
