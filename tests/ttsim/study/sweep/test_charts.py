import pytest

from device.errors import ArgumentError
from ttsim.study.store import Row, Verdict
from ttsim.study.sweep import SweepResult, axes_of, charts_of, write_plot


def sample(layer, device, a, b, cycles, peak=1024):
    verdict = Verdict.DOES_NOT_FIT if cycles is None else Verdict.FITS
    figures = (
        {} if cycles is None else {"cycles": cycles, "clock_hz": 10**9, "l1_peak_bytes": peak, "untimed_operations": 0}
    )
    row = Row(key=f"{layer}{device}{a}{b}", layer=layer, device=device, verdict=verdict, **figures)
    return {"config.a": a, "b": b, "config.c": 1}, row


RESULT = SweepResult(
    axes=("config.a", "b", "config.c"),
    samples=(
        sample("up", "n", 1, None, 3000),
        sample("up", "n", 1, "x", None),
        sample("up", "n", 2, None, 5000, peak=512),
        sample("up", "n", 2, "x", 4000),
        sample("up", "p", 1, None, 1000),
        sample("down", "n", 1, None, None),
    ),
)


def test_axes_that_vary():
    assert axes_of(RESULT) == {"layer": ["up", "down"], "device": ["n", "p"], "config.a": [1, 2], "b": [None, "x"]}


def test_charts():
    bars, first, second, third, up, down = charts_of(RESULT)
    assert bars.groups == ("up", "down")
    assert bars.series == (("n", (3.0, None)), ("p", (1.0, None)))
    assert (first.title, first.columns, first.rows) == (
        "up, n: the least time by config.a and b", ("1", "2"), ("none", "x")
    )  # fmt: skip
    assert first.cells == ((3.0, 5.0), (None, 4.0))
    assert (second.title[:5], third.title[:7]) == ("up, p", "down, n")
    assert third.cells == ((None,),)
    assert [(one.x, one.y, one.series) for one in up.dots] == [(3, 1, "n"), (5, 0.5, "n"), (4, 1, "n"), (1, 1, "p")]
    assert up.dots[1].name == "a=2, b=none, c=1"
    assert down.dots == ()


def test_axes_of_a_heat_map_may_be_chosen():
    (heat,) = (one for one in charts_of(RESULT, ["device", "layer"]) if "by device and layer" in one.title)
    assert heat.cells == ((3.0, 1.0), (None, None))
    assert any("by device and config.a" in one.title for one in charts_of(RESULT, ["device", "a"]))


@pytest.mark.parametrize("across", [["a", "z"], ["a", "a"], ["a", "c"]])
def test_axes_there_are_not(across):
    with pytest.raises(ArgumentError, match="axes"):
        charts_of(RESULT, across)


def test_files(tmp_path):
    for name, start in (("a.svg", "<svg"), ("a.HTML", "<!DOCTYPE")):
        write_plot(RESULT, tmp_path / name)
        assert (tmp_path / name).read_text().startswith(start)
    with pytest.raises(ArgumentError, match=r"a file \.svg or \.html"):
        write_plot(RESULT, tmp_path / "a.png")
