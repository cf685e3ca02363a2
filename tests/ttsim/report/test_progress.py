"""A bar for those who wait, and nothing for anybody else."""

import io
import time

from rich.console import Console

from ttsim.report.writers.terminal import progress


def shown(*, terminal: bool, patience_seconds: float, steps: int = 3) -> str:
    """What is written while two of three steps are done."""
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=terminal)
    with progress("[red]x", console=console, patience_seconds=patience_seconds) as begin:
        done = begin(steps)
        for _ in range(2):
            time.sleep(0.01)
            done()
        time.sleep(0.15)  # a picture is drawn ten times a second
    return out.getvalue()


def test_a_terminal_sees_what_is_done_how_fast_and_how_long_it_will_take() -> None:
    text = shown(terminal=True, patience_seconds=0)
    assert all(part in text for part in ("[red]x", "2/3", "/s", " \x1b[36m0:00:0"))


def test_a_pipe_sees_nothing_and_neither_does_who_need_not_wait() -> None:
    assert shown(terminal=False, patience_seconds=0) == shown(terminal=True, patience_seconds=60) == ""


def test_an_error_ends_it() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    bar = progress("x", console=console, patience_seconds=0)
    begin = bar.__enter__()
    begin(1)
    time.sleep(0.05)
    assert bar.__exit__(ValueError, ValueError("x"), None) is False
    assert console.file.getvalue().endswith("\x1b[2K")  # type: ignore[attr-defined] # the line is cleared
