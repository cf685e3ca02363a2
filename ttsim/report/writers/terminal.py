"""Lines on a terminal, in which nothing is markup, and the progress of long runs."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Timer

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from ttsim.report.formatting import printable_lines, short_name, wrapped


def say(console: Console, text: str, *, indent: int = 0, style: str = "") -> None:
    """Words, over as many lines as they need, all but the first indented; lines of their own stay so."""
    for line in printable_lines(text).split("\n"):
        show(console, wrapped(line, console.width, indent=indent), style=style)


def show(console: Console, lines: Iterable[str], *, style: str = "") -> None:
    """Lines as they are, such as those of a table."""
    for line in lines:
        console.print(escape(line), highlight=False, soft_wrap=True, style=style or None)


def escaped(text: str) -> str:
    """A text as a cell of a table shows it: nothing in it is markup, or steers the terminal."""
    return escape(printable_lines(text))


PATIENCE_SECONDS = 1.0  # what is done sooner shows none


class Rate(ProgressColumn):
    """Steps in a second, once some are done."""

    def render(self, task: Task) -> Text:
        """The column."""
        return Text("" if task.speed is None else f"{task.speed:.1f}/s")


@contextmanager
def progress(
    what: str, *, console: Console | None = None, patience_seconds: float = PATIENCE_SECONDS
) -> Iterator[Callable[[int], Callable[[], None]]]:
    """Shows how far something is while a ``with`` block runs, and leaves nothing behind.

    Args:
        what: Is done, in a word or two.
        console: Where; the error output without one.
        patience_seconds: How long it may take before anything is shown.

    Returns:
        A function that is told how many steps there are, and gives the function to call after each.
    """
    shown = Console(stderr=True) if console is None else console
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
    if shown.is_terminal:
        late.start()
    try:
        yield begin
    finally:
        late.cancel()
        if late.ident is not None:  # it was started
            late.join()
        if result.live.is_started:
            result.stop()
