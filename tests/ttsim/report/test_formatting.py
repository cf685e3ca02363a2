"""Names, tables and words as lines of a terminal, JSON and CSV."""

from math import inf, nan

import pytest

from ttsim.report.formatting import (
    cells_of,
    csv_text,
    fitted,
    printable,
    printable_lines,
    short_name,
    short_place,
    terminal_width,
    text,
    wrapped,
)

ROWS = [("name", "a", "empty", "bb"), ("x", "123456", "", "1"), ("short",)]


def headings(width: int, rows=ROWS, **options) -> list[str]:
    return fitted(rows, width, words=(), **options)[0].split()


def test_columns_without_entries_go_anyway_and_the_least_needed_until_the_rest_fits():
    assert headings(1000) == ["name", "a", "bb"]
    least = {"least_needed": ["bb", "a"]}
    assert headings(17, **least) == ["name", "a", "bb"]  # 5 + 6 + 2, and a gap of 2 between them
    assert headings(16, **least) == ["name", "a"]
    assert headings(12, **least) == ["name"]
    assert headings(1000, ROWS[:1]) == ["name", "a", "empty", "bb"]


def test_a_table_is_fitted_by_whole_columns() -> None:
    """Words line up at the left and figures at the right; wide characters take two places."""
    rows = [("name", "a", "b"), ("層", "1,000", "22"), ("y failed",)]
    options = {"words": ("name",), "least_needed": ("b", "a")}
    assert fitted(rows, 19, **options) == ["name          a   b", "層        1,000  22", "y failed"]
    assert fitted(rows, 18, **options) == ["name          a", "層        1,000", "y failed"]
    assert fitted(rows, 3, **options) == ["name", "層", "y failed"]  # a name stays
    assert fitted(rows, None, **options) == fitted(rows, 19, **options)


def test_words_break_between_words_and_not_before_a_unit() -> None:
    words = "it takes 12.24 us, and 1,040.6 KiB of the 64 cores (12.0 %) are used by it"
    assert wrapped(words, 40, indent=2) == [
        "it takes 12.24 us, and 1,040.6 KiB of",
        "  the 64 cores (12.0 %) are used by it",
    ]
    assert wrapped("a 100 us", 2) == wrapped("a 100 us", 40)
    assert wrapped("x" * 100, 50) == ["x" * 100]
    assert wrapped("word " * 40, None) == ["word " * 40]
    assert wrapped("層" * 20 + " " + "層" * 10, 40) == ["層" * 20, "層" * 10]
    assert wrapped("", 40) == [""]
    assert wrapped("  is indented", 80) == ["  is indented"]


def test_a_pipe_has_no_width(monkeypatch) -> None:
    assert terminal_width() is None
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "93")
    assert terminal_width() == 93


def test_figures_that_json_has_not_are_null():
    assert text({"a": (1, nan), "b": {"c": -inf}}) == '{\n "a": [\n  1,\n  null\n ],\n "b": {\n  "c": null\n }\n}'


def test_a_table_has_a_line_for_each_record():
    records = [{"a": 1, "b": None}, {"b": 'x,"y"\n'}]
    assert csv_text(["b", "a"], records) == 'b,a\n,1\n"x,""y""\n",\n'
    assert csv_text([], []) == "\n"


def test_no_cell_is_a_formula_and_numbers_stay_numbers():
    texts = ["=cmd|' /C calc'!A0", "+1", "-x", "@sum", "\tx", "a=b"]
    assert csv_text(["a"], [{"a": one} for one in texts]) == "a\n'=cmd|' /C calc'!A0\n'+1\n'-x\n'@sum\n'\tx\na=b\n"
    assert csv_text(["a", "b"], [{"a": -1, "b": -1.5}]) == "a,b\n-1,-1.5\n"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("plain [red]", "plain [red]"),
        ("a\nb\r\x1b[0m\x00", "a\\nb\\r\\x1b[0m\\x00"),
        ("\u202e\u2028\u2029\ud800", "\\u202e\\u2028\\u2029\\ud800"),
        ("é層", "é層"),
    ],
)
def test_what_steers_is_written_out(name: str, written: str) -> None:
    assert printable(name) == written


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
    assert [cells_of(name) for name in ("ab", "e\u0301", "層", "é")] == [2, 1, 2, 1]
