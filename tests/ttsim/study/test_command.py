"""`ttsim tune` on the command line, and the last line of `ttsim run`."""

import json
from dataclasses import replace

from ops.op_models import load_spec
from ttsim.__main__ import main
from ttsim.study.command import _steps, faster_line
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers
from ttsim.study.layers.run import Settings
from ttsim.study.sweep import Progress

LAYER = ["--shape", "1,6,5,32", "--out-channels", "16", "--stride", "2"]


def test_flags_of_one_layer(capsys, tmp_path):
    table, document = tmp_path / "a.csv", tmp_path / "a.json"
    vary = ["--vary", "shard_layout=none,HEIGHT_SHARDED", "--vary", "kernel_size=2x2,3", "--vary", "dram.banks=6"]
    assert main(["sweep", *LAYER, *vary, "--set", "l1.bytes=1MiB", "--csv", str(table), "--json", str(document)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.splitlines()[1].startswith("conv_transpose2d  wormhole_n150, l1.bytes=1MiB, dram.banks=6  4 of 4")
    points = json.loads(document.read_text())["points"]
    assert [point["kernel_size"] for point in points] == ["2x2", "3x3", "2x2", "3x3"]
    assert table.read_text().count("\n") == 5


def test_flags_stand_above_the_file(capsys, tmp_path):
    path = tmp_path / "sweep.toml"
    sizes = "in_channels = 32\nout_channels = 16\ninput_height = 6\ninput_width = 5\n"
    path.write_text(
        f'devices = ["blackhole_p150"]\n[[layer]]\nname = "a"\n{sizes}[[layer]]\nname = "b"\n{sizes}'
        '[vary]\nlowering = ["zero_insertion", "phase"]\nact_block_h_override = [32]\n'
    )
    flags = ["--only", "b", "--vary", "lowering=zero_insertion", "--file", str(tmp_path / "rows")]
    assert main(["sweep", str(path), *flags]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[1:-1]] == [["b", "blackhole_p150"]]
    assert lines[-1] == "2 points, one different plan: 2 fits"  # with the layer's own config


def test_progress_counts_what_the_file_did_not_have():
    begun, steps = [], []

    def begin(total):
        begun.append(total)
        return lambda: steps.append(1)

    watch = _steps(begin)
    for done in (3, 3, 5, 10):
        watch(Progress(total=10, done=done, found=3))
    assert (begun, len(steps)) == ([7], 7)


def test_an_interrupt_ends_cleanly(capsys, monkeypatch, tmp_path):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("ttsim.study.command.sweep", interrupted)
    assert main(["sweep", *LAYER, "--file", str(tmp_path / "rows")]) == 130
    assert "interrupted; the same command goes on with" in capsys.readouterr().err
    assert main(["sweep", *LAYER]) == 130
    assert "give --file to keep rows" in capsys.readouterr().err


SMALL = ["--shape", "1,8,8,64", "--out-channels", "32", "--stride", "2", "--input-memory", "l1"]
QUICK = ["--keep", "core_grid,transpose_shards", "--effort", "20"]


def test_one_layer_in_words_and_as_json(capsys):
    assert main(["tune", *SMALL, *QUICK, "--name", "mine", "--set", "l1.bytes=1MiB"]) == 0
    words = capsys.readouterr().out
    assert words.startswith("mine on wormhole_n150, l1.bytes=1MiB\n")
    assert "conv_config=ttnn.Conv2dConfig(" in words
    assert main(["tune", *SMALL, *QUICK, "--name", "mine", "--set", "l1.bytes=1MiB", "--json"]) == 0
    (text,) = json.loads(capsys.readouterr().out)["layers"]
    assert f"{text['front'][0]['cycles']:,} cycles" in words
    assert text["gain"] >= 1


def test_run_tells_of_a_much_faster_config():
    layers = {layer.name: layer for layer in read_layers(DEFAULT_LAYERS)}
    settings = Settings(spec=load_spec("wormhole_n150"), values="off", suggestions=False)
    slow, good = layers["vgg_unet.d4.up"], layers["vgg_unet.d3.up"]
    assert faster_line([good], settings) == ""
    steering = replace(slow, name="d4\x1b[31m")
    assert "(`ttsim tune` prints it): d4\\x1b[31m 8.3 times" in faster_line([steering, good], settings)


TABLE = """
[device]
grid = "2x2"
[[layer]]
name = "small"
in_channels = 32
out_channels = 32
input_height = 4
input_width = 4
input_memory = "l1"
"""


def test_the_front_is_printed_and_all_is_written(tmp_path, capsys):
    path, table, figures = (tmp_path / name for name in ("design.toml", "all.csv", "all.json"))
    path.write_text(f'[space]\ndram.banks = [6, 12]\n[costs]\nbanks = "dram.banks"\n{TABLE}', encoding="utf-8")
    assert main(["design", str(path), "--csv", str(table), "--json", str(figures)]) == 0
    assert "Pareto front, the fastest first:" in capsys.readouterr().out
    assert len(table.read_text().splitlines()) == 3
    assert len(json.loads(figures.read_text())["points"]) == 2


def test_no_machine_that_runs_all_is_a_failure(tmp_path, capsys):
    path = tmp_path / "design.toml"
    path.write_text(f"[space]\nl1.bytes = [1000]\n{TABLE}", encoding="utf-8")
    assert main(["design", str(path)]) == 1
    assert "No machine runs all layers." in capsys.readouterr().out
