"""Lines on a terminal without markup, and the progress of long runs."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from ttsim.report.formatting import printable_lines, short_name, terminal_width, wrapped

WIDTH_OF_A_PIPE = 160  # columns of a table that goes to a file


def console_on(stream: TextIO) -> Console:
    """A console on a stream: without escapes if NO_COLOR is set; in a pipe COLUMNS wide, or else 160 columns."""
    width = None if stream.isatty() else terminal_width() or WIDTH_OF_A_PIPE
    return Console(file=stream, width=width, color_system=None if os.environ.get("NO_COLOR") else "auto")


def say(console: Console, text: str, *, indent: int = 0, style: str = "") -> None:
    """Words wrapped with an indent below the first line; line breaks in the text stay."""
    for line in printable_lines(text).split("\n"):
        show(console, wrapped(line, console.width, indent=indent), style=style)


def show(console: Console, lines: Iterable[str], *, style: str = "") -> None:
    """Lines printed unchanged, such as those of a table."""
    for line in lines:
        console.print(escape(line), highlight=False, soft_wrap=True, style=style or None)


def escaped(text: str) -> str:
    """A text as the cell of a table, without markup and control characters."""
    return escape(printable_lines(text))


PATIENCE_SECONDS = 1.0  # shorter work shows no progress


class Rate(ProgressColumn):
    """Steps per second, once some are done."""

    def render(self, task: Task) -> Text:
        """The column."""
        return Text("" if task.speed is None else f"{task.speed:.1f}/s")


@contextmanager
def progress(
    what: str, *, console: Console | None = None, patience_seconds: float = PATIENCE_SECONDS, quiet: bool = False
) -> Iterator[Callable[[int], Callable[[], None]]]:
    """Shows the progress of `what` on a console (by default stderr) while a ``with`` block runs, then clears it.

    Nothing is shown in the first `patience_seconds`, if `quiet`, or without colors, because a bar consists of escapes.
    The yielded function takes the number of steps and returns a function to call after each step.
    """
    shown = console_on(sys.stderr) if console is None else console
    words = TextColumn("{task.description}", markup=False)
    result = Progress(
        words, BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn(), console=shown, transient=True
    )
    task = result.add_task(short_name(what), total=None)

    def begin(steps: int) -> Callable[[], None]:
        result.update(task, total=steps)
        return lambda: result.advance(task)

    late = Timer(patience_seconds, result.start)
    late.daemon = True
    if shown.is_terminal and shown.color_system is not None and not quiet:
        late.start()
    try:
        yield begin
    finally:
        late.cancel()
        if late.ident is not None:  # it was started
            late.join()
        if result.live.is_started:
            result.stop()
