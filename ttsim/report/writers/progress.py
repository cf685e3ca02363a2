"""How far a long run is, on a terminal: what is done of all, how fast it goes, and how long the rest will take.

It goes to the error output, so that no table and no JSON has it in, and only where that is a terminal.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from ttsim.report.printable import short_name

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
    made = Progress(
        words, BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn(), console=shown, transient=True
    )
    task = made.add_task(short_name(what), total=None)

    def begin(steps: int) -> Callable[[], None]:
        made.update(task, total=steps)
        return lambda: made.advance(task)

    late = Timer(patience_seconds, made.start)
    late.daemon = True
    if shown.is_terminal:
        late.start()
    try:
        yield begin
    finally:
        late.cancel()
        if late.ident is not None:  # it was started
            late.join()
        if made.live.is_started:
            made.stop()
