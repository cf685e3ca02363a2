"""Names as lines of a terminal show them."""

import pytest

from ttsim.report.formatting import cells_of, printable, printable_lines, short_name, short_place


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain [red]", "plain [red]"),
        ("a\nb\r\x1b[0m\x00", "a\\nb\\r\\x1b[0m\\x00"),
        ("\u202e\u2028\u2029\ud800", "\\u202e\\u2028\\u2029\\ud800"),
        ("é層", "é層"),
    ],
)
def test_what_steers_is_written_out(text: str, written: str) -> None:
    assert printable(text) == written


def test_lines_of_a_text_stay() -> None:
    assert printable_lines("a\x1b\nb\r") == "a\\x1b\nb\\r"


def test_a_name_is_cut_to_places_of_a_line() -> None:
    assert short_name("abcdef", 6) == "abcdef"
    assert short_name("abcdefg", 6) == "abcde…"
    assert short_name("層層層", 6) == "層層層"
    assert short_name("層層層層", 6) == "層層…"  # five places: a character takes two
    assert short_name("a\nb\nc", 6) == "a\\nb\\…"
    assert cells_of(short_name("x" * 10_000)) == 40


def test_a_place_keeps_its_line() -> None:
    assert short_place("folder/script.py:123", 20) == "folder/script.py:123"
    assert short_place("folder/script.py:123", 9) == "…t.py:123"


def test_marks_take_no_place_and_wide_characters_two() -> None:
    assert [cells_of(text) for text in ("ab", "e\u0301", "層", "é")] == [2, 1, 2, 1]
