"""Ctrl-C, sent to a command as a terminal sends it: to it and to all its processes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ttsim import __main__ as command_line
from ttsim.interrupts import INTERRUPTED, LINE, told_in_a_line


def test_an_interrupt_while_a_command_loads(tmp_path):
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "rich.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(60)\n")
    root = Path(command_line.__file__).resolve().parents[1]
    paths = os.pathsep.join((str(tmp_path / "slow"), str(root)))
    begun = subprocess.Popen(
        [sys.executable, "-m", "ttsim", "sweep"],
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert begun.stdout.readline() == "loading\n"
    os.killpg(begun.pid, signal.SIGINT)
    _, told = begun.communicate(timeout=30)
    assert (told, begun.returncode) == (LINE, -signal.SIGINT)  # of which a shell makes 130


@pytest.mark.parametrize("command", ["design", "tune", "devices"])
def test_an_interrupt_of_any_command(command, capsys, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, f"{command}_command", interrupted)
    assert command_line.main([command, "file.toml"] if command == "design" else [command]) == INTERRUPTED
    assert capsys.readouterr().err == LINE


def test_an_interrupted_script_is_shown_where_it_was(capsys, tmp_path):
    (tmp_path / "script.py").write_text("def wait():\n    raise KeyboardInterrupt\n\nwait()\n")
    assert command_line.main(["exec", str(tmp_path / "script.py")]) == INTERRUPTED
    told = capsys.readouterr().err
    assert "in wait" in told
    assert told.endswith("KeyboardInterrupt\n")


def test_other_errors_are_shown_as_python_shows_them(capsys):
    told_in_a_line(ValueError, ValueError("three"), None)
    assert capsys.readouterr().err == "ValueError: three\n"
