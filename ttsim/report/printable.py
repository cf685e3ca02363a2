"""Text of a user's own, such as names, without the characters that would steer a terminal."""

import unicodedata
from typing import Final

STEERING: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories of Unicode


def printable(text: str) -> str:
    """The text with control, formatting, line separating and lone surrogate characters written out by their numbers."""
    return "".join(_written(one) if unicodedata.category(one) in STEERING else one for one in text)


def printable_lines(text: str) -> str:
    """The same, line by line."""
    return "\n".join(printable(line) for line in text.split("\n"))


def _written(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
