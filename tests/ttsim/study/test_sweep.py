"""Sweeps: points that ran, files that go on, tables of the best, and records."""

import csv
import json
import re
from dataclasses import replace
from io import StringIO

import pytest

from device.errors import ArgumentError
from ttsim.runtime.types.layer import Layer
from ttsim.study import evaluate
from ttsim.study.store import Row, Verdict
from ttsim.study.sweep import SweepResult, best_table, sweep, words_of
from ttsim.study.tune.tune import tune

LAYER = Layer(name="up", in_channels=32, out_channels=16, input_height=16, input_width=16, stride=(2, 2))
VARY = {
    "shard_layout": [None, "HEIGHT_SHARDED", "WIDTH_SHARDED"],
    "act_block_h_override": [0, 32],
    "dram.banks": [6, 12],
}


def test_a_sweep_goes_on_where_its_file_ends(tmp_path, monkeypatch):
    path, progress = tmp_path / "rows.jsonl", []
    whole = sweep(LAYER, "wormhole_n150", vary=VARY, file=path, watch=progress.append)
    assert [(now.done, now.total, now.found) for now in progress] == [(done, 12, 0) for done in range(13)]
    kept = replace(whole, samples=tuple(whole.samples))  # all at once, as users may give them
    assert (whole.to_csv(), json.loads(whole.to_json())["points"]) == (kept.to_csv(), kept.records())
    assert (len(whole.samples[2:5]), whole.samples[2:5][1]) == (3, whole.samples[3])
    assert whole.axes == ("config.shard_layout", "config.act_block_h_override", "device.dram.banks")
    assert [labels["device.dram.banks"] for labels, _ in whole.samples] == ["6"] * 6 + ["12"] * 6
    assert (whole.verdicts["fits"], whole.plans) == (12, 8)  # on each machine four: three points share one
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]) + lines[5][:40])
    evaluated, row = [], evaluate.Evaluator.row
    monkeypatch.setattr(evaluate.Evaluator, "row", lambda self, point: evaluated.append(point) or row(self, point))
    progress.clear()
    assert sweep(LAYER, vary=VARY, file=path, watch=progress.append) == whole
    assert (len(evaluated), progress[0].done, progress[0].found) == (8, 4, 4)
    assert sorted(path.read_bytes().splitlines()) == sorted(b"".join(lines).splitlines())
    sweep(LAYER, vary={"act_block_h_override": [0, 64]}, devices="blackhole_p150", file=path)
    assert path.read_bytes().count(b"\n") == 1 + 12 + 2


def test_a_bad_point_does_not_stop_the_others(tmp_path):
    result = sweep(LAYER, vary={"groups": [1, 5], "packer_l1_acc": [None, True]}, file=tmp_path / "rows")
    assert [row.verdict.value for row in result.rows] == ["fits", "fits", "refused", "refused"]
    errors = [json.loads(line)["error"][:18] for line in (tmp_path / "rows").read_text().splitlines()[3:]]
    assert errors == ["groups must divide"] * 2


def test_a_comparison_of_machines_tunes_on_each(tmp_path, monkeypatch):
    """The faster of the layer's own config and the one that a search finds; `test_design` holds what it finds."""
    layer, devices = replace(LAYER, config={"shard_layout": "WIDTH_SHARDED"}), ["n150", "n150, grid=4x4"]
    searched, keep = [], ("slices", "core_grid", "transpose_shards", "act_block_h_override", "output_layout")

    def quick(function, arguments, device):
        searched.append(device.spec.name)
        return tune(function, device=device, keep=keep, effort=12, **arguments)

    monkeypatch.setattr(evaluate, "fastest", quick)
    tuned = sweep(layer, devices, file=tmp_path / "rows", processes=1)
    plain = sweep(layer, devices, tune=False)
    assert searched == ["wormhole_n150", "wormhole_n150, grid=4x4"]
    for row, own, best in zip(tuned.rows, plain.rows, tuned.best(), strict=True):
        assert (row.given_cycles, row.own_cycles, own.own_cycles) == (own.cycles, own.cycles, own.cycles)
        assert row.cycles < own.cycles
        assert row.arguments.startswith("conv_config=ttnn.Conv2dConfig(")
        assert (best.is_given, own.arguments, f" {own.cycles:,} " in str(tuned)) == (False, "", True)
    assert sweep(layer, devices, file=tmp_path / "rows") == tuned
    assert sweep(layer, "n150").rows[0].arguments == ""  # one machine: nothing to compare
    varied = sweep(layer, vary={"dram.banks": [6, 12], "act_block_h_override": [32]})
    assert {row.arguments for row in varied.rows} == {""}
    assert len(searched) == 2


def test_layers_and_devices_of_every_kind(tmp_path):
    device = tmp_path / "card.toml"
    device.write_text('extends = "wormhole_n150"\nname = "card"\n[dram]\nbanks = 6\n')
    layer = {"name": "b", "in_channels": 32, "out_channels": 16, "input_height": 6, "input_width": 5}
    cards = ["wormhole_n150", str(device), "wormhole_n150, dram.banks=6"]
    result = sweep([LAYER, layer], cards, tune=False)
    assert [(row.layer, row.device) for row in result.rows] == [
        (name, card) for name in ("up", "b") for card in ("wormhole_n150", "card", "wormhole_n150, dram.banks=6")
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"vary": ["slice"]}, "vary must be a dict"),
        ({"devices": [], "vary": {"lowering": ["zero_insertion"]}}, "there are no devices"),
        ({"processes": 0}, "processes must be an integer of at least 1"),
    ],
)
def test_sweeps_that_are_refused(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        sweep(LAYER, **arguments)


def row(cycles=None, **others):
    verdict = Verdict.DOES_NOT_FIT if cycles is None else Verdict.FITS
    figures = {} if cycles is None else {"cycles": cycles, "clock_hz": 500_000_000, "untimed_operations": 0}
    return Row(**{"key": str(cycles), "layer": "up", "device": "d", "verdict": verdict} | figures | others)


def at(x, *, y="2"):
    return {"config.x": x, "device.y": y}


RESULT = SweepResult(
    axes=("config.x", "device.y"),
    samples=(
        (at(1), row(300, inputs={"config.x": 1}, plan_key="p")),
        (at(None), row(200, inputs={}, plan_key="q")),
        (at(3), row(200, inputs={"config.x": 3}, plan_key="q")),
        (at(4), row(100, inputs={"config.x": 4}, untimed_operations=1, plan_key="r")),
        (at(5), row(error="too, large\nby far", inputs={"config.x": 5})),
        (at(1), row(layer="down", inputs={"config.x": 1})),
    ),
)


def test_the_best_of_each_layer():
    up, down = RESULT.best()
    assert (up.layer, up.row.cycles, up.labels["config.x"], up.nanoseconds) == ("up", 200, None, 400.0)
    assert (up.fitting, up.points, up.slowest_cycles) == (4, 5, 300)
    assert (up.reason, down.reason) == ("too, large", "")
    assert (RESULT.verdicts, RESULT.plans) == ({"fits": 4, "does not fit": 2}, 3)
    assert (down.layer, down.row, down.labels, down.fitting, down.slowest_cycles) == ("down", None, None, 0, None)
    assert [best.row and best.row.cycles for best in RESULT.best(3)] == [200, 200, 300, None]
    assert [best.labels["config.x"] for best in RESULT.best(9)[:-1]] == [None, 3, 1, 4]  # one without a model is last


def test_records_are_flat_and_have_the_same_keys():
    records = RESULT.records()
    assert len({tuple(record) for record in records}) == 1
    assert list(records[0])[:4] == ["layer", "device", "device.y", "config.x"]
    assert records[1]["config.x"] is None
    assert (records[0]["cycles"], records[0]["nanoseconds"], records[0]["verdict"]) == (300, 600.0, "fits")
    assert records[4]["nanoseconds"] is None
    assert json.loads(RESULT.to_json())["points"] == records
    lines = list(csv.DictReader(StringIO(RESULT.to_csv(), newline="")))
    assert [line["cycles"] for line in lines] == ["300", "200", "200", "100", "", ""]
    assert lines[4]["error"] == "too, large\nby far"


FITS = Row(
    key="k", layer="up", device="d", verdict=Verdict.FITS, cycles=1234, clock_hz=10**9, cycles_error_share=0.0271,
    untimed_operations=0, l1_peak_bytes=5000, l1_headroom_bytes=6000, plan_key="p",
)  # fmt: skip
NOT = Row(key="l", layer="down", device="d", verdict=Verdict.DOES_NOT_FIT, error="too large")


def test_the_table_of_the_best():
    result = SweepResult(axes=("config.x",), samples=(({"config.x": None}, FITS), ({"config.x": 2}, NOT)))
    text = best_table(result)
    assert str(result) == text.rstrip()
    assert repr(result) == "<SweepResult: 2 points, one different plan: 1 fits, 1 does not fit>"
    assert re.findall("<td[^>]*>([^<]+)</td>", result._repr_html_())[:4] == ["up", "d", "1 of 1", "1,234"]
    assert text == (
        "layer  device     fit  cycles     +-     time  as given  slowest  L1 peak B  headroom B  fastest\n"
        "up     d       1 of 1   1,234  2.7 %  1.23 us              1,234      5,000       6,000  x=none\n"
        f"down   d       0 of 1{'':68}nothing runs: too large\n"
        "2 points, one different plan: 1 fits, 1 does not fit\n"
    )
    text = best_table(SweepResult(axes=("config.x",), samples=(({"config.x": 2}, FITS),)), width=40)
    assert text.splitlines()[:2] == ["layer  device  cycles     time  fastest", "up     d        1,234  1.23 us  x=2"]
    failed = replace(NOT, verdict=Verdict.FAILED, error="KeyError: \x1b'x'")
    text = best_table(SweepResult(axes=(), samples=(({}, failed),) * 2))
    assert text.splitlines()[-1].startswith("failed: KeyError: ")
    assert "\x1b" not in text


def test_words_of_labels():
    assert words_of({"config.a": True, "kernel_size": (2, 2), "device.dram.banks": "6", "compute.b": 0}) == (
        "a=true, kernel_size=2x2, b=0"
    )
    assert words_of({}) == "as given"
    assert words_of({"config.a": True, "slice": "H:2", "batch_size": 2}, given=True) == "as given, batch_size=2"


def test_the_fastest_is_compared_with_the_own_config_of_its_layer():
    rows = [row(300), row(200), row(100), row(50)]
    labels = [{"config.x": x, "batch_size": batch} for x, batch in ((7, 2), (7, 1), (1, 2), (1, 1))]
    result = SweepResult(axes=("config.x",), samples=tuple(zip(labels, rows, strict=True)), given=frozenset({0, 1}))
    assert [(best.row.cycles, best.given.cycles, best.is_given) for best in result.best(4)] == [
        (50, 200, False), (100, 300, False), (200, 200, True), (300, 300, True)
    ]  # fmt: skip
    lines = best_table(result, top=3).splitlines()
    assert [line.split("  ")[-1] for line in lines[1:-1]] == [
        "x=1, batch_size=1", "x=1, batch_size=2", "as given, batch_size=1"
    ]  # fmt: skip
    assert "as given" in lines[0]
    assert [record["given"] for record in result.records()] == [True, True, False, False]
    lost = replace(result, samples=((labels[0], row()), *result.samples[1:]))
    assert "does not fit" in best_table(lost, top=2).splitlines()[2]
