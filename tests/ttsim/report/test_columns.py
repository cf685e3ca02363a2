from ttsim.report.columns import aligned, fitting_columns

ROWS = [("name", "a", "empty", "bb"), ("x", "123456", "", "1"), ("short",)]


def test_columns_without_entries_go_anyway():
    assert fitting_columns(ROWS, 1000, gap=1) == [0, 1, 3]


def test_the_least_needed_go_until_the_rest_fits():
    assert fitting_columns(ROWS, 16, gap=1, least_needed=[3, 1]) == [0, 1, 3]  # 5 + 6 + 2, and a gap for each
    assert fitting_columns(ROWS, 15, gap=1, least_needed=[3, 1]) == [0, 1]
    assert fitting_columns(ROWS, 12, gap=1, least_needed=[3, 1]) == [0]


def test_headings_alone_are_kept():
    assert fitting_columns(ROWS[:1], 1000, gap=1) == [0, 1, 2, 3]


def test_words_line_up_at_the_left_and_figures_at_the_right() -> None:
    assert aligned([("name", "B"), ("a", "1,000"), ("", "7")], words=(0,)) == [
        "name      B",
        "a     1,000",
        "          7",
    ]
