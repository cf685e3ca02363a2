"""Errors of the machine, and of what is asked of it; `ttsim.errors` draws their tree.

Every message names the rule, the value and the way out. Where the real library has a text of its own, that text is
the first line. Each class keeps the built-in base that users of the real library catch.
"""

import difflib
from collections.abc import Iterable
from typing import Final

LONGEST_SHOWN: Final = 60  # characters of a value in an error


class TTSimError(Exception):
    """Whatever the simulator refuses."""


class SpecError(TTSimError, ValueError):
    """A device description is incomplete, misspelled or contradicts itself."""


class ArgumentError(TTSimError, ValueError, RuntimeError):
    """Arguments contradict each other or the rules of what is asked for, or ask for what is not simulated.

    A RuntimeError as well, because that is what the real library raises for them.
    """


class ArgumentIndexError(ArgumentError, IndexError):
    """An index lies beyond a tensor; an IndexError as well, which ends a loop over a tensor."""


class ArgumentTypeError(TTSimError, TypeError):
    """An argument is unknown, missing, given twice or of the wrong type."""


class DeviceError(TTSimError, RuntimeError):
    """The machine refuses to do what it was asked."""


class OutOfMemoryError(DeviceError):
    """No free block of a memory is large enough for a buffer."""


class CircularBufferError(DeviceError):
    """The circular buffers of a program are larger than L1, or meet the L1 buffers that live above them."""


class MemoryAccessError(DeviceError):
    """Memory outside every buffer, or of a freed buffer, was read or written."""


class PoisonError(MemoryAccessError):
    """Memory was read that nobody has written."""


class DeviceClosedError(DeviceError):
    """A closed device was asked to allocate."""


for _error in [value for value in globals().values() if isinstance(value, type) and issubclass(value, TTSimError)]:
    _error.__module__ = "ttsim"  # where users find it: a traceback shows this name


def shown(value: object, longest: int = LONGEST_SHOWN) -> str:
    """A value in an error: as Python writes it, or what it is where that takes more than ``longest`` characters."""
    try:
        text = repr(value)
    except Exception:  # a value whose own text fails
        text = ""
    if 0 < len(text) <= longest and "\n" not in text:
        return text
    kind = type(value)
    if isinstance(value, str | bytes):
        return f"{value[: longest // 2]!r}... ({len(value)} characters)"
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"a {name}"


def nearest(name: str, known: Iterable[str]) -> str:
    """``", did you mean ...?"`` with the one known name that begins with ``name``, or else is spelled most like it.

    Empty if there is no such name.
    """
    names = list(known)
    longer = [other for other in names if name and other.startswith(name)]
    close = longer if len(longer) == 1 else difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f", did you mean {close[0]!r}?" if close else ""
