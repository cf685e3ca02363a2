"""A call that a device carried out, as profiles remember it."""

import sys
import sysconfig
from dataclasses import dataclass
from functools import lru_cache
from os import sep
from pathlib import Path
from typing import Final, NamedTuple

from device.plan import BufferAllocated, Event, MadeTensor, Plan
from ops.planners.conv.arguments import ConvArguments

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RanCall:
    """A call that a device carried out, as profiles remember it."""

    function: str  # The function of the library that was called
    plan: Plan  # What it did
    # Indices of the plan's steps whose device operations ran, in order: a tensor that is to be moved stays where it is
    # if there is no better place
    ran: tuple[int, ...]
    useful_flops: int | None = None  # Multiplications and additions of its definition; None if it has none of its own
    # The arguments of a convolution, as its caller gave them; None for any other call
    asked: ConvArguments | None = None
    # What the script gave to the function, by name or number, for `texts` to tell; none where nobody knows
    given: tuple[tuple[str, object], ...] = ()
    sites: tuple[CallSite, ...] = ()  # The script's lines that ran meanwhile, outermost first
    before: tuple[BufferAllocated, ...] = ()  # What lay in its memories when it began, oldest first
    events: tuple[Event, ...] = ()  # What happened on the device meanwhile
    inputs: tuple[tuple[str, MadeTensor], ...] = ()  # What it read that was on the device already, by name in the plan
    results: tuple[tuple[str, MadeTensor], ...] = ()  # What it returned, likewise
    error: str = ""  # Why it did not fit; empty if it did. Nothing ran then, and the events are those of its planning.
