"""Completes the docstrings of functions with texts of arguments and errors that several functions share."""

from collections.abc import Callable, Iterable, Mapping
from inspect import cleandoc, signature
from re import MULTILINE, findall
from textwrap import fill
from types import MappingProxyType
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])
COLUMNS = 116  # of a line that is made
SECTIONS = ("Attributes", "Args", "Returns", "Raises", "Examples")  # in order
RAISES: Mapping[str, str] = MappingProxyType(
    {
        "ArgumentTypeError": "An argument is unknown, missing or of the wrong type.",
        "ArgumentError": "Arguments contradict each other, or need a feature that is not simulated.",
        "DeviceError": "A tensor is on the host or was deallocated, or the device cannot run the call.",
        "OutOfMemoryError": "A buffer does not fit into the free part of its memory.",
    }
)  # of most functions; their docstrings say more where there is more to say


def parted(doc: str, section: str) -> tuple[str, str, str]:
    """A docstring before a section, the section's lines, and what comes after it."""
    before, _, rest = doc.partition(f"\n\n{section}:\n")
    lines, gap, after = rest.partition("\n\n")
    return before, lines, gap + after


def texts_of(doc: str, section: str) -> dict[str, str]:
    """The texts of a section by name."""
    found = findall(r"^    (\w+): (.*(?:\n {8}.*)*)", parted(doc, section)[1], MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


def inserted(doc: str, section: str, lines: str) -> str:
    """A docstring with a section inserted at its position among the sections."""
    behind = (doc.find(f"\n\n{name}:\n") for name in SECTIONS[SECTIONS.index(section) + 1 :])
    end = min((place for place in behind if place >= 0), default=len(doc))
    return f"{parted(doc[:end], section)[0]}\n\n{section}:\n{lines}{doc[end:]}"


def documented(doc: str, sections: Mapping[str, Mapping[str, str]], order: Iterable[str] = ()) -> str:
    """A docstring with further texts in its sections; its own texts take precedence, and `order` sorts the names."""
    text = cleandoc(doc)
    for section, texts in sections.items():
        merged = {**texts, **texts_of(text, section)}
        ranks = {name: rank for rank, name in enumerate(order or merged)}
        lines = [
            fill(f"{name}: {merged[name]}", COLUMNS, initial_indent="    ", subsequent_indent="        ")
            for name in sorted(merged, key=lambda name: ranks.get(name, len(ranks)))
        ]
        text = inserted(text, section, "\n".join(lines)) if lines else text
    return text


def described(*raises: str, like: Callable[..., object] | None = None) -> Callable[[F], F]:
    """A decorator that completes a function's docstring.

    Args:
        raises: Errors whose texts are those of `RAISES`.
        like: A function that provides the texts of arguments of the same names, and the Returns and Raises sections
            if the docstring has none.
    """
    other = cleandoc(like.__doc__ or "") if like else ""

    def complete(function: F) -> F:
        doc, parameters = cleandoc(function.__doc__ or ""), signature(function).parameters
        args = {name: text for name, text in texts_of(other, "Args").items() if name in parameters}
        errors = {name: RAISES[name] for name in raises}
        for section in ("Returns", "Raises"):
            lines = parted(other, section)[1]
            if lines and not parted(doc, section)[1]:
                doc = inserted(doc, section, lines)
        function.__doc__ = documented(documented(doc, {"Args": args}, parameters), {"Raises": errors})
        return function

    return complete
