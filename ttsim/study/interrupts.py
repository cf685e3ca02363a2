"""Ends a command in one line after Ctrl-C or SIGTERM; the command line imports this module before all others.

Most of the time before a command's first row is spent importing ttsim, where no other code could catch an interrupt.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType, TracebackType
from typing import Final

INTERRUPTED: Final = 130  # exit codes, as of a shell
TERMINATED: Final = 143
LINE: Final = "ttsim: interrupted\n"


class TerminatedError(KeyboardInterrupt):
    """SIGTERM arrived; handled like Ctrl-C."""


def ending_of(interrupt: KeyboardInterrupt) -> tuple[int, str]:
    """The exit code of an interrupted or terminated command, and the word for it."""
    return (TERMINATED, "terminated") if isinstance(interrupt, TerminatedError) else (INTERRUPTED, "interrupted")


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """A context in which SIGTERM raises `TerminatedError`, unless another handler is installed."""
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise TerminatedError


def in_one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """An excepthook that prints an interrupt as one line and passes other exceptions to the previous excepthook."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write(LINE)
    else:
        _BEFORE(kind, error, trace)


_BEFORE = sys.excepthook
if _BEFORE.__module__ in ("sys", "ttsim.runtime.tracebacks"):  # no excepthook of another program is installed
    sys.excepthook = in_one_line
