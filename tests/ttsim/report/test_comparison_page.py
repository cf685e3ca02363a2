"""The page of a comparison, by hand: the reports of test_comparison."""

import pytest

from tests.ttsim.report.test_comparison import AFTER, BEFORE, HALO, report
from tests.ttsim.report.test_pages import column, sections
from ttsim.report.comparison import compare
from ttsim.report.comparison_page import page_of_comparison


def test_the_first_screen_says_what_changed_by_how_much():
    page = page_of_comparison(compare(BEFORE, AFTER), ("old.json", "new.json"))
    shown = sections(page)
    assert list(shown) == ["verdict", "gain", "picture", "timeline", "kinds", "operations"]
    assert page.title == "new.json against old.json"
    assert (shown["verdict"]["state"], shown["verdict"]["text"]) == (
        "slow", "Takes 26.0 % more time: 0.50 us -> 0.63 us.",
    )  # fmt: skip
    assert {name: figure for name, figure, _ in shown["verdict"]["facts"]} == {
        "before": 500, "after": 630, "difference": 130, "of before": 0.26, "operations in both": 3,
        "of them the same": 2, "only after": 1,
    }  # fmt: skip
    assert shown["gain"]["text"] == "Changed most: #2 Conv takes 0.10 us more"
    assert shown["gain"]["detail"].startswith("0.40 us -> 0.50 us. 8 -> 4 cores, bound by math -> reader")
    backward = sections(page_of_comparison(compare(AFTER, BEFORE)))
    assert backward["verdict"]["state"] == "good"
    same = sections(page_of_comparison(compare(BEFORE, BEFORE)))
    assert (same["verdict"]["state"], same["gain"]["text"]) == ("known", "No operation takes another time.")


def test_operations_of_both_reports_lie_over_one_another_and_in_one_table():
    shown = sections(page_of_comparison(compare(BEFORE, AFTER)))
    assert [mark[:6] for mark in shown["timeline"]["parts"][0]["marks"]] == [
        [0, 100, 0, 1, "Halo", 0], [0, 100, 1, 2, "Halo", 0], [100, 130, 1, 2, "Pad", 1],
        [100, 500, 0, 1, "Conv", 2], [130, 630, 1, 2, "Conv", 2],
    ]  # fmt: skip
    assert column(shown["operations"], "before") == [100, None, 400, None]
    assert column(shown["operations"], "difference") == [0, 30, 100, 0]
    assert column(shown["operations"], "cycles after") == [100, 30, 500, None]
    assert column(shown["operations"], "what differs")[1] == "only after"
    assert column(shown["kinds"], "operation") == ["Conv", "Pad", "Halo", "Move"]
    assert shown["kinds"]["ops"][0] == [2, 2]


@pytest.mark.parametrize(("clock_hz", "after"), [(500_000_000, 100), (0, 100)])
def test_reports_of_two_clocks_are_compared_in_nanoseconds(clock_hz, after):
    shown = sections(page_of_comparison(compare(report(HALO), report(HALO, clock_hz=clock_hz))))
    assert column(shown["operations"], "after") == [after]
    assert "cycles after" not in [column["name"] for column in shown["operations"]["columns"]]
