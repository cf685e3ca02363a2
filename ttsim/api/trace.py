"""ttnn's functions for traces, events and queues.

There is one queue, and calls have finished when they return: events have passed when they are recorded, a second queue
is the same queue, and time is serial.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from device.errors import ArgumentError, shown
from ttsim.runtime.device import Device
from ttsim.runtime.session import locked
from ttsim.runtime.traces import MeshEvent, MeshTraceId, RanCall, Trace
from ttsim.runtime.types.call import require_type


class QueueId(int):
    """The number of a command queue; all of them are the same queue here."""

    __slots__ = ()

    def __repr__(self) -> str:
        """As the real library prints it."""
        return f"QueueId({int(self)})"


@contextmanager
def command_queue(cq_id: int) -> Iterator[None]:
    """For the length of a ``with`` block, calls go to a queue: where all calls go; raises ArgumentError without one."""
    if cq_id is None:
        raise ArgumentError("cq_id cannot be None in command_queue context\ncommand_queue: give 0 or 1")
    yield


def get_current_command_queue_id_for_thread() -> QueueId:
    """The queue that calls go to: the first one."""
    return QueueId(0)


def is_trace_capture_active(device: Device) -> bool:
    """Whether a trace is being captured on a device."""
    require_type("is_trace_capture_active", Device, device=device)
    return device.traces.capturing is not None


def begin_trace_capture(mesh_device: Device, *, cq_id: int | None = None) -> MeshTraceId:
    """Remembers, until end_trace_capture, the calls on a device; they run meanwhile, too, and there is one queue.

    Raises ArgumentError while another capture runs on the device.
    """
    require_type("begin_trace_capture", Device, mesh_device=mesh_device)
    traces = mesh_device.traces
    if traces.capturing is not None:
        raise ArgumentError("begin_trace_capture: a trace is being captured on this device; end it first")
    number, traces.begun = traces.begun, traces.begun + 1
    traces.capturing = traces.captured[number] = Trace()
    mesh_device.profilers.append(traces.capturing.ran)  # type: ignore[arg-type]
    return MeshTraceId(number)


def end_trace_capture(mesh_device: Device, trace_id: MeshTraceId, *, cq_id: int | None = None) -> None:
    """Ends a capture; raises ArgumentError where this trace is not being captured."""
    trace, traces = _trace("end_trace_capture", mesh_device, trace_id), mesh_device.traces
    if traces.capturing is not trace:
        raise ArgumentError(f"end_trace_capture: {trace_id} is not being captured")
    traces.capturing = None
    mesh_device.profilers[:] = [profiler for profiler in mesh_device.profilers if profiler is not trace.ran]


def execute_trace(
    mesh_device: Device, trace_id: MeshTraceId, *, cq_id: int | None = None, blocking: bool = True
) -> None:
    """Carries out the calls of a trace on what their inputs hold now, and then returns; profiles see the calls again.

    Raises:
        ArgumentError: There is no such trace, or one is still being captured: a replay is no part of it.
        DeviceError: What the trace reads was deallocated.
    """
    trace = _trace("execute_trace", mesh_device, trace_id)
    if mesh_device.traces.capturing is not None:
        raise ArgumentError("execute_trace: a trace is still being captured on this device; end it first")
    locked(mesh_device.machine, lambda: trace.replay(mesh_device.machine.memory))
    for profiler in mesh_device.profilers:
        profiler.extend(call for call in trace.ran if isinstance(call, RanCall))


def release_trace(mesh_device: Device, trace_id: MeshTraceId) -> None:
    """Forgets a trace; raises ArgumentError where there is no such trace, or it is still being captured."""
    trace, traces = _trace("release_trace", mesh_device, trace_id), mesh_device.traces
    if traces.capturing is trace:
        raise ArgumentError(f"release_trace: {trace_id} is still being captured; call end_trace_capture first")
    del traces.captured[trace_id.number]


def _trace(function: str, device: Device, trace_id: MeshTraceId) -> Trace:
    require_type(function, Device, mesh_device=device)
    require_type(function, MeshTraceId, trace_id=trace_id)
    trace = device.traces.captured.get(trace_id.number)
    if trace is None:
        known = [MeshTraceId(number) for number in device.traces.captured]
        raise ArgumentError(f"{function}: the device has no {trace_id}; it has {shown(known)}")
    return trace


def record_event(
    mesh_device: Device, cq_id: int | None = None, sub_device_ids: Sequence[object] = (), device_range: object = None
) -> MeshEvent:
    """An event on a queue, which has passed; the queue's number is for display."""
    require_type("record_event", Device, mesh_device=mesh_device)
    number, mesh_device.traces.events = mesh_device.traces.events, mesh_device.traces.events + 1
    return MeshEvent(number, mesh_device.id(), cq_id or 0)


def wait_for_event(cq_id: int | None = None, mesh_event: MeshEvent | None = None) -> None:
    """Does nothing: an event has passed when it is recorded."""
    require_type("wait_for_event", MeshEvent, mesh_event=mesh_event)


def event_synchronize(mesh_event: MeshEvent) -> None:
    """Does nothing: an event has passed when it is recorded."""
    require_type("event_synchronize", MeshEvent, mesh_event=mesh_event)
