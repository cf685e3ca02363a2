"""Which errors end at the user's own line, and which are shown whole."""

import sys
import threading
import traceback
from collections.abc import Callable

import pytest

import ttsim
from ttsim.runtime import tracebacks
from ttsim.runtime.tracebacks import TRACEBACK_VARIABLE, shortened


def raised(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except BaseException as error:
        return error
    raise AssertionError


def text_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def house(body: str) -> Callable[[], object]:
    """A function of a module of ttsim."""
    names = {"__name__": "ops.anything", "ttsim": ttsim}
    exec(compile(f"def call(a=0):\n    {body}", "INSIDE", "exec"), names)
    function: Callable[[], object] = names["call"]
    return function


@pytest.mark.parametrize(
    ("body", "whole"),
    [
        ("raise ttsim.ArgumentError('no')", False),
        ("raise AttributeError('no such name')", False),
        ("raise ImportError('no such module')", False),
        ("raise KeyboardInterrupt", False),
        ("call(1, 2)", False),  # Python's own TypeError
        ("raise TypeError('of a defect')", True),
        ("(lambda: call(1, 2))()", True),
        ("raise ValueError('of a defect')", True),
        ("None.shape", True),
        ("{}['a']", True),
    ],
)
def test_what_is_refused_ends_outside_and_a_defect_is_shown_whole(body: str, whole: bool) -> None:
    error = raised(house(body))
    before = text_of(error)
    with shortened(error):
        short = text_of(error)
    assert "INSIDE" in before
    assert ("INSIDE" in short) is whole
    assert "in raised" in short
    assert text_of(error) == before


def test_all_frames_are_shown_while_the_variable_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    error = raised(lambda: ttsim.relu(1))  # type: ignore[arg-type]
    monkeypatch.setenv(TRACEBACK_VARIABLE, "1")
    with shortened(error):
        assert "call.py" in text_of(error)
    monkeypatch.setenv(TRACEBACK_VARIABLE, "0")
    with shortened(error):
        assert "call.py" not in text_of(error)


def test_causes_that_never_left_ttsim_are_left_out() -> None:
    def of_the_script() -> None:
        try:
            {}["theirs"]
        except KeyError as error:
            raise ttsim.ArgumentError("of the script") from error

    def both() -> None:
        try:
            house("try: {}['ours']\n    except KeyError as e: raise ttsim.ArgumentError('outer') from e")()
        except ttsim.ArgumentError as error:
            raise RuntimeError("of the user") from error

    with shortened(error := raised(both)):
        text = text_of(error)
    assert "KeyError: " not in text
    assert [text.count(word) for word in ("Traceback", "Error: outer", "Error: of the", "INSIDE")] == [2, 1, 1, 0]
    with shortened(error := raised(of_the_script)):
        assert "KeyError: 'theirs'" in text_of(error)


def test_uncaught_errors_of_scripts_and_threads_are_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: texts.append(text_of(error)))
    monkeypatch.setattr(threading, "excepthook", lambda args: texts.append(text_of(args.exc_value)))
    tracebacks.install()
    error = raised(house("raise ttsim.DeviceError"))
    sys.excepthook(type(error), error, error.__traceback__)
    thread = threading.Thread(target=lambda: house("raise ttsim.DeviceError")())
    thread.start()
    thread.join()
    assert len(texts) == 2
    assert all("ttsim.DeviceError" in text and "INSIDE" not in text for text in texts)
