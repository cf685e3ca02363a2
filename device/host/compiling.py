"""Loops compiled with numba when numba is installed: rules for modules of loops, and when they are loaded.

A module of compiled loops contains only loops. All loops are decorated with `compiled`, and loops that Python calls
also with `called_with`. The module is imported only if `worth_loading` allows it, because numba takes some 0.3 s to
load; without numba the caller computes the same numbers with numpy. Compiling takes seconds, once per machine: another
process compiles and caches the code on disk, and numpy does the work until then.
"""

import atexit
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from math import inf
from subprocess import DEVNULL, Popen
from threading import Lock
from typing import Any, Final, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

WORTH_SECONDS: Final = 0.3  # what loading numba takes
PACKAGES: Final = ("device", "ops", "ttsim")  # whose loops are ours
BESIDE: Final = (
    "ttsim compiles its loops for this machine in another process, and numpy does their work meanwhile; the code is "
    "kept in {}.\n"
)
HERE: Final = "ttsim compiles its loops for this machine, which takes some seconds; the code is kept in {}.\n"
NOT_KEPT: Final = (
    "ttsim compiles its loops for this machine, which takes some seconds; the code can not be kept, so every process "
    "does so again: name a directory that may be written to, as NUMBA_CACHE_DIR.\n"
)
BROKEN: Final = "ttsim goes on without numba, which cannot be loaded ({}: {}); numpy does its work.\n"
COMPILE: Final = "import sys; sys.path[:] = sys.argv[2:]; __import__(sys.argv[1])"
# Of the process, like the modules that it has loaded.
_READY: Final = set[str]()
_SPENT: Final = dict[str, float]()  # seconds that numpy took, by module
_COMPILERS: Final = dict[str, Popen[bytes]]()  # other processes, by the module that they compile
_LOADING: Final = Lock()
_UNTOLD: Final = iter((True,))  # exhausted by whichever thread tells first
_LOADS_KEPT_CODE_ONLY: Final = ContextVar("loads kept code only", default=False)


class NotKeptError(Exception):
    """A loop's code is not on disk, and the caller does not wait for it; carries the path of the code."""


def numba_installed() -> bool:
    """Whether numba is installed; it is not loaded to find out whether it works."""
    return find_spec("numba") is not None


def worth_loading(module: str, seconds: float) -> bool:
    """Whether compiled loops should do some work; otherwise numpy does it.

    ``module`` is the full name of a module of `compiled` loops. It is loaded when its code is on disk and numpy's total
    time, including this work, reaches the loading time, so a short script never waits for numba. ``seconds`` is numpy's
    time for this work, within 30 %; infinity waits until the module is compiled.
    """
    if module in _READY:
        return True
    _SPENT[module] = _SPENT.get(module, 0.0) + seconds
    if _SPENT[module] < WORTH_SECONDS and "numba" not in sys.modules:
        return False
    if load_numba() is None:
        return False
    with _LOADING:
        if module not in _READY and _load(module, waits=seconds == inf):
            _READY.add(module)
    return module in _READY


def loops_of(module: str) -> Any:
    """A module of compiled loops that is worth loading; importlib takes many times as long to find it again."""
    return sys.modules[module] if module in _READY else importlib.import_module(module)


def _load(module: str, *, waits: bool) -> bool:
    """Whether a module is loaded now; if it has to be compiled before, another process begins to."""
    if waits and module in _COMPILERS:
        _COMPILERS[module].wait()
    if waits or (module in _COMPILERS and _COMPILERS[module].poll() is not None):
        importlib.import_module(module)  # which compiles what the other process did not
        return True
    if any(compiler.poll() is None for compiler in _COMPILERS.values()):
        return False
    try:
        with _kept_code_only():
            importlib.import_module(module)
    except NotKeptError as missing:
        if not _begin_to_compile(module):
            return _load(module, waits=True)
        _tell(BESIDE.format(missing))
        return False
    return True


def _begin_to_compile(module: str) -> bool:
    """Starts a process that compiles the module; whether it could."""
    if not sys.executable:
        return False
    try:
        _COMPILERS[module] = compiler = Popen(
            [sys.executable, "-c", COMPILE, module, *sys.path], stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
        )
    except OSError:
        return False
    atexit.register(_leave, compiler)
    return True


def _leave(compiler: "Popen[bytes]") -> None:
    """Lets a process outlive this process without a ResourceWarning; its results are for the next process."""
    if compiler.poll() is None:
        compiler.returncode = 0


@contextmanager
def _kept_code_only() -> Iterator[None]:
    """Loops whose code is not on disk raise `NotKeptError` instead of being compiled."""
    token = _LOADS_KEPT_CODE_ONLY.set(True)
    try:
        yield
    finally:
        _LOADS_KEPT_CODE_ONLY.reset(token)


@cache
def load_numba() -> Any:
    """The module numba; None if it is not installed or cannot be loaded: not with this numpy, or not in this memory."""
    try:
        numba = importlib.import_module("numba")
        _listen_to_compiling()
    except ImportError:
        return None
    except Exception as error:  # LLVM that cannot be mapped is an OSError, and numba may raise what it likes
        _tell(BROKEN.format(type(error).__name__, error))
        return None
    return numba


def _listen_to_compiling() -> None:
    """Has numba tell when a loop of ours is to be compiled, which it does where no code is found on disk."""
    event = importlib.import_module("numba.core.event")

    def on_start(listener: object, compiling: Any) -> None:
        loop = compiling.data["dispatcher"]
        if loop.py_func.__module__.partition(".")[0] not in PACKAGES:
            return
        place = loop.stats.cache_path
        if place and _LOADS_KEPT_CODE_ONLY.get():
            raise NotKeptError(place)
        _tell(HERE.format(place) if place else NOT_KEPT)

    listener = type("Listener", (event.Listener,), {"on_start": on_start, "on_end": lambda *_: None})
    event.register("numba:compile", listener())


def _tell(sentence: str) -> None:
    """Prints to stderr, once in a process."""
    if next(_UNTOLD, False):
        sys.stderr.write(sentence)


def compiled(function: Function, *, fuses: bool = True) -> Function:
    """``function`` compiled to machine code that releases the GIL; without numba the function itself.

    The code is cached on disk if a folder is writable. The cache does not notice changes in other files: after editing
    a dependency in another file, change the function's own file as well. With ``fuses``, a multiplication and an
    addition may become one instruction, which rounds once.
    """
    numba = load_numba()
    if numba is None:
        return function
    options = {"nogil": True, "fastmath": {"contract"} if fuses else False, "error_model": "numpy"}
    try:
        return cast(Function, numba.njit(cache=True, **options)(function))
    except RuntimeError:
        return cast(Function, numba.njit(**options)(function))


def called_with(*signatures: str) -> Callable[[Function], Function]:
    """A decorator for loops that Python calls; compiles one version for each of the numba signatures.

    Calls with other argument types wait for compilation. The most common signature comes last: it is loaded with the
    module, the others at their first call. Without a cache on disk, all are compiled in this order.
    """

    def load(loop: Function) -> Function:
        if not hasattr(loop, "compile"):  # without numba, and where it is told to compile nothing
            return loop
        parse = importlib.import_module("numba.core.sigutils").normalize_signature
        kinds = [parse(signature)[0] for signature in signatures]  # as calls ask for, which the code is kept by
        try:
            with _kept_code_only():
                cast(Any, loop).compile(kinds[-1])
        except NotKeptError:
            if _LOADS_KEPT_CODE_ONLY.get():
                raise
            for kind in kinds:
                cast(Any, loop).compile(kind)
        return loop

    return load


def readonly(dtype: str, axes: int, layout: str = "C") -> str:
    """Word for an array that is only read, for `called_with`."""
    return f"Array({dtype}, {axes}, {layout!r}, readonly=True)"
