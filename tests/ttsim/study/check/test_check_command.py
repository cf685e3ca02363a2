"""`ttsim check`: exit codes, streams, files, and the budgets of U-Nets."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.ttsim.study.check.checked import file_of
from ttsim.__main__ import main

UNETS = Path(__file__).parents[3] / "data" / "unet_budgets.toml"


@pytest.fixture(autouse=True)
def outside_of_workflows(monkeypatch):
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)


@pytest.mark.slow
def test_the_budgets_of_unets_hold(tmp_path, capsys):
    path, xml = tmp_path / UNETS.name, tmp_path / "b.xml"
    for file in (UNETS, UNETS.with_name("unet.py")):
        shutil.copy(file, tmp_path)
    assert main(["check", str(path), "--junit", str(xml), "--update"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "9 budgets, 45 figures: 45 hold"
    assert ElementTree.parse(xml).getroot().get("tests") == "45"
    assert path.read_bytes() == UNETS.read_bytes()


def test_a_broken_budget_is_marked_in_workflows_of_github(tmp_path, capsys, monkeypatch):
    path = file_of(tmp_path, "cycles = 5", halo=7).path
    assert main(["check", str(path)]) == 1
    assert "::error" not in capsys.readouterr().out
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"::error file={path},line=2,title=net.json%3A cycles::")
    assert main(["check", str(path), "--annotations", "none"]) == 1
    assert "::error" not in capsys.readouterr().out
    assert main(["check", str(path), "--json"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["budgets"][0]["figures"][0]["verdict"] == "above"
    assert said.err.startswith("::error file=")


def test_update_writes_what_is_measured_and_says_so(tmp_path, capsys):
    path = file_of(tmp_path, "cycles = 5  # mine", halo=7).path
    assert main(["check", str(path), "--update"]) == 0
    said = capsys.readouterr()
    assert said.err == f"ttsim: {path}: one figure written\n"
    assert "cycles = 7  # mine\n" in path.read_text()
    assert main(["check", str(path)]) == 0


def test_an_entry_that_does_not_run_cannot_be_updated(tmp_path, capsys):
    path = tmp_path / "b.toml"
    path.write_text('device = "n150"\n[[budget]]\nlayer = "vgg_unet.d4.up"\ncycles = 5\nset = ["l1.bytes=200000"]\n')
    before = path.read_bytes()
    assert main(["check", str(path), "--update"]) == 1
    assert "cycles has the budget 5, and the entry does not run:" in capsys.readouterr().out
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["none.toml"], "ttsim: No such file or directory: 'none.toml'\n"),
        (
            ["{file}", "--update", "--set", "dram.banks=6"],
            "ttsim: check: --update writes figures of the file's own",
        ),
        (["{file}", "--junit", "b.toml"], "ttsim: check: argument --junit: 'b.toml' is read, not written"),
    ],
)
def test_a_mistake_of_the_user_is_one_line_and_exit_code_2(words, error, tmp_path, capsys):
    path = file_of(tmp_path, "cycles = 5", halo=7).path
    assert main(["check", *(word.format(file=path) for word in words)]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(error)
    assert (said.out, said.err.count("\n")) == ("", 1)


@pytest.mark.slow
def test_processes_measure_the_same(tmp_path, capsys):
    texts = []
    for processes in ("1", "2"):
        assert main(["check", str(UNETS), "--processes", processes, "--json"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
