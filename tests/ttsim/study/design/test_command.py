"""The command line of a design."""

import json

from ttsim.__main__ import main

LAYER = '[[layer]]\nname = "small"\nin_channels = 32\nout_channels = 32\ninput_height = 4\ninput_width = 4\n'


def test_the_front_is_printed_and_all_is_written(tmp_path, capsys):
    path, table, figures = (tmp_path / name for name in ("design.toml", "all.csv", "all.json"))
    path.write_text(f'[space]\ndram.banks = [6, 12]\n[costs]\nbanks = "dram.banks"\n{LAYER}', encoding="utf-8")
    assert main(["design", str(path), "--csv", str(table), "--json", str(figures)]) == 0
    assert "Pareto front, the fastest first:" in capsys.readouterr().out
    assert len(table.read_text().splitlines()) == 3
    assert len(json.loads(figures.read_text())["points"]) == 2


def test_no_machine_that_runs_all_is_a_failure(tmp_path, capsys):
    path = tmp_path / "design.toml"
    path.write_text(f"[space]\nl1.bytes = [1000]\n{LAYER}", encoding="utf-8")
    assert main(["design", str(path)]) == 1
    assert "No machine runs all layers." in capsys.readouterr().out
    assert main(["design", str(tmp_path / "none.toml")]) == 2
    assert "none.toml" in capsys.readouterr().err
