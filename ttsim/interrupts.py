"""Ctrl-C ends a command in one line, whatever it was at; the command line imports this before all else.

Most of the time before a command's first row goes into loading ttsim, where nothing could catch an interrupt.
"""

import sys
from types import TracebackType
from typing import Final

INTERRUPTED: Final = 130  # exit code, as of a shell
LINE: Final = "ttsim: interrupted\n"


def told_in_a_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What Python does with an exception that nobody caught: an interrupt is a line, others are as they are."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write(LINE)
    else:
        sys.__excepthook__(kind, error, trace)


if sys.excepthook is sys.__excepthook__:  # nobody else has a say in it
    sys.excepthook = told_in_a_line
