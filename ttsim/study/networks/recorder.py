"""Records the calls that a script makes on a device, and writes them as a file of JSON lines.

The first line is the header: the version of the format, the device, and the arguments that opened it. Every other line
is one step, in order:

- ``{"tensor": 3, "spec": {..}}``: a tensor was copied to the device from the host;
- ``{"call": "conv2d", "args": [..], "kwargs": {..}, "gives": [4], "lines": [..]}``: a call, the numbers of the tensors
  that it returned, and the lines of the script that made the call, the outermost first;
- ``{"free": [3]}``: tensors were freed since the step before;
- ``{"programs": "cleared"}``: the program cache was cleared; "kept" or "not kept": it was enabled or disabled.

Arguments have the form that `ttsim ask` reads (ttsim/study/ask/values.py); a device tensor, a host tensor and the
device are objects with the key ``tensor``, ``host`` or ``device``. Values of tensors are not written.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from inspect import unwrap
from os.path import basename
from typing import Any, Final

from device.errors import ArgumentError, TTSimError
from device.memory.buffers import Buffer
from device.memory.layouts import TensorSpec
from ttsim.runtime.device import Device
from ttsim.runtime.queried import tensors_of
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.traces import call_sites
from ttsim.runtime.types.tensors import DataType
from ttsim.study.ask.values import NAMESPACES, face, json_of, operation

FORMAT: Final = 1  # raised when a key changes its meaning or goes
VERSION: Final = "ttsim_network"  # the key of the format in the header
FREES: Final = "deallocate"
CLEARED: Final = "cleared"
KEPT: Final = {True: "kept", False: "not kept"}


class Recorder:
    """Records the steps of a device; it listens to the device from its construction on."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.steps: list[dict[str, Any]] = []
        self.refusal = ""  # Why the steps cannot be written; empty if they can
        # What lies on the device, by the number of its buffer: its number here, and how it was described last
        self._live: dict[int, tuple[int, Buffer, TensorSpec]] = {}
        self._numbered = 0
        self._keeps, self._programs = True, 0  # Whether programs are cached, and how many were after the last call
        device.listeners.append(self)

    def placed(self, buffer: Buffer, spec: TensorSpec) -> None:
        """Records a tensor that was copied to the device."""
        self._between()
        self.steps.append({"tensor": self._number(buffer, spec), "spec": written_spec(spec)})

    def begun(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The step of a call that begins, while all tensors that it reads exist."""
        self._between()
        name = public_names().get(unwrap(function), function.__name__)
        if name == FREES:  # its effect is told before the next step
            return {"call": name}
        try:
            return {
                "call": name,
                "args": self._written(args),
                "kwargs": {key: self._written(value) for key, value in kwargs.items()},
                "lines": [[basename(site.file), site.line, site.function] for site in call_sites()],
            }
        except TTSimError as error:
            self.refusal = self.refusal or f"{name}: {error}"
            return {"call": name}

    def ended(self, step: dict[str, Any], result: Any) -> None:
        """Records a call that has returned; a failed call leaves no step."""
        if step["call"] == FREES:
            return
        step["gives"] = [self._number(tensor.buffer, tensor.spec) for tensor in live_tensors(result)]
        self.steps.append(step)
        self._programs = len(self.device.machine.program_cache)

    def text(self) -> str:
        """The file; raises ArgumentError if a call cannot be written."""
        device = self.device
        if len(device.devices) > 1:
            raise ArgumentError("record: the calls of a mesh of several devices are not recorded; open one device")
        if self.refusal:
            raise ArgumentError(f"record: a call cannot be written: {self.refusal}")
        small = device.machine.l1_small_bytes
        header = {VERSION: FORMAT, "device": device.spec.name, "l1_small_size": small, "strict": device.strict}
        return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in (header, *self.steps))

    def _number(self, buffer: Buffer, spec: TensorSpec) -> int:
        """A number for a buffer that is new or has a new spec."""
        if buffer.number in self._live:
            number, *_ = self._live[buffer.number]
        else:
            number, self._numbered = self._numbered, self._numbered + 1
        self._live[buffer.number] = number, buffer, spec
        return number

    def _between(self) -> None:
        """Records changes since the last step: freed tensors, and the program cache.

        Buffers that a call allocates and frees are not recorded.
        """
        gone = [key for key, (_, buffer, _) in self._live.items() if not buffer.allocated]
        if gone:
            self.steps.append({"free": sorted(self._live.pop(key)[0] for key in gone)})
        machine = self.device.machine
        if len(machine.program_cache) < self._programs:
            self.steps.append({"programs": CLEARED})
            self._programs = len(machine.program_cache)
        if machine.keeps_programs is not self._keeps:
            self._keeps = machine.keeps_programs
            self.steps.append({"programs": KEPT[self._keeps]})

    def _written(self, value: Any) -> Any:
        """An argument as JSON; raises ArgumentTypeError for an argument without a JSON form."""
        if isinstance(value, Tensor):
            return self._tensor(value)
        if value is self.device:
            return {"device": value.device_id}
        if type(value) in (list, tuple):
            return list(map(self._written, value))
        return json_of(value)

    def _tensor(self, tensor: Tensor) -> dict[str, Any]:
        prepared = {} if tensor.created_by is None else {"prepared": True}
        if tensor.device() is None:
            return {"host": written_spec(tensor.spec), **prepared}
        known = self._live.get(tensor.buffer.number)
        if known is None:
            raise ArgumentError("a tensor was on the device before the recording began")
        number, _, spec = known
        return {"tensor": number, **prepared, **({} if spec == tensor.spec else {"shape": list(tensor.spec.shape)})}


def text_of(recorders: Sequence[Recorder]) -> str:
    """The file of the one device that made calls; raises ArgumentError if there is none, or several."""
    called = [recorder for recorder in recorders if recorder.steps]
    if len(called) != 1:
        raise ArgumentError(
            f"record: {len(called)} devices made calls; a recorded network is what one device does: open one"
        )
    return called[0].text()


def live_tensors(result: Any) -> list[Tensor]:
    """The allocated device tensors among the return values of a call, in order."""
    return [tensor for tensor in tensors_of(result) if tensor.is_allocated()]


def written_spec(spec: TensorSpec) -> dict[str, Any]:
    """A tensor spec as JSON; includes the padding only if it is not the default."""
    usual = TensorSpec(spec.shape, spec.data_format, spec.layout, spec.memory_config)
    named = {"dtype": DataType.of(spec.data_format), "layout": spec.layout, "memory_config": spec.memory_config}
    padding = {} if spec == usual else {"padded_shape": list(spec.padded_shape), "alignment": list(spec.alignment)}
    return {"shape": list(spec.shape), **{name: json_of(value) for name, value in named.items()}, **padding}


@cache
def public_names() -> Mapping[Callable[..., Any], str]:
    """The names of all operations that ttsim plans, keyed by their undecorated functions."""
    found: dict[Callable[..., Any], str] = {}
    for namespace in NAMESPACES:
        for name in dir(face(namespace)):
            full = f"{namespace}.{name}".lstrip(".")
            with suppress(ArgumentError):
                found.setdefault(unwrap(operation(full)), full)
    return found
