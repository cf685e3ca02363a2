"""What the README shows runs, and what it names exists."""

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import WITH_EXTRAS
from ttsim.__main__ import build_parser, main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, flags=re.DOTALL)
SCRIPTS = [text for language, text in BLOCKS if language == "python"]
COMMANDS = [line for language, text in BLOCKS if language == "sh" for line in text.splitlines() if line.strip()]
LAST_PLACES = re.compile(r"[\d.]+e\+\d+ │|│ +[\d.]+ │ +[\d.]+%|(?<=0\.999)\d+")
PRINTED = [text for language, text in BLOCKS if language == "text" and text.startswith("$ python -m ")]
SINGLE = [part.strip() for line in COMMANDS for part in line.split("&&")]
TUNED = re.findall(r"python -m ttsim (.+)", README.partition("## Tune and sweep\n")[2].partition("\n```\n")[0])

TESTS = "-m pytest -n auto --dist worksteal"
SHOWN = ("MemoryConfig", "bound by", "What would help", "9 loss")


@pytest.mark.parametrize(("script", "shown"), list(zip(SCRIPTS, SHOWN, strict=True)))
def test_script_runs(script, shown, tmp_path):
    if "import torch" in script and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout


@pytest.mark.slow
def test_a_layer_is_tuned_and_drawn_by_the_commands_as_they_stand(tmp_path, monkeypatch, capsys):
    """A new user's way: one command to a config, and one more to a chart."""
    tune, sweep = map(shlex.split, TUNED)
    monkeypatch.chdir(tmp_path)
    assert main(tune) == 0
    assert "times as fast as ttnn's default" in (found := capsys.readouterr().out)
    assert "conv_config=ttnn.Conv2dConfig(" in found
    assert main([*sweep, "--processes", "1"]) == 0
    assert "9 points" in capsys.readouterr().out
    assert "<svg" in (tmp_path / sweep[-1]).read_text(encoding="utf-8")


def test_scripts_are_short():
    assert [script for script in SCRIPTS if len([line for line in script.splitlines() if line.strip()]) > 14] == []


def test_commands_name_modules_arguments_and_files_that_exist():
    for command in SINGLE:
        words = shlex.split(command)
        if "-m" in words:
            assert find_spec(words[words.index("-m") + 1]) is not None, command
        if "-m ttsim" in command:
            options, rest = build_parser().parse_known_args(words[words.index("ttsim") + 1 :])
            assert options.command == "pytest" or not rest, command
        for word in words:
            assert not word.startswith((".ci/", "tools/", "tests/")) or (ROOT / word).exists(), word


def test_both_commands_set_a_fresh_machine_up():
    setups = [line for line in COMMANDS if "venv" in line]
    assert len(setups) == 2
    assert all("pip install" in line for line in setups)
    assert setups[0].endswith("-m ttsim run")
    assert setups[1].endswith(TESTS)
    assert setups == [line for line in README.splitlines() if line.startswith("python3 -m venv ")]  # .ci/run takes them
    assert f'"$python" {TESTS} ' in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("block", PRINTED, ids=lambda block: block.split()[3])
def test_figures_are_those_that_tools_print(block):
    """But for the last places of what BLAS computes, which differ between machines."""
    command, shown = block.split("\n", 1)
    done = subprocess.run(
        [sys.executable, *shlex.split(command)[2:]],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    printed = done.stdout.rstrip()
    if "tools.distance" in command:
        shown, printed = (LAST_PLACES.sub("", text) for text in (shown, printed))
    assert shown.rstrip() == printed


def test_every_tool_that_the_readme_quotes_is_held():
    assert [block.split()[3] for block in PRINTED] == ["tools.distance", "tools.validate"]


def test_places_that_are_set_apart_exist():
    assert [place for place in WITH_EXTRAS if not (ROOT / "tests" / place.partition("::")[0]).exists()] == []
