"""Where in a script a call is made: the lines of it that run at the moment."""

import sys
import sysconfig
from functools import lru_cache
from os import sep
from pathlib import Path
from typing import Final, NamedTuple

_HOME: Final = Path(__file__).resolve().parents[2]
_OWN: Final = tuple(f"{_HOME / name}{sep}" for name in ("ttsim", "ops", "device"))
_INSTALLED: Final = tuple(sysconfig.get_path(name) + sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_NOT_OF_A_SCRIPT: Final = (*_OWN, *_INSTALLED, "<frozen ")
_MOST_FILES: Final = 4096  # told apart from each other without a look at their names


class CallSite(NamedTuple):
    """A line of a script."""

    file: str  # As Python names it
    line: int  # Counted from 1


def script_sites() -> tuple[CallSite, ...]:
    """The lines that run in this thread, outermost first, without this library's and those of installed packages."""
    found = []
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if _of_a_script(file):
            found.append(CallSite(file, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(reversed(found))


@lru_cache(_MOST_FILES)
def _of_a_script(file: str) -> bool:
    """Whether a file is neither this library's nor an installed package's."""
    return not file.startswith(_NOT_OF_A_SCRIPT)
