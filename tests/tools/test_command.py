"""Tools end in one line, with exit status 2, where what they are given is of no use; a closed pipe is quiet."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from tools.calibrate.__main__ import main as calibrate
from tools.command import run_tool
from tools.recorded import main as recorded

TOOLS = {"tools.recorded": (recorded, []), "tools.calibrate": (calibrate, ["--arch", "blackhole"])}  # in one process


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("given", ["missing", "empty folder", "foreign file"])
def test_a_path_of_no_use_is_told_in_a_line(name, given, tmp_path, monkeypatch, capsys):
    path = tmp_path / "a\x1b[31m"
    if given == "empty folder":
        path.mkdir()
    elif given == "foreign file":
        path.write_text("a,b\n1,2\n")
    tool, flags = TOOLS[name]
    monkeypatch.setattr(sys, "argv", [name, str(path), *flags])
    assert run_tool(name, tool) == 2
    text = capsys.readouterr().err
    assert text.startswith(f"{name}: ")
    assert text.count("\n") == 1
    assert "\x1b" not in text


def test_broken_records_are_told_in_a_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "outputs.npz").write_bytes(b"PK\x05\x06" + bytes(18))
    (tmp_path / "cases.jsonl.gz").write_bytes(gzip.compress(b"{}\n" * 1000)[:-20])
    monkeypatch.setattr(sys, "argv", ["tools.recorded", str(tmp_path)])
    assert run_tool("tools.recorded", recorded) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_closed_pipe_is_quiet():
    command = [sys.executable, "-m", "tools.recorded", "--only", "nothing"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=Path.cwd()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
