"""The decorator of every ttnn function on a device: serializes calls per device, cleans up after failures."""

import sys
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
from ttsim.runtime.types.call import wrong

P = ParamSpec("P")
R = TypeVar("R")

MOST_QUEUES = 2  # of a device


def on_device(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: the function waits until its device is free, and its effects on the device are undone if it fails.

    With TTSIM_FALLBACK=host, the host computes calls that are not simulated.

    The device is the argument ``device``, or else the device of the first device tensor among arguments and lists. As
    in ttnn, every function takes a ``queue_id``; here all queues are one.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        device = _device_among((*args, *kwargs.values()))
        if "queue_id" in kwargs:
            _require_queue(kwargs.pop("queue_id"))
        _require_representable(function.__name__, (*args, *kwargs.values()))
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
    """Raises DeviceError for a queue number that no device has."""
    if not (number is None or (isinstance(number, int) and 0 <= number < MOST_QUEUES)):
        raise DeviceError(f"cq_id {shown(number)} is out of range\nqueue_id: leave it out, or give 0 or 1")


def _require_representable(name: str, values: Iterable[object]) -> None:
    """Raises ArgumentTypeError for an integer that no number of the bindings holds, not even a float of 64 bits."""
    for value in values:
        if type(value) is int and value.bit_length() >= sys.float_info.max_exp:
            raise wrong(name, f"an integer of {value.bit_length():,} bits is larger than any number of the library")


def _device_among(values: Iterable[object]) -> Device | None:
    """The first device, or else the device of the first device tensor, including tensors in lists."""
    known = [each for value in values for each in (value if isinstance(value, list | tuple) else (value,))]
    homes = [value.device() for value in known if isinstance(value, Tensor)]
    return next((value for value in (*known, *homes) if isinstance(value, Device)), None)
