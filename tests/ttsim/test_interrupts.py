"""Ctrl-C, sent to a command as a terminal sends it: to it and to all its processes."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ttsim import __main__ as command_line
from ttsim.study.interrupts import INTERRUPTED, LINE, TERMINATED, TerminatedError, ending_on_sigterm, in_one_line

ROOT = Path(command_line.__file__).resolve().parents[1]


def test_an_interrupt_while_a_command_loads(tmp_path):
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "rich.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(60)\n")
    paths = os.pathsep.join((str(tmp_path / "slow"), str(ROOT)))
    command, environment = [sys.executable, "-m", "ttsim", "sweep"], os.environ | {"PYTHONPATH": paths}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    begun = subprocess.Popen(command, env=environment, start_new_session=True, **pipes)
    assert begun.stdout.readline() == "loading\n"
    os.killpg(begun.pid, signal.SIGINT)
    _, text = begun.communicate(timeout=30)
    assert (text, begun.returncode) == (LINE, -signal.SIGINT)  # of which a shell makes 130


@pytest.mark.skipif(os.name != "posix", reason="SIGTERM is POSIX's")
def test_a_sweep_that_is_terminated_says_so_in_a_sentence(tmp_path):
    """Nothing of Python's about semaphores that leaked, and the rows that are there are kept."""
    rows = tmp_path / "rows.jsonl"
    command = [sys.executable, "-m", "ttsim", "sweep", "--processes", "2", "--file", str(rows)]
    command += ["--vary", "act_block_h_override=0,32,64,96", "--vary", "math_fidelity=LoFi,HiFi2,HiFi3,HiFi4"]
    begun = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    while begun.poll() is None and (not rows.exists() or rows.read_bytes().count(b"\n") < 3):
        time.sleep(0.02)
    begun.terminate()
    _, text = begun.communicate(timeout=60)
    assert (text, begun.returncode) == (f"ttsim: terminated; the same command goes on with {rows}\n", TERMINATED)
    assert 3 <= rows.read_bytes().count(b"\n") < 8 * 16 + 1


def test_a_listener_of_its_own_is_left_alone():
    def own(number, frame):
        raise AssertionError

    before = signal.signal(signal.SIGTERM, own)
    try:
        with ending_on_sigterm():
            assert signal.getsignal(signal.SIGTERM) is own
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with ending_on_sigterm(), pytest.raises(TerminatedError):
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("command", ["design", "tune", "devices"])
def test_an_interrupt_of_any_command(command, capsys, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    commands = [replace(known, run=interrupted) for known in command_line.COMMANDS]
    monkeypatch.setattr(command_line, "COMMANDS", commands)
    assert command_line.main([command, "file.toml"] if command == "design" else [command]) == INTERRUPTED
    assert capsys.readouterr().err == LINE


def test_an_interrupted_script_is_shown_where_it_was(capsys, tmp_path):
    (tmp_path / "script.py").write_text("def wait():\n    raise KeyboardInterrupt\n\nwait()\n")
    assert command_line.main(["exec", str(tmp_path / "script.py")]) == INTERRUPTED
    text = capsys.readouterr().err
    assert "in wait" in text
    assert text.endswith("KeyboardInterrupt\n")


def test_other_errors_are_shown_as_python_shows_them(capsys):
    in_one_line(ValueError, ValueError("three"), None)
    assert capsys.readouterr().err == "ValueError: three\n"
