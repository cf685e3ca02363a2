"""The door of every function of ttnn that works on a device: its turn on the device, and what follows a failure."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar, cast

from device.errors import DeviceError, NotSimulatedError, shown
from ttsim.runtime.device import Device
from ttsim.runtime.execution import locked_on
from ttsim.runtime.fallback import instead
from ttsim.runtime.session import outside_graphs
from ttsim.runtime.settings import falls_back
from ttsim.runtime.tensor import Tensor

P = ParamSpec("P")
R = TypeVar("R")

MOST_QUEUES = 2  # of a device


def on_device(function: Callable[P, R]) -> Callable[P, R]:
    """A function of the library that waits for its turn on its device, and leaves no trace there when it fails.

    What is not simulated is computed by the host where TTSIM_FALLBACK=host asks for it.

    The device is the argument of this name, or else that of the first tensor on one, alone or in a list. As in ttnn,
    every function takes a ``queue_id``, which chooses among the queues of a device; here all queues are one.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        device = _device_among((*args, *kwargs.values()))
        if "queue_id" in kwargs:
            _require_queue(kwargs.pop("queue_id"))
        if device is None:
            return function(*args, **kwargs)
        arguments = (*kwargs.items(), *((str(at), value) for at, value in enumerate(args)))

        def called() -> R:
            if device.given:
                return function(*args, **kwargs)
            device.given = arguments
            told = [(listener, listener.begun(function, args, kwargs)) for listener in device.listeners]
            result = function(*args, **kwargs)
            device.given = ()
            for listener, begun in told:
                listener.ended(begun, result)
            return result

        try:
            return locked_on(device, called)
        except BaseException as error:
            if device.given is arguments:
                device.given = ()
            if isinstance(error, NotSimulatedError) and falls_back():
                return cast(R, instead(function.__name__, args, kwargs, error))
            raise

    return outside_graphs(call)


def _require_queue(number: object) -> None:
    """Raises DeviceError for a number that no device has a queue of."""
    if not (number is None or (isinstance(number, int) and 0 <= number < MOST_QUEUES)):
        raise DeviceError(f"cq_id {shown(number)} is out of range\nqueue_id: leave it out, or give 0 or 1")


def _device_among(values: Iterable[object]) -> Device | None:
    """The first device, or else the device of the first tensor on one, also in a list such as that of `concat`."""
    known = [each for value in values for each in (value if isinstance(value, list | tuple) else (value,))]
    homes = [value.device() for value in known if isinstance(value, Tensor)]
    return next((value for value in (*known, *homes) if isinstance(value, Device)), None)
