"""Traces: calls that a device remembers, with the buffers that they read and wrote, and carries out again.

A replay gives the results that the calls would give on what their inputs hold now: values that one call hands to the
next go from hand to hand, whatever memory they had, and what is still allocated at the end holds its result. It
allocates nothing, and its calls take the time that they took, one after the other: nothing runs at the same time here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from device.errors import DeviceError
from device.memory.buffers import Buffer
from device.memory.layouts import TensorSpec
from device.numbers.formats import Array
from device.plan import Plan

Read = Callable[[str, Array, TensorSpec], Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCall:
    """A call that was captured.

    Attributes:
        plan: What it did.
        host: Arrays of its inputs on the host, by their names in the plan.
        read: Buffers of its inputs on the device, and what tensors they hold.
        written: Buffers of its results, likewise; of an input that is given back, too.
        reads: Gives the array of an input as the plan reads it, of what its buffer holds.
        values: What becomes of the arrays of the inputs; arrays of the results, by name.
    """

    plan: Plan
    host: Mapping[str, Array]
    read: Mapping[str, tuple[Buffer, TensorSpec]]
    written: Mapping[str, tuple[Buffer, TensorSpec]]
    reads: Read
    values: Callable[[Mapping[str, Array]], Mapping[str, Array]] | None


@dataclass(slots=True)
class Trace:
    """The calls of a capture, in order.

    Attributes:
        calls: What was captured.
        ran: The same calls as profiles remember them.
    """

    calls: list[TracedCall] = field(default_factory=list)
    ran: list[object] = field(default_factory=list)

    def replay(self) -> None:
        """Carries out the calls again.

        Raises:
            DeviceError: An input that no call of the trace makes was deallocated.
        """
        made: dict[int, tuple[Buffer, TensorSpec, Array]] = {}
        for call in self.calls:
            if call.values is None:
                continue
            arrays = dict(call.host)
            for name, (buffer, spec) in call.read.items():
                known = made.get(buffer.number)
                if known is None and not buffer.allocated:
                    raise DeviceError(
                        f"execute_trace: the trace reads {name!r}, {spec.shape}, which was deallocated in the "
                        "capture or after it; keep what a trace reads"
                    )
                arrays[name] = call.reads(name, buffer.values if known is None else known[2], spec)
            results = call.values(arrays)
            for name, (buffer, spec) in call.written.items():
                stays = results[name] is arrays.get(name) and call.read[name][0] is buffer  # it is given back as it is
                if not stays:
                    made[buffer.number] = (buffer, spec, results[name])
        for buffer, spec, values in made.values():
            if buffer.allocated:
                buffer.store(values, spec)


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
    """The traces of a device.

    Attributes:
        capturing: The trace that is being captured; None if there is none.
        captured: Traces by their numbers.
        begun: How many were begun.
        events: How many events were recorded.
    """

    capturing: Trace | None = None
    captured: dict[int, Trace] = field(default_factory=dict)
    begun: int = 0
    events: int = 0
