from ttsim.report.formatting import aligned, fitted, terminal_width, wrapped

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


def test_words_line_up_at_the_left_and_figures_at_the_right() -> None:
    assert aligned([("name", "B"), ("a", "1,000"), ("", "7")], words=(0,)) == [
        "name      B",
        "a     1,000",
        "          7",
    ]


def test_wide_characters_take_two_places() -> None:
    assert aligned([("name", "B"), ("層層層", "7")], words=(0,)) == ["name    B", "層層層  7"]


def test_a_table_is_fitted_by_whole_columns() -> None:
    rows = [("name", "a", "b"), ("x", "1,000", "22"), ("y failed",)]
    options = {"words": ("name",), "least_needed": ("b", "a")}
    assert fitted(rows, 19, **options) == ["name          a   b", "x         1,000  22", "y failed"]
    assert fitted(rows, 18, **options) == ["name          a", "x         1,000", "y failed"]
    assert fitted(rows, 3, **options) == ["name", "x", "y failed"]  # a name stays
    assert fitted(rows, None, **options) == fitted(rows, 19, **options)


def test_words_break_between_words_and_not_before_a_unit() -> None:
    text = "it takes 12.24 us, and 1,040.6 KiB of the 64 cores (12.0 %) are used by it"
    assert wrapped(text, 40, indent=2) == [
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
