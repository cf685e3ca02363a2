from xml.etree import ElementTree

import pytest

from ttsim.study.plots import Bars, Dot, HeatMap, Scatter, to_html, to_svg

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
    assert [one[0].text for one in cells] == [
        "x 1, y a: 1 us",
        "x 2, y a: 2 us",
        "x 1, y b: does not run",
        "x 2, y b: 9 us",
    ]
    shades = [float(one.get("fill-opacity")) for one in cells if one.get("class") == "cell"]
    assert shades == [pytest.approx(0.08 + 0.87 * value / 10, abs=1e-3) for value in (1, 2, 9)]
    assert "us, least 1" in [one.text for one in found(MAP, "text")]


def test_bars_are_as_high_as_their_values():
    bars = [one for one in found(BARS, "rect") if len(one) and ":" in one[0].text]
    assert [one[0].text for one in bars] == ["g, s: 1", "h, s: 4", "h, t: 2"]
    heights = [float(one.get("height")) for one in bars]
    assert heights == [60, 240, 120]
    assert {float(one.get("y")) + float(one.get("height")) for one in bars} == {float(bars[0].get("y")) + 60}


def test_a_line_joins_what_nothing_beats():
    dots = found(DOTS, "circle")
    assert told(DOTS, "circle")[0] == "3: 3 us, 1 KiB"
    assert [one.get("r") for one in dots] == ["5", "5", "5", "3"]
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


def test_the_same_bytes_for_the_same_figures():
    charts = [MAP, BARS, DOTS]
    assert to_svg(charts) == to_svg(charts)
    assert to_html("all", charts).count("<figure>") == 3
