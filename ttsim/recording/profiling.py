"""What calls take: a profile of all calls of a ``with`` block, and the estimate of a single one."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from device.errors import ArgumentTypeError, shown
from ttsim.recording.timing import timed_call
from ttsim.report.cycles.report import CycleReport, cycle_report
from ttsim.runtime.device import Device, RanCall
from ttsim.runtime.session import current, remember
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.turns import in_turn
from ttsim.types.signature import require_type


class Profile:
    """The calls made on a device while a profile runs; ``profile`` makes it.

    Attributes:
        device: Where.
        calls: What ran, in order.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.calls: list[RanCall] = []

    def report(self) -> CycleReport:
        """The cycles of all calls that have run so far; the profile may go on."""
        timed = [timed_call(call, self.device.spec, meanings=self.device.meanings) for call in self.calls if call.ran]
        return cycle_report(timed, self.device.spec)


def profile(device: Device) -> AbstractContextManager[Profile]:
    """Records the calls of a ``with`` block on one device; profiles may nest, and devices do not disturb each other.

    Calls that a graph capture does not dispatch take no time and are left out. A device opened with ``cycles=False``
    records nothing.

    Raises:
        ArgumentTypeError: It is no device.
    """
    require_type("profile", Device, device=device)
    return _profile(device)


@contextmanager
def _profile(device: Device) -> Iterator[Profile]:
    """The profile of a ``with`` block."""
    made = Profile(device)
    device.profilers.append(made.calls)
    try:
        yield made
    finally:
        device.profilers[:] = [one for one in device.profilers if one is not made.calls]


def estimate_cycles(function: Callable[..., Any], /, *arguments: Any, device: Device, **options: Any) -> CycleReport:
    """What a call would take, without making it: it is planned on a copy of the device's memory, without values.

    Args:
        function: A function of this library that takes a device, such as ``ttsim.conv_transpose2d``.
        *arguments: Of the call.
        device: Where it would run; it stays as it is, and so do the tensors.
        **options: Of the call.

    Raises:
        Exception: Whatever the call raises, for example because it does not fit.
    """
    require_type("estimate_cycles", Device, device=device)
    if not callable(function):
        raise ArgumentTypeError(
            f"estimate_cycles: function must be one of this library, such as ttsim.conv_transpose2d, not "
            f"{shown(function)}"
        )
    copy = Device(device.spec, device_id=device.device_id, values="off", strict=device.strict, meanings=device.meanings)
    copy.machine = in_turn(device.machine, device.machine.copy)
    given = [_twin(value, device, copy) for value in arguments]
    named = {name: _twin(value, device, copy) for name, value in options.items()}
    before = current()
    remember(replace(before, captures=()))
    try:
        with profile(copy) as made:
            function(*given, device=copy, **named)
    finally:
        remember(before)
        copy.close()
    return made.report()


def _twin(value: Any, device: Device, copy: Device) -> Any:
    """A tensor on the device as one on its copy; anything else as it is."""
    if not isinstance(value, Tensor) or value.device() is not device or not value.is_allocated():
        return value
    buffer = copy.machine.memory.at(value.buffer.spec.buffer_type, value.buffer_address())
    return Tensor.of_buffer(copy, buffer, value.spec)
