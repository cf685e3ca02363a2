"""The command line never shows a traceback or a control character, and is quiet on a closed pipe."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import ttsim
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


@pytest.mark.parametrize("name", ["[red]x[/red]", "<b>'&", "a\\nb\\rc", "\\u001b[31m\\u2028", "x" * 10_000])
def test_a_hostile_name_of_a_layer_fits_a_terminal(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the layer runs, fails, or is none; no row breaks, and nothing is markup."""
    monkeypatch.setattr("ttsim.__main__.WIDTH_OF_A_PIPE", 80)
    path = tmp_path / "layers.toml"
    sizes = "input_width = 4\nin_channels = 32\nout_channels = 32\nkernel_size = 2"
    layers = [f'[[layer]]\nname = "{name}"\ninput_height = {height}\n{sizes}\n' for height in (4, 2**31)]
    path.write_text("".join(layers), encoding="utf-8")
    assert main(["run", "--layers", str(path), "--values", "off", "--no-suggestions", "-v"]) == 1
    shown = capsys.readouterr().out
    assert max(map(len, shown.split("\n"))) <= 80
    assert not set(shown) & set("\x1b\r\u2028")
    assert shown.count(name[:12]) >= 2 or "\\" in name
    path.write_text(layers[0] + "strides = 1\n", encoding="utf-8")
    assert main(["run", "--layers", str(path)]) == 2
    told = capsys.readouterr().err
    assert "unknown key 'strides'" in told
    assert (len(told) < 600, told.count("\n")) == (True, 1)


@pytest.mark.parametrize(
    "words", [["run", "--layers", "x" * 10_000], ["exec", "x" * 10_000], ["compare", "a" * 9999, "b"]]
)
def test_a_path_of_10_kb_is_cut(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    told = capsys.readouterr().err
    assert told.startswith("ttsim: File name too long: ")
    assert len(told) < 300


def test_an_argument_of_10_kb_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "x" * 10_000])
    assert len(capsys.readouterr().err.splitlines()[-1]) <= 1100


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


def numeric_fields(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of all fields of a device file that are numbers."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from numeric_fields(value, (*path, name))
        elif isinstance(value, int | float):
            yield (*path, name)


FIELDS = list(numeric_fields(ttsim.open_device(spec="wormhole_n150").spec.to_dict()))


@pytest.mark.parametrize("value", ["1" + "0" * 400, "1e400", "nan"])
def test_no_figure_of_a_device_is_beyond_numbers(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Section A10 of the review: 30 fields ended in an OverflowError."""
    assert len(FIELDS) > 80
    path = tmp_path / "device.toml"
    for *tables, name in FIELDS:
        table = f"[{'.'.join(tables)}]\n" if tables else ""
        path.write_text(f'extends = "wormhole_n150"\n{table}{name} = {value}\n', encoding="utf-8")
        assert main(["devices", str(path)]) == 2, (tables, name)
        told = capsys.readouterr().err
        assert told.startswith("ttsim: "), (tables, name)
        assert told.count("\n") == 1, (tables, name)


@pytest.mark.parametrize("ugly", ["\\u001b[31m", "\\u0000", "\\u202e"])
def test_a_device_whose_name_steers_a_terminal_is_refused(
    ugly: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "device.toml"
    path.write_text(f'extends = "wormhole_n150"\nname = "a{ugly}"\n', encoding="utf-8")
    small = ["--shape", "1,4,4,32", "--out-channels", "32", "--kernel-size", "2", "--values", "off"]
    for command in (["devices", str(path)], ["run", "--device", str(path), *small]):
        assert main(command) == 2
        shown = capsys.readouterr()
        assert "name must be text that can be printed" in shown.err
        assert not {"\x1b", "\0", "\u202e"} & set(shown.err + shown.out)


@pytest.mark.parametrize("name", ["a\x1b[31m.toml", "a\u202e.toml", "a\0.toml"])
def test_a_path_that_steers_a_terminal_is_written_out(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["devices", name], ["run", "--layers", name], ["run", "--device", name]):
        assert main(command) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert not {"\x1b", "\0", "\u202e"} & set(told)


def test_a_layer_of_the_largest_stride_is_told_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "layers.toml"
    sizes = "batch_size = 1\ninput_height = 4\ninput_width = 4\nin_channels = 32\nout_channels = 32\nkernel_size = 2"
    path.write_text(f'[[layer]]\nname = "a"\n{sizes}\nstride = 2147483647\n', encoding="utf-8")
    assert main(["run", "--layers", str(path)]) == 1
    assert "more than the 32-bit addresses" in capsys.readouterr().out


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
    small = ["--shape", "1,4,4,32", "--out-channels", "32", "--kernel-size", "2", "--values", "off"]
    with pytest.raises(ValueError, match="a mistake"):
        main(["run", *small])


def test_a_missing_pytest_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ttsim.dropin.suite.find_spec", lambda name: None)
    assert main(["pytest"]) == 2
    assert capsys.readouterr().err == "ttsim: pytest: it is not installed; install ttsim[test]\n"
