"""Completion: bash really completes commands, flags, values and devices; the scripts of zsh and fish have them."""

import shutil
import subprocess

import pytest

from ttsim.__main__ import COMMANDS, main

BASH = shutil.which("bash")


@pytest.fixture
def script(capsys):
    def of(shell):
        assert main(["completion", shell]) == 0
        return capsys.readouterr().out

    return of


@pytest.mark.skipif(BASH is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("ttsim ru", ["run"]),
        ("ttsim de", ["design", "devices"]),
        ("ttsim tune --eff", ["--effort"]),
        ("ttsim compare --sh", []),
        ("ttsim exec --device n1", ["n150"]),
        ("ttsim run --device mach", ["machines.toml"]),
        ("ttsim sweep --device wormhole_n3", ["wormhole_n300"]),
        ("ttsim devices p10", ["p100"]),
        ("ttsim run --values ", ["exact", "fast", "off"]),
        ("ttsim completion z", ["zsh"]),
        ("ttsim design mach", ["machines.toml"]),
    ],
)
def test_bash_completes(line, completed, script, tmp_path):
    (tmp_path / "machines.toml").touch()
    asked = f"""{script("bash")}
COMP_WORDS=({line}{' ""' if line.endswith(" ") else ""}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_ttsim; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run([BASH, "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.split() == completed


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_scripts_are_valid(shell, script):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    subprocess.run([shell, "-n"], input=script(shell), text=True, check=True, timeout=60)


def test_fish_gets_every_command_and_flag(script):
    fish = script("fish")
    for command in COMMANDS:
        assert f"-n __fish_use_subcommand -a {command.name} -d " in fish
        for flag in command.options:
            assert f"__fish_seen_subcommand_from {command.name}' -l {flag.removeprefix('--')} " in fish
    if shutil.which("fish") is not None:
        asked = f"{fish}complete -C 'ttsim run --values '; complete -C 'ttsim devices n1'; complete -C 'ttsim swe'"
        done = subprocess.run(["fish"], input=asked, capture_output=True, text=True, check=True, timeout=60)
        assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["exact", "fast", "off", "n150", "sweep"]
