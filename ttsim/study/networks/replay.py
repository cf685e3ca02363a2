"""Replays the calls of a recorded network on any device; the result is a profile of the device."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from device.errors import ArgumentError, TTSimError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import MemoryConfig
from device.spec.device_spec import DeviceSpec
from ops.programs.conv2d.weights import AsWanted
from ttsim.recording.profiling import Profile
from ttsim.runtime.device import Device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.tensor_copies import allocate_tensor_on_device
from ttsim.runtime.traces import CallSite, made_by
from ttsim.study.ask.values import json_of, operation, value_of
from ttsim.study.networks.recorder import CLEARED, FORMAT, KEPT, VERSION, live_tensors

STEPS: Final = ("tensor", "call", "free", "programs")  # a step has one of these keys


@dataclass(frozen=True, slots=True)
class RecordedNetwork:
    """A recorded network; `read_network` reads one.

    Attributes:
        name: The name of its file, without the ending.
        device: The name of the device on which the network was recorded.
        l1_small_size: Bytes of L1 reserved for index tables.
        strict: Whether the device was strict.
        steps: The steps, in the format that recorder.py describes.
    """

    name: str
    device: str
    l1_small_size: int
    strict: bool
    steps: Sequence[Mapping[str, Any]] = field(repr=False)

    @property
    def calls(self) -> int:
        """The number of calls."""
        return sum("call" in step for step in self.steps)

    @property
    def digest(self) -> str:
        """SHA-256 of the steps and the settings, in hexadecimal."""
        whole = [self.l1_small_size, self.strict, list(self.steps)]
        return sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def read_network(path: Path) -> RecordedNetwork:
    """Reads a file of `ttsim exec --record`; raises ArgumentError for another file, OSError for a missing file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    steps: list[Mapping[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            step = json.loads(line)
        except (ValueError, RecursionError):
            step = None
        if not isinstance(step, dict) or (number > 1 and not any(key in step for key in STEPS)):
            raise ArgumentError(f"{path}: line {number} is no step of a recorded network; record it again")
        steps.append(step)
    header = steps[0] if steps else {}
    if header.get(VERSION) != FORMAT:
        raise ArgumentError(
            f"{path} is no recorded network of format {FORMAT}; `ttsim exec --record FILE SCRIPT` writes one"
        )
    try:
        return RecordedNetwork(
            path.stem, str(header["device"]), int(header["l1_small_size"]), bool(header["strict"]), tuple(steps[1:])
        )
    except (KeyError, TypeError, ValueError):
        raise ArgumentError(f"{path}: its first line lacks device, l1_small_size or strict; record it again") from None


@dataclass(frozen=True, slots=True)
class ChangedCall:
    """A call that a replay makes with other arguments, and optionally a memory for a copy of its first result."""

    arguments: Mapping[str, Any]
    place: MemoryConfig | None = None


def written_changes(changes: Mapping[int, ChangedCall]) -> dict[str, Any]:
    """Changed calls by step number, as JSON."""
    return {f"{step}": json_of({"arguments": own.arguments, "place": own.place}) for step, own in changes.items()}


def read_changes(written: Mapping[str, Any]) -> dict[int, ChangedCall]:
    """The changed calls that `written_changes` wrote."""
    return {
        int(step): ChangedCall(
            {name: value_of(each) for name, each in own["arguments"].items()}, value_of(own["place"])
        )
        for step, own in written.items()
    }


class Replay(NamedTuple):
    """The result of a replay."""

    profile: Profile
    steps: tuple[int, ...]  # The step of each call of the profile


def replayed(network: RecordedNetwork, spec: DeviceSpec) -> Profile:
    """The profile of a network's calls; see `replay` for arguments and errors."""
    return replay(network, spec).profile


def replay(
    network: RecordedNetwork, spec: DeviceSpec, changes: Mapping[int, ChangedCall] = MappingProxyType({})
) -> Replay:
    """Makes a network's calls on a device opened with the recorded arguments; ``changes`` are keyed by step.

    Tensors have no values. The script's choices, such as core grids and shard specs, stay; the library chooses the rest
    for this device.

    Raises:
        TTSimError: A call is refused or does not fit; a note of the error says which call.
        ArgumentError: A step is invalid.
    """
    device = Device(spec, l1_small_size=network.l1_small_size, values="off", strict=network.strict, suggestions=False)
    profile = Profile(device)
    device.profilers.append(profile.calls)
    steps = _Replaying(device, network, changes).run(profile)
    return Replay(profile, steps)


class _Replaying:
    """The tensors of a replay by their numbers in the file."""

    def __init__(self, device: Device, network: RecordedNetwork, changes: Mapping[int, ChangedCall]) -> None:
        self.device = device
        self.network = network
        self.changes = changes
        self.tensors: dict[int, Tensor] = {}

    def run(self, profile: Profile) -> tuple[int, ...]:
        """Runs all steps, and returns the steps of the profile's calls; an error gets a note with the step."""
        made: list[int] = []
        for number, step in enumerate(self.network.steps):
            where = f"line {number + 2} of {self.network.name}{_place(step)}"
            try:
                self._read_step(step, where, self.changes.get(number))()
            except TTSimError as error:
                error.add_note(where)
                raise
            made += [number] * (len(profile.calls) - len(made))
        return tuple(made)

    def _read_step(self, step: Mapping[str, Any], where: str, change: ChangedCall | None) -> Callable[[], object]:
        """Parses a step; raises ArgumentError for an invalid step."""
        try:
            if "free" in step:
                return partial(_free, [self.tensors.pop(number) for number in step["free"]])
            if "programs" in step:
                return partial(self._program_cache, step["programs"])
            if "tensor" in step:
                return partial(self._placed, step["tensor"], _spec(step["spec"]))
            args = self._read(step["args"])
            kwargs = {name: self._read(value) for name, value in step["kwargs"].items()}
            sites = tuple(CallSite(*line) for line in step["lines"])
            kwargs |= {} if change is None else change.arguments
            place = None if change is None else change.place
            call = partial(operation(step["call"]), *args, **kwargs)
            return partial(self._called, call, sites, list(step["gives"]), place)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ArgumentError(f"{where} is no step of a network ({error!r}); record the network again") from error

    def _program_cache(self, change: str) -> None:
        if change == CLEARED:
            self.device.clear_program_cache()
        else:
            self.device.machine.keeps_programs = change == KEPT[True]

    def _placed(self, number: int, spec: TensorSpec) -> None:
        self.tensors[number] = allocate_tensor_on_device(spec, self.device)

    def _called(
        self, call: Callable[[], Any], sites: tuple[CallSite, ...], gives: Sequence[int], place: MemoryConfig | None
    ) -> None:
        with made_by(sites):
            made = live_tensors(call())
            if place is not None and made[0].spec.memory_config != place:
                first = made[0]
                made[0] = operation("to_memory_config")(first, place)
                first.deallocate()
        if len(made) != len(gives):
            raise ArgumentError(
                f"the call gave {len(made)} tensors, not {len(gives)} as before; record the network again"
            )
        self.tensors.update(zip(gives, made, strict=True))

    def _read(self, written: Any) -> Any:
        """The argument of a JSON value."""
        if isinstance(written, list):
            return list(map(self._read, written))
        if not isinstance(written, dict):
            return value_of(written)
        if "device" in written:
            return self.device
        if "host" in written:
            tensor = _on_host(_spec(written["host"]))
        elif "tensor" in written:
            tensor = self.tensors[written["tensor"]]
        else:
            return value_of(written)
        if "shape" in written:
            tensor = tensor.seen_as(tensor.spec.changed(shape=tuple(written["shape"])))
        if written.get("prepared") and tensor.created_by is None:
            tensor.created_by = AsWanted()
        return tensor


def _free(tensors: Sequence[Tensor]) -> None:
    for tensor in tensors:
        tensor.deallocate()


def _spec(written: Mapping[str, Any]) -> TensorSpec:
    """The tensor spec that recorder.py wrote."""
    fields = {name: value_of(written[name]) for name in ("dtype", "layout", "memory_config")}
    padding = (written.get("padded_shape"), written.get("alignment"))
    return TensorSpec(written["shape"], fields["dtype"].format, fields["layout"], fields["memory_config"], *padding)


def _on_host(spec: TensorSpec) -> Tensor:
    """A host tensor that takes no memory."""
    return Tensor.of_host(np.broadcast_to(np.zeros((), spec.data_format.storage), spec.shape), spec)


def _place(step: Mapping[str, Any]) -> str:
    """The function of a step and the innermost line of the script, for errors."""
    if not step.get("lines"):
        return ""
    file, line, _ = step["lines"][-1]
    return f": {step.get('call')} ({file}:{line})"
