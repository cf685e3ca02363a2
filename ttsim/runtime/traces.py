"""Traces: calls that a device remembers, with the buffers that they read and wrote, and carries out again.

A replay gives the results that the calls would give on what their inputs hold now: values that one call hands to the
next go from hand to hand, whatever memory they had, and what is still allocated at the end holds its result. It
allocates nothing, and its calls take the time that they took, one after the other: nothing runs at the same time here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from device.errors import DeviceError
from device.memory.buffers import Buffer, Memory
from device.memory.layouts import TensorSpec
from device.numbers.formats import Array
from device.plan import Plan

Read = Callable[[str, Array, TensorSpec], Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCall:
    """A call that was captured."""

    plan: Plan  # What it did
    host: Mapping[str, Array]  # Arrays of its inputs on the host, by their names in the plan
    read: Mapping[str, tuple[Buffer, TensorSpec]]  # Buffers of its inputs on the device, and what tensors they hold
    # Buffers of its results, likewise; of an input that is given back, too
    written: Mapping[str, tuple[Buffer, TensorSpec]]
    reads: Read  # Gives the array of an input as the plan reads it, of what its buffer holds
    # What becomes of the arrays of the inputs; arrays of the results, by name
    values: Callable[[Mapping[str, Array]], Mapping[str, Array]] | None


@dataclass(slots=True)
class Trace:
    """The calls of a capture, in order."""

    calls: list[TracedCall] = field(default_factory=list)  # What was captured
    ran: list[object] = field(default_factory=list)  # The same calls as profiles remember them

    def replay(self, memory: Memory) -> None:
        """Carries out the calls again.

        Args:
            memory: What lies on the device now: a buffer that is gone may have another of its kind in its place, which
                is read instead of it.

        Raises:
            DeviceError: An input that no call of the trace makes was deallocated, and nothing like it lies there.
        """
        made: dict[int, tuple[Buffer, TensorSpec, Array]] = {}
        for call in self.calls:
            if call.values is None:
                continue
            arrays = dict(call.host)
            for name, (buffer, spec) in call.read.items():
                known = made.get(buffer.number)
                if known is None:
                    arrays[name] = call.reads(name, _lying(buffer, memory, name).values, spec)
                else:
                    arrays[name] = call.reads(name, known[2], spec)
            results = call.values(arrays)
            for name, (buffer, spec) in call.written.items():
                stays = results[name] is arrays.get(name) and call.read[name][0] is buffer  # it is given back as it is
                if not stays:
                    made[buffer.number] = (buffer, spec, results[name])
        for buffer, spec, values in made.values():
            if buffer.allocated:
                buffer.store(values, spec)


def _lying(buffer: Buffer, memory: Memory, name: str) -> Buffer:
    """A buffer that a trace reads, or the one that took its place."""
    if buffer.allocated:
        return buffer
    if memory.has(buffer.spec.buffer_type, buffer.address):
        there = memory.at(buffer.spec.buffer_type, buffer.address)
        if there.spec == buffer.spec:
            return there
    raise DeviceError(
        f"execute_trace: the trace reads {name!r}, at {buffer.address}, which was deallocated in the capture or after "
        "it; keep what a trace reads, or put a tensor like it in its place"
    )


@dataclass(frozen=True, slots=True)
class MeshTraceId:
    """The number of a trace on its device."""

    number: int

    def __repr__(self) -> str:
        """As the real library prints it."""
        return f"MeshTraceId({self.number})"


@dataclass(frozen=True, slots=True)
class MeshEvent:
    """A moment on a queue that has passed when it is recorded, since calls have finished when they return."""

    id: int
    device_id: int
    mesh_cq_id: int


@dataclass(slots=True)
class Traces:
    """The traces of a device."""

    capturing: Trace | None = None  # The trace that is being captured; None if there is none
    captured: dict[int, Trace] = field(default_factory=dict)  # Traces by their numbers
    begun: int = 0  # How many were begun
    events: int = 0  # How many events were recorded
