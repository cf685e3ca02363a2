"""The page of a sweep, by hand: two layers, two devices, two settings that vary."""

from dataclasses import replace

from tests.ttsim.report.test_pages import column, sections
from tests.ttsim.study.test_sweep import row
from ttsim.report.sections import document
from ttsim.study import sweep_page
from ttsim.study.sweep import SweepResult
from ttsim.study.sweep_page import arguments_of, page_of_sweep


def sample(layer, device, a, b, cycles, peak=1024):
    figures = (
        {}
        if cycles is None
        else {"clock_hz": 10**9, "l1_peak_bytes": peak, "inputs": {"config.deallocate_activation": True}}
    )
    return {"config.a": a, "b": b, "config.c": 1}, row(cycles, layer=layer, device=device, **figures)


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
    given=frozenset({2}),
)
ONE = replace(RESULT, samples=RESULT.samples[:4])


def test_the_first_screen_has_the_fastest_point_and_its_arguments():
    shown = sections(page_of_sweep(ONE))
    assert list(shown) == ["verdict", "gain", "picture", "map", "operations"]
    assert (shown["verdict"]["state"], shown["verdict"]["text"]) == (
        "slow", "The fastest of 3 points that run takes 3.00 us, 1.7 times as fast as the given configuration.",
    )  # fmt: skip
    assert shown["gain"]["text"] == "Saves 40.0 %: a=1, b=none, c=1"
    assert shown["gain"]["code"] == "conv_config=ttnn.Conv2dConfig(deallocate_activation=True)"
    best = sections(page_of_sweep(replace(ONE, given=frozenset({0}))))
    assert best["verdict"]["state"] == "good"
    assert best["gain"]["text"] == "No point is faster than the given configuration."
    unknown = sections(page_of_sweep(replace(ONE, given=frozenset())))
    assert (unknown["verdict"]["state"], unknown["gain"]["text"]) == ("known", "a=1, b=none, c=1")


def test_points_are_in_a_chart_a_map_and_a_table_the_fastest_first():
    shown = sections(page_of_sweep(ONE))
    assert shown["picture"]["marks"] == [[3000, 1024, "n", 0], [4000, 1024, "n", 1], [5000, 512, "n", 2]]
    assert shown["picture"]["lines"] == [{"name": "", "points": [[3000, 1024], [5000, 512]]}]
    assert column(shown["operations"], "time") == [3000, 4000, 5000, None]
    assert column(shown["operations"], "verdict") == ["fits", "fits", "fits", "does not fit"]
    assert column(shown["operations"], "config.a") == ["1", "2", "2", "1"]
    assert (shown["map"]["axes"], shown["map"]["across"], shown["map"]["down"]) == (["config.a", "b"], "b", "config.a")


def test_several_layers_and_devices():
    page = page_of_sweep(RESULT)
    assert [view.name for view in page.views] == ["all layers", "up", "down"]
    together, up, down = (sections(page, view) for view in range(3))
    assert together["verdict"]["text"].startswith("The fastest points of 1 of 2 layers take 1.00 us together")
    assert together["verdict"]["state"] == "bad"
    assert (together["gain"]["view"], column(together["fastest"], "fastest")) == ("up", [1000, None])
    assert column(together["layers"], "device") == ["n", "p", "n"]
    assert (together["map"]["across"], together["map"]["down"]) == ("device", "layer")
    assert [mark[2] for mark in up["picture"]["marks"]] == ["p", "n", "n", "n"]
    assert (up["map"]["axes"], up["bars"]["figures"]) == (["device", "config.a", "b"], ["as given", "fastest"])
    assert (down["verdict"]["state"], down["gain"]["text"]) == ("bad", "No point runs.")
    assert down["picture"]["lines"] == ["No point runs, so there is nothing to draw."]


def test_a_page_of_many_points_has_the_fastest(monkeypatch):
    monkeypatch.setattr(sweep_page, "MOST_POINTS", 2)
    shown = sections(page_of_sweep(ONE))
    assert (column(shown["operations"], "time"), shown["operations"]["note"]) == (
        [3000, 4000],
        "The 2 fastest of 4 points.",
    )


def test_arguments_are_those_of_the_call():
    inputs = {
        "config.shard_layout": "HEIGHT_SHARDED",
        "compute.math_fidelity": "LoFi",
        "slice": "H:2",
        "lowering": "phase",
    }
    assert arguments_of(row(1, inputs=inputs)) == (
        "conv_config=ttnn.Conv2dConfig(shard_layout=ttnn.TensorMemoryLayout.HEIGHT_SHARDED), "
        "compute_config=ttnn.WormholeComputeKernelConfig(math_fidelity=ttnn.MathFidelity.LoFi), "
        "dram_slice_config=ttnn.Conv2dSliceConfig(slice_type=ttnn.Conv2dDRAMSliceHeight, num_slices=2), "
        'lowering="phase"'
    )
    assert arguments_of(row(1, inputs={"lowering": "zero_insertion"})) == ""


def test_axes_of_far_apart_values_are_logarithmic():
    samples = (sample("up", "n", 1, None, 100), sample("up", "n", 2, None, 90_000, peak=512))
    (view,) = document(page_of_sweep(replace(ONE, samples=samples)))["views"]
    picture = view["sections"][2]
    assert (picture["x"]["log"], picture["x"]["start"], picture["x"]["end"], picture["y"]["log"]) == (
        True,
        100,
        1e5,
        False,
    )
