from xml.etree import ElementTree

import pytest

from ttsim.study.plots import (
    COLORS,
    WIDTH,
    Bars,
    Dot,
    HeatMap,
    Scale,
    Scatter,
    color,
    cut,
    key,
    number,
    scale_of,
    to_html,
    to_svg,
)


@pytest.mark.parametrize(
    ("values", "from_zero", "low", "high", "logarithmic"),
    [
        ([1.0, 9.0], False, 0, 10, False),
        ([110.0, 390.0], True, 0, 400, False),
        ([-3.0, 4.0], True, -4, 4, False),
        ([7.0], False, 2, 12, False),
        ([0.0], True, 0, 1, False),
        ([0.0], False, -1, 1, False),
        ([30.0, 4000.0], False, 20, 5000, True),
        ([1.0, 1000.0], False, 1, 1000, True),
        ([-1.0, 1000.0], False, -200, 1000, False),
    ],
)
def test_ends_are_round(values, from_zero, low, high, logarithmic):
    result = scale_of(values, from_zero=from_zero)
    assert (result.low, result.high, result.logarithmic) == (pytest.approx(low), pytest.approx(high), logarithmic)
    assert all(0 <= result.share(value) <= 1 for value in values)


def test_ticks():
    assert Scale(low=0, high=400).ticks() == [0, 100, 200, 300, 400]
    assert Scale(low=-4, high=4).ticks() == [-4, -2, 0, 2, 4]
    assert Scale(low=20, high=5000, logarithmic=True).ticks() == [20, 50, 100, 200, 500, 1000, 2000, 5000]
    assert Scale(low=1, high=1e7, logarithmic=True).ticks() == [10.0**power for power in range(8)]


def test_shares():
    assert Scale(low=2, high=10).share(4) == 0.25
    assert Scale(low=1, high=10000, logarithmic=True).share(10) == 0.25


def test_numbers():
    assert [number(value) for value in (0, 0.05, 12.3456, 1234.5, 5_000_000, 2.5e9)] == [
        "0", "0.05", "12.35", "1,234", "5M", "2.5G"
    ]  # fmt: skip


def test_names_are_cut_in_their_middle():
    assert cut("short", 100) == "short"
    assert cut("a_long_name_of_a_layer", 70) == "a_lo…layer"
    assert len(cut("x" * 40, 1)) == 4


def test_keys_wrap():
    assert key(["one"], 10) == ("", 0)
    assert color(COLORS) == color(0) == "color0"
    markup, height = key([f"series number {at}" for at in range(12)], 10)
    assert height == 18 * 2 + 6
    assert markup.count("<rect") == 12


def test_documents_stack_charts_and_escape_texts():
    charts = [Scatter(title=title, x_name="x", y_name="y", dots=()) for title in ("<b>", "a & b")]
    tree = ElementTree.fromstring(to_svg(charts))
    assert (tree.get("width"), tree.get("height")) == (str(WIDTH), "148")
    groups = [one for one in tree if one.tag.endswith("}g")]
    assert [group.get("transform") for group in groups] == ["translate(0 0)", "translate(0 74)"]
    assert groups[0][0].text == "<b>"
    page = to_html("<i>", charts)
    assert page.startswith("<!DOCTYPE html>")
    assert "<title>&lt;i&gt;</title>" in page
    assert page.count("<svg") == page.count("<figure>") == 2
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


MAP = HeatMap(
    title="map", x_name="x", y_name="y", columns=("1", "2"), rows=("a", "b"), cells=((1.0, 2.0), (None, 9.0)), unit="us"
)
BARS = Bars(title="bars", value_name="us", groups=("g", "h"), series=(("s", (1.0, 4.0)), ("t", (None, 2.0))))
DOTS = Scatter(
    title="dots",
    x_name="us",
    y_name="KiB",
    dots=tuple(Dot(x=x, y=y, name=f"{x}") for x, y in ((3, 1), (1, 3), (2, 2), (3, 3))),
)


def found(chart, kind):
    return [one for one in ElementTree.fromstring(to_svg([chart])).iter() if one.tag.endswith("}" + kind)]


def told(chart, kind):
    return [one[0].text for one in found(chart, kind) if len(one)]


def test_a_heat_map_has_a_cell_for_each_value():
    cells = [one for one in found(MAP, "rect") if len(one)]
    assert [cell[0].text for cell in cells] == [
        "x 1, y a: 1 us",
        "x 2, y a: 2 us",
        "x 1, y b: does not run",
        "x 2, y b: 9 us",
    ]
    shades = [float(cell.get("fill-opacity")) for cell in cells if cell.get("class") == "cell"]
    assert shades == [pytest.approx(0.08 + 0.87 * value / 10, abs=1e-3) for value in (1, 2, 9)]
    assert "us, least 1" in [one.text for one in found(MAP, "text")]


def test_bars_are_as_high_as_their_values():
    bars = [one for one in found(BARS, "rect") if len(one) and ":" in one[0].text]
    assert [bar[0].text for bar in bars] == ["g, s: 1", "h, s: 4", "h, t: 2"]
    heights = [float(bar.get("height")) for bar in bars]
    assert heights == [60, 240, 120]
    assert {float(bar.get("y")) + float(bar.get("height")) for bar in bars} == {float(bars[0].get("y")) + 60}


def test_a_line_joins_what_nothing_beats():
    dots = found(DOTS, "circle")
    assert told(DOTS, "circle")[0] == "3: 3 us, 1 KiB"
    assert [dot.get("r") for dot in dots] == ["5", "5", "5", "3"]
    (front,) = found(DOTS, "polyline")
    places = [f"{dots[at].get('cx')},{dots[at].get('cy')}" for at in (1, 2, 0)]
    assert front.get("points") == " ".join(places)


@pytest.mark.parametrize(
    "chart",
    [
        HeatMap(title="t", x_name="x", y_name="y", columns=("1",), rows=("a",), cells=((None,),)),
        Bars(title="t", value_name="us", groups=("g",), series=(("s", (None,)),)),
        Scatter(title="t", x_name="x", y_name="y", dots=()),
    ],
)
def test_a_chart_without_values_says_so(chart):
    assert [one.text for one in found(chart, "text")] == ["t", "nothing to show: no value is known"]
