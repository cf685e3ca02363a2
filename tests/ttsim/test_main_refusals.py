"""The command line never shows a traceback or a control character, and is quiet on a closed pipe."""

import subprocess
import sys
from pathlib import Path

import pytest

from ttsim.__main__ import main


def test_a_layer_that_no_memory_holds_is_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--shape", "1,100000,100000,32", "--out-channels", "32", "--kernel-size", "3", "--values", "off"]
    assert main(["run", *flags]) == 1
    assert "allocate" in capsys.readouterr().out


def test_control_characters_of_names_are_written_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "layers.toml"
    name = 'name = "a\\u001b[31mb\\u202ec"'
    sizes = "batch_size = 1\ninput_height = 4\ninput_width = 4\nin_channels = 32\nout_channels = 32\nkernel_size = 2"
    path.write_text(f"[[layer]]\n{name}\n{sizes}\n", encoding="utf-8")
    main(["run", "--layers", str(path), "--values", "off"])
    shown = capsys.readouterr()
    assert "a\\x1b[31mb\\u202ec" in shown.out, shown
    assert "\x1b" not in shown.out


@pytest.mark.parametrize("words", [["a\x1b[31m\u202e"], ["run", "--a\x1b[31m"], ["run", "--values", "\u202e"]])
def test_control_characters_of_flags_are_written_out(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert "\x1b" not in told
    assert "\u202e" not in told


@pytest.mark.parametrize("text", ["clock_hz = 1" + "0" * 400, "a = " + "[" * 5000 + "]" * 5000])
def test_a_file_of_nonsense_ends_it_in_a_line(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "device.toml"
    path.write_text(f'extends = "wormhole_n150"\n{text}\n', encoding="utf-8")
    for command in (["devices", str(path)], ["run", "--layers", str(path)]):
        assert main(command) == 2
        told = capsys.readouterr().err
        assert told.startswith("ttsim: ")
        assert told.count("\n") == 1


def test_a_closed_pipe_is_quiet() -> None:
    command = [sys.executable, "-m", "ttsim", "devices", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
