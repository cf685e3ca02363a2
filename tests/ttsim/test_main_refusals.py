"""The command line never shows a traceback or a control character, and is quiet on a closed pipe."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ttsim.__main__ import main

SIZES = "input_width = 4\nin_channels = 32\nout_channels = 32\nkernel_size = 2"
LAYER = f'[[layer]]\nname = "a"\ninput_height = 4\n{SIZES}\n'
RUN = ["run", "--shape", "1,4,4,32", "--out-channels", "32", "--kernel-size", "2", "--values", "off"]
STEERING = {"\x1b", "\0", "\u202e"}  # characters that steer a terminal
LONG = "x" * 10_000


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command that is refused; gives its only line on stderr."""

    def run(*words: str) -> str:
        assert main(list(words)) == 2, words
        shown = capsys.readouterr()
        assert shown.err.startswith("ttsim: ")
        assert shown.err.count("\n") == 1
        assert not STEERING & set(shown.err + shown.out)
        assert len(shown.err) < 700
        return shown.err

    return run


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """Writes a text into a file; gives its path."""

    def write(text: str) -> str:
        path = tmp_path / "file.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@pytest.mark.parametrize("name", ["a\\u001b[31mb\\u202ec", "[red]x[/red]", "<b>'&", "a\\nb\\rc", "\\u2028", LONG])
def test_a_hostile_name_of_a_layer_fits_a_terminal(
    name: str, written: Any, told: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the layer runs, fails, or is none; no row breaks, and nothing is markup."""
    monkeypatch.setenv("COLUMNS", "80")
    layers = [f'[[layer]]\nname = "{name}"\ninput_height = {height}\n{SIZES}\n' for height in (4, 2**31)]
    assert main(["run", "--layers", written("".join(layers)), "--values", "off", "--no-suggestions", "-v"]) == 1
    shown = capsys.readouterr().out
    assert max(map(len, shown.split("\n"))) <= 80
    assert not set(shown) & set("\x1b\r\u2028\u202e")
    assert shown.count(name[:12]) >= 2 or "\\" in name
    assert "\\u" not in name or "\\" in shown
    assert "unknown key 'strides'" in told("run", "--layers", written(layers[0] + "strides = 1\n"))


@pytest.mark.parametrize("words", [["run", "--layers", LONG], ["exec", LONG], ["compare", LONG, "b"]])
def test_a_path_of_10_kb_is_cut(words: list[str], told: Any) -> None:
    assert told(*words).startswith("ttsim: File name too long: ")


@pytest.mark.parametrize(
    "words", [["run", LONG], ["a\x1b[31m\u202e"], ["run", "--a\x1b[31m"], ["run", "--values", "\u202e"]]
)
def test_a_wrong_flag_is_cut_and_written_out(words: list[str], told: Any) -> None:
    assert "; see ttsim " in told(*words)


@pytest.mark.parametrize("text", ["clock_hz = 1" + "0" * 400, "a = " + "[" * 5000 + "]" * 5000])
def test_a_file_of_nonsense_ends_it_in_a_line(text: str, written: Any, told: Any) -> None:
    path = written(f'extends = "wormhole_n150"\n{text}\n')
    assert told("devices", path)
    assert told("run", "--layers", path)


@pytest.mark.parametrize("ugly", ["\\u001b[31m", "\\u0000", "\\u202e"])
def test_a_device_whose_name_steers_a_terminal_is_refused(ugly: str, written: Any, told: Any) -> None:
    path = written(f'extends = "wormhole_n150"\nname = "a{ugly}"\n')
    for command in (["devices", path], [*RUN, "--device", path]):
        assert "name must be text that can be printed" in told(*command)


@pytest.mark.parametrize("name", ["a\x1b[31m.toml", "a\u202e.toml", "a\0.toml"])
def test_a_path_that_steers_a_terminal_is_written_out(name: str, told: Any) -> None:
    for command in (["devices", name], ["run", "--layers", name], ["run", "--device", name]):
        told(*command)


def test_a_layer_that_no_memory_holds_is_told_in_a_line(written: Any, told: Any) -> None:
    assert "more than the 32-bit addresses" in told("run", "--layers", written(LAYER + "stride = 2147483647\n"))
    layer = written(LAYER.replace("= 4\n", "= 100000\n"))
    assert main(["run", "--layers", layer, "--values", "off"]) == 1


def test_a_closed_pipe_is_quiet() -> None:
    command = [sys.executable, "-m", "ttsim", "devices", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_mistake_of_ours_is_not_told_as_one_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("a mistake")

    monkeypatch.setattr("ops.programs.halo.model.halo_cycles", broken)
    with pytest.raises(ValueError, match="a mistake"):
        main(RUN)


def test_a_missing_pytest_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch, told: Any) -> None:
    monkeypatch.setattr("ttsim.dropin.script.find_spec", lambda name: None)
    assert told("pytest") == "ttsim: pytest: it is not installed; install ttsim[test]\n"
