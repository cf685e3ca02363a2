"""Names, tables and words as lines of a terminal, JSON and CSV."""

from math import inf, nan

import pytest

from ttsim.report.formatting import (
    cells_of,
    count_of,
    csv_text,
    fitted,
    heaviest,
    printable,
    printable_lines,
    short_name,
    short_place,
    terminal_width,
    text,
    time,
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


def test_a_pipe_has_no_width() -> None:
    assert terminal_width() is None  # of a terminal: test_cycles


def test_json_has_no_nan_and_csv_no_formula():
    assert text({"a": (1, nan), "b": {"c": -inf}}) == '{\n "a": [\n  1,\n  null\n ],\n "b": {\n  "c": null\n }\n}'
    assert csv_text(["b", "a"], [{"a": 1, "b": None}, {"b": 'x,"y"\n'}]) == 'b,a\n,1\n"x,""y""\n",\n'
    texts = ["=cmd|' /C calc'!A0", "+1", "-x", "@sum", "\tx", "a=b"]
    assert csv_text(["a"], [{"a": cell} for cell in texts]) == "a\n'=cmd|' /C calc'!A0\n'+1\n'-x\n'@sum\n'\tx\na=b\n"
    assert csv_text(["a", "b"], [{"a": -1, "b": -1.5}]) == "a,b\n-1,-1.5\n"  # numbers stay numbers


@pytest.mark.parametrize(
    ("function", "given", "written"),
    [
        (printable, ["plain [red]"], "plain [red]"),
        (printable, ["a\nb\r\x1b[0m\x00"], "a\\nb\\r\\x1b[0m\\x00"),
        (printable, ["\u202e\u2028\u2029\ud800é層"], "\\u202e\\u2028\\u2029\\ud800é層"),
        (printable_lines, ["a\x1b\nb\r"], "a\\x1b\nb\\r"),
        (short_name, ["abcdef", 6], "abcdef"),
        (short_name, ["abcdefg", 6], "abcde…"),
        (short_name, ["層層層", 6], "層層層"),
        (short_name, ["層層層層", 6], "層層…"),  # five places: a character takes two
        (short_name, ["a\nb\nc", 6], "a\\nb\\…"),
        (short_name, ["x" * 10_000], "x" * 39 + "…"),
        (short_place, ["folder/script.py:123", 20], "folder/script.py:123"),
        (short_place, ["folder/script.py:123", 9], "…t.py:123"),
        (cells_of, ["ab"], 2), (cells_of, ["e\u0301"], 1), (cells_of, ["層"], 2), (cells_of, ["é"], 1),
        (count_of, [999], "999 "), (count_of, [1000], "1 k"), (count_of, [1.5e6], "1.5 M"), (count_of, [2e9], "2 G"),
        (count_of, [3.25e12], "3.25 T"), (count_of, [4e15], "4 P"),
    ],
)  # fmt: skip
def test_names_fit_a_line_and_steer_nothing(function, given, written) -> None:
    assert function(*given) == written


def test_the_heaviest_rows_stay_in_order():
    assert heaviest([5, 9, 1, 8, 7], 3, float) == ([9, 8, 7], 2)
    assert heaviest([5, 9], None, float) == heaviest([5, 9], 2, float) == ([5, 9], 0)


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [
        (0, "0.00 us"),
        (115_672, "115.67 us"),
        (999_994, "999.99 us"),
        (999_996, "1.00 ms"),
        (3_959_050, "3.96 ms"),
        (1.5e9, "1.50 s"),
        (1.5e12, "1,500.00 s"),
    ],
)
def test_times_have_the_unit_of_their_size(nanoseconds, shown):
    assert time(nanoseconds) == shown
    assert time(-nanoseconds, "+") == (f"-{shown}" if nanoseconds else "+0.00 us")
