"""Shortens the tracebacks of refusals of ttsim: they end at the user's own line, without frames inside ttsim.

Importing ttsim installs hooks for uncaught errors (`install`), so calls cost nothing; `ttsim exec` and the pytest
plugin shorten tracebacks themselves. An error that ttsim does not raise on purpose is a defect of ttsim, and its
traceback is not shortened.
"""

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from opcode import opmap
from types import FrameType, TracebackType

TRACEBACK_VARIABLE = "TTSIM_TRACEBACK"  # "1" shows all frames
_HOUSE = frozenset({"device", "ops", "ttsim"})
_DYNAMO = "torch._dynamo"  # whose wrapper stands around ttsim's functions once torch has loaded it (`outside_graphs`)
_HIDDEN = _HOUSE | sys.stdlib_module_names | {_DYNAMO}
_WRAPPER = "call"  # the function of a decorator that calls the decorated function
_RAISE = opmap["RAISE_VARARGS"]
_UNEXPECTED = re.compile(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'")
_WRONG_CALL = re.compile(r"\w+\(\) (got|missing|takes) ")  # how a TypeError begins that Python raises for a call


def install() -> None:
    """Makes Python's hooks for uncaught errors print shortened tracebacks; hooks that were set before still run."""
    before, before_in_threads = sys.excepthook, threading.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        with shortened(error):
            before(kind, error, error.__traceback__)

    def hook_of_threads(args: threading.ExceptHookArgs) -> None:
        error = args.exc_value or args.exc_type()
        with shortened(error):
            before_in_threads(threading.ExceptHookArgs((args.exc_type, error, error.__traceback__, args.thread)))

    sys.excepthook, threading.excepthook = hook, hook_of_threads


@contextmanager
def shortened(error: BaseException) -> Iterator[None]:
    """A context that removes the frames of ttsim from an error and its causes, if the error is a refusal of ttsim.

    Causes with only frames of ttsim are dropped. Nothing is removed while TTSIM_TRACEBACK is set to a value other than
    0. An error for a misspelled keyword of a ttsim function gets a note.
    """
    notes, hint = list(getattr(error, "__notes__", ())), _spelling(error)
    if hint:
        error.add_note(hint)
    links: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in links and os.environ.get(TRACEBACK_VARIABLE, "0") in ("", "0"):
        links.append(link)
        link = _cause(link)
    before = [(link, link.__traceback__, link.__cause__, link.__context__, link.__suppress_context__) for link in links]
    try:
        for link in filter(_refused, links):
            link.__traceback__ = outside(link.__traceback__)
            if (cause := _cause(link)) is not None and outside(cause.__traceback__) is None:
                link.__cause__ = None  # which leaves the context out, too
        yield
    finally:
        for link, trace, cause, context, suppressed in before:
            link.__traceback__, link.__cause__, link.__context__ = trace, cause, context
            link.__suppress_context__ = suppressed
        if hint:
            error.__notes__ = notes


def outside(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without frames of ttsim and of Python's standard library; None if no frame is left."""
    shown = None
    for frame in reversed(_frames(trace)):
        if _package(frame.tb_frame) not in _HIDDEN:
            shown = TracebackType(shown, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return shown


def _frames(trace: TracebackType | None) -> list[TracebackType]:
    """The parts of a traceback, outermost first."""
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    return frames


def user_level() -> int:
    """The number of ttsim frames above the user's frame, for the ``stacklevel`` of a warning."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _package(frame) in _HOUSE | {_DYNAMO}:
        frame, level = frame.f_back, level + 1
    return level


def _package(frame: FrameType) -> str:
    """The package of a frame's code; fixtures of the plugin count as test code."""
    name = str(frame.f_globals.get("__name__", ""))
    if name.startswith(f"{_DYNAMO}."):
        return _DYNAMO
    return "" if name == "ttsim.dropin.pytest_plugin" else name.partition(".")[0]


def _cause(error: BaseException) -> BaseException | None:
    """The error that Python prints above an error."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _spelling(error: BaseException) -> str:
    """The likely keyword, if Python found an unexpected keyword in a call of a ttsim function; else ""."""
    found = _UNEXPECTED.fullmatch(str(error)) if type(error) is TypeError else None
    frames = _frames(error.__traceback__)
    if found is None or not frames:
        return ""
    name, keyword = found.groups()
    function = vars(sys.modules["ttsim"]).get(name)  # where functions stand that were called
    if not callable(function) or frames[-1].tb_frame.f_globals.get(name, function) is not function:
        return ""
    known = import_module("inspect").signature(function).parameters
    near = import_module("device.errors").nearest(keyword, known) or f"; there are {', '.join(known)}"
    return f"{name}: there is no {keyword!r}{near}"


def _refused(error: BaseException) -> bool:
    """Whether ttsim raised an error on purpose, was called with wrong arguments, or was interrupted."""
    if isinstance(error, KeyboardInterrupt):
        return True
    frames = _frames(error.__traceback__)
    if not frames or _package(frames[-1].tb_frame) not in _HOUSE:
        return False
    if isinstance(error, AttributeError | ImportError):  # of a name that is missing; others are defects
        return frames[-1].tb_frame.f_code.co_code[frames[-1].tb_lasti] == _RAISE
    if type(error) is TypeError:  # Python's own, of the function that the user calls through decorators
        inside = {part.tb_frame.f_code.co_name for part in frames if _package(part.tb_frame) in _HOUSE}
        return inside == {_WRAPPER} and _WRONG_CALL.match(str(error)) is not None
    return type(error).__module__.partition(".")[0] in _HOUSE
