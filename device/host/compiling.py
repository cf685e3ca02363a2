"""Loops as machine code where numba is installed: how a module of them is written, and when it is loaded.

A module of compiled loops decorates them with `compiled` and is imported by nobody at the top of a file, but where
`worth_loading` says so, since numba takes some 0.3 s to load. It holds loops alone; without numba its caller does the
same in numpy, with the same numbers.
"""

import importlib
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, Final, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

WORTH_SECONDS: Final = 0.3  # what loading numba takes
PACKAGES: Final = ("device", "ops", "ttsim")  # whose loops are ours
KEPT: Final = "the code is kept in {}."
NOT_KEPT: Final = (
    "the code can not be kept, so every process does so again: name a directory that may be written to, as "
    "NUMBA_CACHE_DIR."
)
_UNTOLD: Final = iter((True,))  # exhausted by whichever thread tells first
_SPENT: Final = dict[str, float]()  # seconds that numpy took, by module: like what is loaded, of the process


def numba_installed() -> bool:
    """Whether numba is installed; it is not loaded to find out whether it works."""
    return find_spec("numba") is not None


def worth_loading(module: str, seconds: float) -> bool:
    """Whether a module of compiled loops is to do some work; if not, numpy is.

    A short script should not wait for what it does not need, a long one not do without it: a module is loaded once
    numpy has taken as long as loading takes, this work included. A module that is there costs nothing.

    Args:
        module: Its full name; it decorates its loops with `compiled`.
        seconds: What numpy would take for this work, some 30 % more or less.
    """
    if module not in sys.modules:
        _SPENT[module] = _SPENT.get(module, 0.0) + seconds
        if _SPENT[module] < WORTH_SECONDS and "numba" not in sys.modules:
            return False
    return load_numba() is not None


@cache
def load_numba() -> Any:
    """The module numba; None if it is not installed or does not get along with this numpy."""
    try:
        numba = importlib.import_module("numba")
    except ImportError:
        return None
    _tell_of_compiling()
    return numba


def _tell_of_compiling() -> None:
    """Lets numba say on stderr when the first loop of ours is compiled in a process: it takes seconds, if rarely."""
    event = importlib.import_module("numba.core.event")

    def on_start(listener: object, compiling: Any) -> None:
        loop = compiling.data["dispatcher"]
        if loop.py_func.__module__.partition(".")[0] in PACKAGES and next(_UNTOLD, False):
            kept = KEPT.format(loop.stats.cache_path) if loop.stats.cache_path else NOT_KEPT
            sys.stderr.write(f"ttsim compiles its loops for this machine, which takes some seconds; {kept}\n")

    listener = type("Teller", (event.Listener,), {"on_start": on_start, "on_end": lambda *_: None})
    event.register("numba:compile", listener())  # which happens where no code is found on disk


def compiled(function: Function, *, fuses: bool = True) -> Function:
    """``function`` as machine code that lets other threads run; without numba as it is.

    The code is kept on disk, unless there is no place that may be written to. A function's cache does not notice
    changes in other files: after editing what it takes from them, change its own file too.

    Args:
        function: What is compiled when it is first called.
        fuses: Whether a multiplication and an addition may become one instruction, which rounds once.
    """
    numba = load_numba()
    if numba is None:
        return function
    options = {"nogil": True, "fastmath": {"contract"} if fuses else False, "error_model": "numpy"}
    try:
        return cast(Function, numba.njit(cache=True, **options)(function))
    except RuntimeError:
        return cast(Function, numba.njit(**options)(function))
