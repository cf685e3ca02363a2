"""Charts: hand-worked scales, and every chart byte for byte as in `charts.svg` (TTSIM_APPROVE=1 writes it anew)."""

import os
from pathlib import Path

import pytest

from tools.charts import Bars, Dot, Scale, Scatter, cut, number, scale_of, to_svg

APPROVED = Path(__file__).with_name("charts.svg")


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


def test_ticks_and_shares():
    assert Scale(low=0, high=400).ticks() == [0, 100, 200, 300, 400]
    assert Scale(low=-4, high=4).ticks() == [-4, -2, 0, 2, 4]
    assert Scale(low=20, high=5000, logarithmic=True).ticks() == [20, 50, 100, 200, 500, 1000, 2000, 5000]
    assert Scale(low=1, high=1e7, logarithmic=True).ticks() == [10.0**power for power in range(8)]
    assert (Scale(low=2, high=10).share(4), Scale(low=1, high=10000, logarithmic=True).share(10)) == (0.25, 0.25)


def test_numbers_and_names():
    texts = ["0", "0.05", "12.35", "1,234", "5M", "2.5G"]
    assert [number(value) for value in (0, 0.05, 12.3456, 1234.5, 5_000_000, 2.5e9)] == texts
    assert (cut("short", 100), cut("a_long_name_of_a_layer", 70), len(cut("x" * 40, 1))) == ("short", "a_lo…layer", 4)


BARS = Bars(title="bars", value_name="us", groups=("g", "h"), series=(("s", (1.0, 4.0)), ("t", (None, 2.0))))
DOTS = tuple(Dot(x=x, y=y, name=f"{x}") for x, y in ((3, 1), (1, 3), (2, 2), (3, 3)))
CHARTS = (
    BARS,
    Bars(title="keys that wrap", value_name="us", groups=("g" * 200,),
         series=tuple((f"series number {at}", (float(at - 3),)) for at in range(12))),
    Scatter(title="dots", x_name="us", y_name="KiB", dots=DOTS),
    Scatter(title="a & b", x_name="us", y_name="KiB", dots=(*DOTS, Dot(x=900, y=0.5, name="far", series="other"))),
    Bars(title="t", value_name="us", groups=("g",), series=(("s", (None,)),)),
    Scatter(title="t", x_name="x", y_name="y", dots=()),
)  # fmt: skip


def test_every_chart_is_as_approved():
    text = to_svg(CHARTS)
    if os.environ.get("TTSIM_APPROVE"):
        APPROVED.write_text(text, encoding="utf-8")
    assert text == APPROVED.read_text(encoding="utf-8")
