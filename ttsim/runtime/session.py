"""The state of a thread (captures, dispatch), and the locks that let threads share a device."""

import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from threading import get_ident
from typing import Any, ParamSpec, TypeVar
from weakref import ReferenceType

from device.machine import Machine
from device.plan import Event
from ops.op_model import OpModels


class Capture:
    """A list of events; every device that is used while the capture runs appends its events."""

    def __init__(self, *, dispatch: bool) -> None:
        self.dispatch = dispatch  # Whether captured calls run; otherwise nothing is placed and addresses are 0
        self.events: list[Event] = []  # What happened, in order
        self.op_models: OpModels = {}  # The models of operations of the devices that it listens to
        self._machines: list[Machine] = []

    def listen(self, machine: Machine, op_models: OpModels) -> None:
        """Records the events of a device from now on; calling it twice is harmless."""
        if machine not in self._machines:
            self._machines.append(machine)
            self.op_models = {**self.op_models, **op_models}
            machine.recorders.append(self.events)

    def stop(self) -> None:
        """Ends the recording."""
        for machine in self._machines:
            machine.recorders[:] = [recorder for recorder in machine.recorders if recorder is not self.events]
        self._machines.clear()


@dataclass(frozen=True, slots=True)
class Session:
    """The state between calls."""

    captures: tuple[Capture, ...] = ()  # Running captures, outermost first
    default_device: object = None  # The device set by SetDefaultDevice, as an object of ttsim
    opened: tuple[ReferenceType[Any], ...] = ()  # Devices that were opened, as objects of ttsim, oldest first
    watchers: tuple[Callable[[object], None], ...] = ()  # Called with every device that is opened
    tensors: int = 0  # How many tensors were asked for their number

    @property
    def dispatch(self) -> bool:
        """Whether calls run; a capture without dispatch disables them."""
        return all(capture.dispatch for capture in self.captures)


_SESSION: ContextVar[Session] = ContextVar("ttsim session", default=Session())  # noqa: B039 - frozen


def current() -> Session:
    """The state of this thread."""
    return _SESSION.get()


def remember(session: Session) -> None:
    """Replaces the state of this thread."""
    _SESSION.set(session)


P = ParamSpec("P")
R = TypeVar("R")


def locked(machine: Machine, function: Callable[[], R]) -> R:
    """The result of ``function``, run while no other thread uses the machine; a failure undoes its effects."""
    mine = get_ident()
    if machine.caller == mine:
        return function()
    moment = None
    try:
        machine.turn.take()
        machine.caller = mine
        moment = machine.begin()
        result = function()
        _give_up(machine, mine)
        return result
    except BaseException as error:
        if moment is not None:
            machine.roll_back(moment, programs=not isinstance(error, Exception))
        _give_up(machine, mine)
        raise


def _give_up(machine: Machine, mine: int) -> None:
    """Releases the device for the next thread; calling it twice is harmless."""
    if machine.caller == mine:
        machine.caller = None
    machine.turn.give()


def outside_graphs(function: Callable[P, R]) -> Callable[P, R]:
    """The function, excluded from the graphs of torch.compile."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if "torch._dynamo" not in sys.modules:  # nothing is compiled
            return function(*args, **kwargs)
        untraced: Callable[P, R] | None = getattr(function, "untraced", None)
        if untraced is None:
            untraced = import_module("torch").compiler.disable(function)
            function.untraced = untraced  # type: ignore[attr-defined]
        return untraced(*args, **kwargs)

    return call
