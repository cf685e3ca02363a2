"""Figures of pages by hand: the halo and the convolution of conftest, at 1 GHz, and a move that no model knows."""

from dataclasses import replace

import pytest

from device.spec.device_spec import load_spec
from tests.ttsim.report.ran_operations import LAYER, runs_of, timed, untimed
from tests.ttsim.report.test_approved import ADVICE
from ttsim.report.cycle_report import cycle_report
from ttsim.report.cycles import CallRun
from ttsim.report.memory import CIRCULAR, LayerResult, Occupant, l1_map
from ttsim.report.network import LivingBuffer, Runs, network_report
from ttsim.report.page_charts import l1_chart, roofline, stage_rows, timeline
from ttsim.report.pages import grid_of, page_of_calls, page_of_layers, page_of_network
from ttsim.report.reported import reported_of
from ttsim.report.sections import Page, document
from ttsim.report.writers.html.document import page_html
from ttsim.runtime.call_source import WHAT_FITS

FLOPS = 32 * 50 * 65536  # issued by the convolution, in 4000 cycles, with 100,000 bytes of DRAM
ORDER = (
    "verdict gain picture timeline l1 stages roofline roofs changes machine operations kinds scripts buffers map cores "
    "work"
)


@pytest.fixture
def runs(halo, conv, spec):
    return runs_of(spec, halo, untimed(), conv, facts=[{"l1": (60, 40)}, {"l1": (0, 50)}, {"l1": (150, 50)}])


def sections(page: Page, view: int = 0) -> dict:
    return {section["id"]: section for section in document(page)["views"][view]["sections"]}


def column(table: dict, name: str) -> list:
    at = [column["name"] for column in table["columns"]].index(name)
    return [row[at] for row in table["rows"]]


def test_the_first_screen_comes_first_and_the_rest_in_order(report_with_a_move, runs, spec) -> None:
    held = LivingBuffer(name="out", memory="L1", bank_bytes=500, address=1000, function="ttnn.f", where="net.py:1")
    with_l1 = Runs(spec.clock_hz, spec)
    with_l1 += [replace(op, runs=with_l1, buffers=(held,)) for op in runs]
    report = replace(report_with_a_move, advice=ADVICE)
    shown = sections(page_of_network(network_report(with_l1, spec), report, spec))
    assert [name for name in shown if name in ORDER.split()] == ORDER.split()
    assert column(shown["roofs"], "#") == [0, 2]
    roof = report.operations[1].roofline
    assert column(shown["roofs"], "above its roof")[1] == 4000 - roof.cycles
    assert column(shown["stages"], "stage") == ["start", "network", "reader", "math", "dram"]


def test_the_verdict_says_how_far_the_bound_is_and_what_is_faster(report) -> None:
    slow = sections(page_of_calls(replace(report, advice=ADVICE)))
    assert slow["verdict"]["state"] == "slow"
    assert slow["verdict"]["text"] == (
        f"Takes 5.00 us, {5000 / report.total.roofline.cycles:,.1f} times what the machine needs at least (math). "
        "A change makes it 1.4 times faster."
    )
    assert slow["gain"]["text"] == "Saves 30.0 %: a=1, d=2"
    assert slow["gain"]["code"] == "f(a=1), d=2"
    none = replace(ADVICE, changes=(), together=None)
    good = sections(page_of_calls(replace(report, advice=none)))
    assert (good["verdict"]["state"], good["gain"]["text"]) == ("good", "No change that was tried is faster.")
    known = sections(page_of_calls(report))
    assert (known["verdict"]["state"], known["gain"]["text"]) == ("known", "No change was tried.")


def test_a_layer_that_fails_shows_the_change_that_fits() -> None:
    spec = load_spec("wormhole_n150")
    failed = LayerResult(layer=LAYER, error=f"Out of Memory: 1 B\n{WHAT_FITS}\n  act_block_h=32\n  other=1")
    shown = sections(page_of_layers([failed], spec))
    assert shown["verdict"]["text"] == "Does not run: Out of Memory: 1 B"
    assert (shown["verdict"]["state"], shown["gain"]["code"]) == ("bad", "act_block_h=32")
    assert shown["picture"]["lines"] == ["Nothing was placed: the call was refused before."]
    page = page_of_layers([failed, replace(failed, error="No")], spec)
    assert [view.name for view in page.views] == ["all layers", "up", "up"]
    assert sections(page)["verdict"]["text"].startswith("0 of 2 layers run")
    assert sections(page, 2)["gain"]["code"] == ""


def test_a_baseline_is_a_lane_a_table_and_a_change(layer, report, conv, spec) -> None:
    ran = replace(layer, summary=replace(layer.summary, operations=layer.summary.operations[:2], cycles=report))
    before = cycle_report([CallRun(name="f", ran=(conv,), spec=spec)], spec)
    shown = sections(page_of_layers([ran], spec, {"up": reported_of(before)}))
    assert shown["timeline"]["y"]["names"][:2] == ["operations", "baseline"]
    assert shown["timeline"]["parts"][1] == {
        "table": "compared", "marks": [[0.0, 4000.0, 1, 2, "Conv2d", 1, 1.0, "Conv2d"]],
    }  # fmt: skip
    assert [row[:4] for row in shown["compared"]["rows"]] == [[0, "Halo", None, 1000.0], [1, "Conv2d", 4000.0, 4000.0]]
    assert shown["compared"]["ops"] == [[0, 0], [1, 1]]
    facts = {name: value for name, value, _ in shown["verdict"]["facts"]}
    assert (facts["baseline"], facts["change from the baseline"]) == (4000.0, 0.25)
    assert (
        "baseline"
        not in sections(page_of_layers([ran], spec, {"other": reported_of(before)}))["timeline"]["y"]["names"]
    )


def test_nothing_ran(spec) -> None:
    network = network_report(Runs(spec.clock_hz, spec), spec)
    assert str(network) == "No device operation ran on wormhole_n150."
    assert page_html(page_of_network(network, cycle_report([], spec), spec))


def test_marks_lie_at_times_and_addresses(runs, spec) -> None:
    lanes = timeline(runs, stage_rows(runs))
    assert lanes["y"]["names"] == ["operations", "start", "reader", "math", "network", "dram"]
    assert [mark[:6] for mark in lanes["parts"][0]["marks"]] == [
        [0, 1000, 0, 1, "HaloDeviceOperation", 0], [1000, 5000, 0, 1, "Conv2dDeviceOperation", 2],
    ]  # fmt: skip
    assert [1000, 5000, 3, 3.62, "busy", 3, 0.75, ""] in lanes["parts"][1]["marks"]
    held = Occupant(name="a", kind=CIRCULAR, address=4096, size_bytes=64)
    other = Occupant(name="b", kind="L1", address=8192, size_bytes=32)
    chart = l1_chart(l1_map([(held, other), (other,)], spec), runs[:2])
    assert chart["parts"][0]["marks"][1:] == [
        [0, 1, 4096, 4160, CIRCULAR, 0, 1.0, "a"], [0, 2, 8192, 8224, "L1", 1, 1.0, "b"],
    ]  # fmt: skip
    assert (chart["y"]["end"], list(chart["legend"])) == (spec.l1.bytes, [CIRCULAR, "L1", "reserved", "free"])


def test_every_core_has_its_time_and_its_circular_buffers(report, spec) -> None:
    first = Occupant(name="a", kind=CIRCULAR, address=0, size_bytes=64, ranges=((0, 0, 1, 0),))
    second = replace(first, name="b", ranges=((1, 0, 1, 0),))
    grid = grid_of(report.total.cores, spec, l1_map([(first, second), (second,)], spec))
    assert [(core.column, core.row) for core in grid] == [(at % 8, at // 8) for at in range(64)]
    assert [(core.cycles, core.circular_bytes) for core in (*grid[:2], grid[63])] == [(5000, 64), (4400, 128), (0, 0)]


def test_what_multiplies_and_moves_bytes_of_dram_is_a_point_below_its_roofs(runs, report) -> None:
    chart = roofline(runs)
    ((across, up, name, row),) = chart["marks"]  # the halo has no place
    roof = report.operations[1].roofline
    assert (across, up, name, row) == (FLOPS / 100_000, pytest.approx(FLOPS / 4e-6), "Conv2dDeviceOperation", 2)
    dram, math = chart["lines"]
    assert dram["name"] == f"DRAM {100_000 / roof.dram_cycles:.3g} GB/s"
    assert math["name"] == f"HiFi2 {FLOPS / roof.math_cycles / 1e3:.3g} TFLOP/s"
    (ridge, peak), (end, _) = math["points"]
    assert dram["points"][1] == [pytest.approx(ridge), pytest.approx(peak)]
    assert up < peak == pytest.approx(FLOPS / roof.math_cycles * 1e9)
    assert (end, chart["y"]["start"], chart["y"]["end"]) == (10_000, 1e13, 1e15)
    assert roofline(runs[:2]) is None
    assert roofline([replace(op, taken=None) for op in runs]) is None


SPEC = load_spec("wormhole_n150")
HELD = LivingBuffer(name="output", memory="L1", bank_bytes=500, address=1000, function="ttnn.f", where="net.py:1")


LONG = "very_long_folder/with\x1b[31m/" * 400 + "net.py:77"


def test_tables_of_any_width_have_whole_rows() -> None:
    """Whatever the names: columns go, and no figure is cut."""
    name = "InterleavedToShardedDeviceOperation"
    facts = [{"where": LONG, "l1": (0, 500), "buffers": (HELD,)}, {"where": "net.py:1", "call": 1}]
    runs = runs_of(SPEC, timed(name, 123_456_789), timed("B\n[red]" * 2000, 7), facts=facts)
    for width in (80, 120):
        text = network_report(runs, SPEC).table(width)
        lines = text.split("\n")
        assert max(map(len, lines)) <= width
        assert "\x1b" not in text
        first = next(line for line in lines if line.startswith("0 "))
        assert all(shown in first for shown in (name, "123,456,789", "100.0 %"))
        assert sum("net.py:77" in line for line in lines) >= 1
