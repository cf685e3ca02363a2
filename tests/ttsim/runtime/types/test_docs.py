"""Docstrings that are completed from texts of others."""

import inspect

from ttsim.runtime.types.docs import RAISES, described, documented, inserted, parted, texts_of

DOC = """What it is.

Args:
    size: Rows,
        or columns.

Examples:
    >>> 1
"""


def test_sections_are_read_and_put_in_their_order() -> None:
    assert texts_of(DOC, "Args") == {"size": "Rows, or columns."}
    assert parted(DOC, "Raises") == (DOC, "", "")
    longer = inserted(DOC, "Returns", "    All.")
    assert [line for line in longer.splitlines() if line.endswith(":")] == ["Args:", "Returns:", "Examples:"]
    assert inserted(longer, "Returns", "    None.").count("Returns:") == 1


def test_own_texts_precede_and_names_stand_in_order() -> None:
    text = documented(DOC, {"Args": {"size": "Another.", "around": "Zeros."}}, ("around", "size"))
    assert list(texts_of(text, "Args").items()) == [("around", "Zeros."), ("size", "Rows, or columns.")]
    assert "\n\n".join(parted(text, "Args")[::2]) == "What it is.\n\n\n\nExamples:\n    >>> 1"


def test_a_function_has_the_texts_of_another() -> None:
    def first(size: int, around: int) -> int:
        """Returns:
        None.
        """
        return size + around

    first.__doc__ = "It.\n\nArgs:\n    size: Rows.\n    around: Zeros.\n\nReturns:\n    A sum.\n\nRaises:\n    E: No."

    @described("ArgumentError")
    def second(around: int, shape: int) -> int:
        """Another.

        Args:
            shape: Sides.

        Examples:
            >>> 2
        """
        return around

    third = described(like=first)(second)
    text = inspect.getdoc(third) or ""
    assert list(texts_of(text, "Args").items()) == [("around", "Zeros."), ("shape", "Sides.")]
    assert parted(text, "Returns")[1] == "    A sum."
    assert texts_of(text, "Raises") == {"ArgumentError": RAISES["ArgumentError"]}
    assert parted(text, "Examples")[1] == "    >>> 2"
