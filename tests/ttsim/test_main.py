"""The commands run, devices and compare: what they print and write, and what they refuse in one line."""

import json
import re
import sys
from io import BytesIO, TextIOWrapper

import pytest

from ops.sensitivity.samples import samples
from ttsim.__main__ import build_parser, main
from ttsim.study.layers.read import DEFAULT_LAYERS, chosen_layers, read_layers

SMALL = ["run", "--shape", "1,8,8,32", "--out-channels", "16", "--stride", "2"]
PLANNED = [*SMALL, "--values", "off", "--no-suggestions"]
SIZES = "in_channels = 32\nout_channels = 32\nkernel_size = 3\n"


@pytest.fixture
def printed(capsys):
    """Runs a command; gives what it writes to stdout, as JSON with the flag for that."""

    def run(*words, status=0):
        assert main(list(words)) == status
        out = capsys.readouterr().out
        return json.loads(out) if "--json" in words else out

    return run


@pytest.fixture
def few_samples(monkeypatch):
    """Fields are tried on two calls; slow tests of ops/sensitivity try all."""
    monkeypatch.setattr("ttsim.report.devices.samples", lambda: samples()[:2])
    monkeypatch.setattr("ttsim.report.devices.planners_samples", tuple)


def layer_file(folder, **heights):
    """A file of layers by their names and heights."""
    tables = (f"[[layer]]\nname = '{name}'\ninput_height = {height}\ninput_width = {height}\n{SIZES}"
              for name, height in heights.items())  # fmt: skip
    path = folder / "layers.toml"
    path.write_text("".join(tables), encoding="utf-8")
    return str(path)


def test_run_prints_what_the_layer_used(printed):
    text = printed(*SMALL, "--name", "small")
    for shown in (
        "small", "Conv2dDeviceOperation", "HaloDeviceOperation", "weights", "headroom", "PCC 0.99", "SHARDED",
        "cycles  ", "bound by", "Cycles count kernel time", "What would help (",
    ):  # fmt: skip
        assert shown in text
    assert "What would help (" not in printed(*PLANNED)


def test_run_writes_reports_and_a_page(printed, tmp_path):
    layers, reports, page = layer_file(tmp_path, a=8, c=8), tmp_path / "reports", tmp_path / "report.html"
    flags = ["--layers", layers, "--values", "off", "--no-suggestions", "--json", "--report", str(reports)]
    shown = [layer["summary"]["cycles"] for layer in printed("run", *flags)["layers"]]
    written = [json.loads((reports / f"{name}.json").read_text()) for name in ("a", "c")]
    assert [layer["cycles"]["total"]["cycles"] for layer in written] == [layer["total"]["cycles"] for layer in shown]
    printed("run", "--only", "c", *flags)
    again = sorted(path.name for path in reports.glob("*.json"))
    assert again == ["a.json", "c-2.json", "c.json"]  # nothing is replaced
    assert "cycles  " in printed(*PLANNED, "--html", str(page))
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_fields_of_a_device_are_explained(printed, capsys, few_samples):
    words = ["devices", "--explain", "blackhole_p100", "--only", "dram.access"]
    text = printed(*words)
    for shown in ("blackhole_p100", "dram.access_ns", "smaller", "cycles of", "[latencies] 486 cycles"):
        assert shown in text
    (entry,) = printed(*words, "--json")["devices"]
    assert [field["name"] for field in entry["fields"]] == ["dram.access_ns"]
    assert main(["devices", "--only", "dram"]) == 2
    assert "--only chooses among the fields of --explain" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        (["--set", "l1.bytes=2MiB", "--set", "dram.banks=16"], "wormhole_n150, l1.bytes=2MiB, dram.banks=16"),
        (["--device", "mine.toml"], "mine"),
        ([], "blackhole_p150"),  # which the environment names
    ],
)
def test_a_device_is_changed_described_or_named(flags, name, printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text('extends = "wormhole_n150"\nname = "mine"\n[grid]\nrows = 4\n')
    monkeypatch.setenv("TTSIM_DEVICE", "wormhole_n150" if flags else "blackhole_p150")
    (entry,) = printed(*PLANNED, "--json", *flags)["layers"]
    summary = entry["summary"]
    assert (summary["device"], summary["accuracy"]) == (name, None)
    assert summary["l1"]["peak_total_bytes"] > 0
    if "--set" in flags:
        assert summary["l1"]["usable_bytes"] == 2 * 1024 * 1024 - 105_824


def test_a_changed_field_tells_what_it_was(printed, few_samples):
    words = ["devices", "wormhole_n150", "--explain", "--only", "grid.cols", "--set", "grid=9x7", "--json"]
    (entry,) = printed(*words)["devices"]
    assert entry["name"] == "wormhole_n150, grid=9x7"
    assert entry["fields"][0]["source"] == "changed from 8: [cores] nebula_x1"


def test_a_layer_that_fails_does_not_stop_the_others(printed, tmp_path):
    words = ["run", "--layers", layer_file(tmp_path, large=600, small=8), "--values", "off", "--no-suggestions"]
    with open(words[2], "a", encoding="utf-8") as file:
        file.write("[common]\ninput_memory = 'l1'\n")
    large, small = printed(*words, "--json", status=1)["layers"]
    assert large["summary"] is None
    assert re.match("Out of Memory: |Statically allocated circular buffers", large["error"])
    assert large["reached"]
    assert small["error"] is None
    assert "failed" in printed(*words, status=1)


def test_the_default_layers():
    options = build_parser().parse_args(["run", "--seed", "4"])
    layers = chosen_layers(options, where="run")
    assert [layer.name for layer in layers] == [layer.name for layer in read_layers(DEFAULT_LAYERS)]
    assert {layer.seed for layer in layers} == {4}
    only = chosen_layers(build_parser().parse_args(["run", "--only", "vgg"]), where="run")
    assert len(only) == 4


def test_a_closed_stdout_and_one_without_arrows(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    assert main(["devices"]) == 0
    sys.stdout.close()
    monkeypatch.setattr("sys.stdout", TextIOWrapper(BytesIO(), encoding="ascii"))
    layer = "run --shape 1,4,4,8 --out-channels 4 --values off --no-suggestions --links"
    assert main(layer.split()) == 0
    assert b"core 0-0 (?)" in sys.stdout.buffer.getvalue()


def test_devices(printed):
    assert "blackhole_p150" in printed("devices")
    (spec,) = printed("devices", "wormhole_n150", "--json")["devices"]
    assert (spec["grid"]["cols"], spec["grid"]["rows"]) == (8, 8)


def test_a_report_and_the_rows_of_a_card_are_compared(printed, capsys, tmp_path):
    """Kernels take twice as long on the card, which has a second device."""
    document = printed(*PLANNED, "--json")
    (tmp_path / "ours.json").write_text(json.dumps(document))
    (call,) = document["layers"][0]["summary"]["cycles"]["calls"]
    taken = [(op["name"], 2 * round(op["nanoseconds"])) for op in call["operations"]]
    rows = [f"{name},{device},{twice}" for name, twice in taken for device in (0, 1)]
    head = "OP CODE,DEVICE ID,DEVICE KERNEL DURATION [ns]"
    (tmp_path / "card.csv").write_text("\n".join([head, *rows, ""]))
    compare = ["compare", str(tmp_path / "ours.json"), str(tmp_path / "card.csv")]
    assert main(compare) == 2
    assert "card.csv': it has the devices 0, 1; choose one with --device-id" in capsys.readouterr().err
    assert "(+100.0 %), wormhole_n150 before" in printed(*compare, "--device-id", "1", "--fail-over", "101")
    assert main([*compare, "--device-id", "1", "--fail-over", "99"]) == 1


def test_two_reports_are_compared(printed, capsys, tmp_path):
    document = printed(*PLANNED, "--json")
    (tmp_path / "a.json").write_text(json.dumps(document))
    document["layers"][0]["summary"]["cycles"]["calls"][0]["operations"][0]["cycles"] //= 2
    (tmp_path / "b.json").write_text(json.dumps(document))
    files = str(tmp_path / "b.json"), str(tmp_path / "a.json")
    assert "together" in printed("compare", *files)
    assert main(["compare", *files, "--fail-over", "0.1%"]) == 1
    assert capsys.readouterr().err == "ttsim: compare: it takes longer by more than 0.1 %\n"
    assert main(["compare", *reversed(files), "--fail-over", "0"]) == 0
    assert capsys.readouterr().err == ""
    figures = printed("compare", *files, "--json")
    (operation,) = (pair for pair in figures["operations"] if pair["before"] != pair["after"])
    assert figures["after"] - figures["before"] == operation["after"] - operation["before"] > 0
