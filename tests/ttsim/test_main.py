import json
import re

import pytest

from ttsim.__main__ import build_parser, main
from ttsim.study.layers.flags import chosen_layers
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers

SMALL = ["--shape", "1,8,8,32", "--out-channels", "16", "--stride", "2"]


def test_run_prints_what_the_layer_used(capsys):
    assert main(["run", *SMALL, "--name", "small"]) == 0
    text = capsys.readouterr().out
    for shown in (
        "small",
        "Conv2dDeviceOperation",
        "HaloDeviceOperation",
        "weights",
        "headroom",
        "PCC 0.99",
        "SHARDED",
        "cycles  ",
        "bound by",
        "Cycles count kernel time",
    ):
        assert shown in text


def test_run_writes_a_report_of_each_layer(capsys, tmp_path):
    layers = tmp_path / "layers.toml"
    sizes = "in_channels = 32\nout_channels = 16\ninput_height = 8\ninput_width = 8\nkernel_size = 2\n"
    layers.write_text("".join(f"[[layer]]\nname = '{name}'\n{sizes}" for name in ("a/b", "c")))
    flags = ["--values", "off", "--no-suggestions", "--json", "--report", str(tmp_path / "reports")]
    assert main(["run", "--layers", str(layers), *flags]) == 0
    shown = [one["summary"]["cycles"] for one in json.loads(capsys.readouterr().out)["layers"]]
    written = [json.loads((tmp_path / "reports" / f"report{number}.json").read_text()) for number in range(2)]
    assert [one["cycles"]["total"]["cycles"] for one in written] == [one["total"]["cycles"] for one in shown]
    assert main(["run", "--layers", str(layers), "--only", "c", *flags]) == 0
    again = sorted(one.name for one in (tmp_path / "reports").glob("*.json"))
    assert again == ["report0-2.json", "report0.json", "report1.json"]  # nothing is replaced


def test_run_writes_a_page(capsys, tmp_path):
    page = tmp_path / "report.html"
    assert main(["run", *SMALL, "--values", "off", "--no-suggestions", "--html", str(page)]) == 0
    assert "cycles  " in capsys.readouterr().out
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_run_as_json(capsys):
    assert main(["run", *SMALL, "--json", "--device", "blackhole_p150"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["layers"]
    assert entry["error"] is None
    assert entry["layer"]["stride"] == [2, 2]
    summary = entry["summary"]
    assert summary["device"] == "blackhole_p150"
    assert summary["output"]["shape"] == [1, 1, 256, 16]
    assert summary["accuracy"]["pcc"] > 0.999
    names = [operation["name"] for operation in summary["operations"]]
    assert names[-1] == "ShardedToInterleavedDeviceOperation"
    (call,) = summary["cycles"]["calls"]
    assert [operation["name"] for operation in call["operations"]] == names
    assert call["total"]["cycles"] > 0


def test_the_same_run_prints_the_same_bytes(capsys):
    main(["run", *SMALL, "--json"])
    first = capsys.readouterr().out
    main(["run", *SMALL, "--json"])
    assert capsys.readouterr().out == first


def test_fields_of_a_device_are_explained(capsys):
    assert main(["devices", "--explain", "blackhole_p100", "--only", "dram.access"]) == 0
    text = capsys.readouterr().out
    for shown in ("blackhole_p100", "dram.access_ns", "smaller", "cycles of", "[latencies] 486 cycles"):
        assert shown in text
    assert main(["devices", "--explain", "blackhole_p100", "--only", "dram.access", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["devices"]
    assert [field["name"] for field in entry["fields"]] == ["dram.access_ns"]
    assert main(["devices", "--only", "dram"]) == 2
    assert "--only chooses among the fields of --explain" in capsys.readouterr().err


def test_fields_of_a_device_are_changed_for_a_run(capsys):
    changes = ["--set", "l1.bytes=2MiB", "--set", "dram.banks=16"]
    assert main(["run", *SMALL, "--values", "off", "--no-suggestions", "--json", *changes]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["layers"]
    assert entry["summary"]["device"] == "wormhole_n150, l1.bytes=2MiB, dram.banks=16"
    assert entry["summary"]["l1"]["usable_bytes"] == 2 * 1024 * 1024 - 105_824
    assert main(["run", *SMALL, "--set", "l1.bytes=2GHz"]) == 2
    assert "ttsim: l1.bytes is in bytes, not a frequency as '2GHz' is" in capsys.readouterr().err


def test_a_changed_field_tells_what_it_was(capsys):
    words = ["devices", "wormhole_n150", "--explain", "--only", "grid.cols", "--set", "grid=9x7", "--json"]
    assert main(words) == 0
    (entry,) = json.loads(capsys.readouterr().out)["devices"]
    assert entry["name"] == "wormhole_n150, grid=9x7"
    assert entry["fields"][0]["source"] == "changed from 8: [cores] nebula_x1"


def test_values_off_has_no_accuracy(capsys):
    assert main(["run", *SMALL, "--values", "off", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["layers"]
    assert entry["summary"]["accuracy"] is None
    assert entry["summary"]["l1"]["peak_total_bytes"] > 0


def test_a_layer_that_fails_does_not_stop_the_others(tmp_path, capsys):
    path = tmp_path / "layers.toml"
    path.write_text(
        """
        [common]
        in_channels = 32
        out_channels = 32
        input_memory = "l1"
        kernel_size = [3, 3]
        [[layer]]
        name = "large"
        input_height = 600
        input_width = 600
        [[layer]]
        name = "small"
        input_height = 8
        input_width = 8
        """,
        encoding="utf-8",
    )
    assert main(["run", "--layers", str(path), "--values", "off", "--json"]) == 1
    large, small = json.loads(capsys.readouterr().out)["layers"]
    assert large["summary"] is None
    assert re.match("Out of Memory: |Statically allocated circular buffers", large["error"])
    assert large["reached"]
    assert small["error"] is None
    assert main(["run", "--layers", str(path), "--values", "off"]) == 1
    assert "failed" in capsys.readouterr().out


def test_the_default_layers():
    options = build_parser().parse_args(["run", "--seed", "4"])
    layers = chosen_layers(options, where="run")
    assert [layer.name for layer in layers] == [layer.name for layer in read_layers(DEFAULT_LAYERS)]
    assert {layer.seed for layer in layers} == {4}
    only = chosen_layers(build_parser().parse_args(["run", "--only", "vgg"]), where="run")
    assert len(only) == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "nothing"], "ttsim: run: no layer has 'nothing' in its name; leave --only away"),
        (["--layers", "missing.toml"], "ttsim: .*missing.toml"),
        ([*SMALL, "--layers", "x.toml"], r"ttsim: run: give --layers FILE \(with --only\) or the flags of one layer"),
        ([*SMALL, "--device", "wormhole_n15"], "ttsim: .*wormhole_n150"),
        (["--shape", "1,2"], "ttsim: run: --shape must be N,H,W,C, not 1,2"),
    ],
)
def test_a_mistake_is_told_in_one_line(words, message, capsys):
    assert main(["run", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.fullmatch(f"{message}.*\n", captured.err)


def test_a_wrong_setting_is_the_layers_error(capsys):
    assert main(["run", *SMALL, "--config", "shard_layot=HEIGHT_SHARDED"]) == 1
    assert "did you mean 'shard_layout'" in capsys.readouterr().out


def test_a_device_of_ones_own(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "wormhole_n150"\nname = "mine"\n[grid]\nrows = 4\n', encoding="utf-8")
    assert main(["run", *SMALL, "--device", str(path), "--values", "off", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["layers"]
    assert entry["summary"]["device"] == "mine"


def test_the_environment_names_the_device(monkeypatch, capsys):
    monkeypatch.setenv("TTSIM_DEVICE", "blackhole_p150")
    assert main(["run", *SMALL, "--values", "off", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["layers"][0]["summary"]["device"] == "blackhole_p150"


def test_devices(capsys):
    assert main(["devices"]) == 0
    assert "blackhole_p150" in capsys.readouterr().out
    assert main(["devices", "wormhole_n150", "--json"]) == 0
    (spec,) = json.loads(capsys.readouterr().out)["devices"]
    assert (spec["grid"]["cols"], spec["grid"]["rows"]) == (8, 8)
    assert main(["devices", "wormhole"]) == 2
    assert "ttsim: " in capsys.readouterr().err


def test_suggestions_can_be_left_out(capsys):
    small = ["run", "--shape", "1,8,8,32", "--out-channels", "32", "--kernel-size", "2", "--values", "off"]
    assert main(small) == 0
    assert "What would help (" in capsys.readouterr().out
    assert main([*small, "--no-suggestions"]) == 0
    assert "What would help (" not in capsys.readouterr().out


def test_a_report_and_the_rows_of_a_card_are_compared(capsys, tmp_path):
    """Kernels take twice as long on the card, which has a second device."""
    main(["run", *SMALL, "--values", "off", "--no-suggestions", "--json"])
    (tmp_path / "ours.json").write_text(document := capsys.readouterr().out)
    (call,) = json.loads(document)["layers"][0]["summary"]["cycles"]["calls"]
    taken = [(one["name"], 2 * round(one["nanoseconds"])) for one in call["operations"]]
    rows = [f"{name},{device},{twice}" for name, twice in taken for device in (0, 1)]
    head = "OP CODE,DEVICE ID,DEVICE KERNEL DURATION [ns]"
    (tmp_path / "card.csv").write_text("\n".join([head, *rows, ""]))
    files = str(tmp_path / "ours.json"), str(tmp_path / "card.csv")
    assert main(["compare", *files]) == 2
    assert "card.csv': it has the devices 0, 1; choose one with --device-id" in capsys.readouterr().err
    assert main(["compare", *files, "--device-id", "1", "--fail-over", "101"]) == 0
    assert "(+100.0 %), wormhole_n150 before" in capsys.readouterr().out
    assert main(["compare", *files, "--device-id", "1", "--fail-over", "99"]) == 1


def test_two_reports_are_compared(capsys, tmp_path):
    main(["run", *SMALL, "--values", "off", "--no-suggestions", "--json"])
    document = capsys.readouterr().out
    (tmp_path / "a.json").write_text(document)
    faster = json.loads(document)
    faster["layers"][0]["summary"]["cycles"]["calls"][0]["operations"][0]["cycles"] //= 2
    (tmp_path / "b.json").write_text(json.dumps(faster))
    files = str(tmp_path / "b.json"), str(tmp_path / "a.json")
    assert main(["compare", *files]) == 0
    assert "together" in capsys.readouterr().out
    assert main(["compare", *files, "--fail-over", "0.1%"]) == 1
    assert capsys.readouterr().err == "ttsim: compare: it takes longer by more than 0.1 %\n"
    assert main(["compare", *reversed(files), "--fail-over", "0"]) == 0
    assert capsys.readouterr().err == ""
    with pytest.raises(SystemExit):
        main(["compare", *files, "--fail-over", "-1"])
