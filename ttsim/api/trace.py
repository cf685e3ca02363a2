"""ttnn's functions for traces, events and queues.

All queues are one queue, and a call has finished when it returns. So an event has passed when it is recorded, and the
times of calls add up.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from device.errors import ArgumentError, shown
from ttsim.runtime.device import Device
from ttsim.runtime.session import locked
from ttsim.runtime.traces import MeshEvent, MeshTraceId, RanCall, Trace
from ttsim.runtime.types.call import require_type, required_integer


class QueueId(int):
    """The number of a command queue; all queues are the same queue here.

    Examples:
        >>> ttnn.QueueId(1) == 1
        True
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """The text that the real library prints."""
        return f"QueueId({int(self)})"


@contextmanager
def command_queue(cq_id: int) -> Iterator[None]:
    """A context that sends calls to a command queue; all queues are the same queue here.

    Args:
        cq_id: Number of the queue.

    Returns:
        A context manager.

    Raises:
        ArgumentTypeError: ``cq_id`` is not an integer.
        ArgumentError: ``cq_id`` is None, or below 0.

    Examples:
        >>> with ttnn.command_queue(1):
        ...     tensor = ttnn.ones((32, 32), device=device)
    """
    if cq_id is None:
        raise ArgumentError("cq_id cannot be None in command_queue context\ncommand_queue: give 0 or 1")
    if required_integer("command_queue", "cq_id", cq_id) < 0:
        raise ArgumentError(f"command_queue: cq_id must be at least 0, not {cq_id}")
    yield


def get_current_command_queue_id_for_thread() -> QueueId:
    """The queue of this thread's calls.

    Returns:
        The first queue.

    Examples:
        >>> ttnn.get_current_command_queue_id_for_thread()
        QueueId(0)
    """
    return QueueId(0)


def is_trace_capture_active(device: Device) -> bool:
    """Whether a trace is being captured on a device.

    Args:
        device: The device.

    Returns:
        True between `begin_trace_capture` and `end_trace_capture`.

    Raises:
        ArgumentTypeError: The argument is not a device.

    Examples:
        >>> ttnn.is_trace_capture_active(device)
        False
    """
    require_type("is_trace_capture_active", Device, device=device)
    return device.traces.capturing is not None


def begin_trace_capture(mesh_device: Device, *, cq_id: int | None = None) -> MeshTraceId:
    """Captures the calls on a device until `end_trace_capture`; the calls run as usual.

    Args:
        mesh_device: The device.
        cq_id: Accepted as in ttnn; there is one queue.

    Returns:
        The number of the trace on this device.

    Raises:
        ArgumentTypeError: ``mesh_device`` is not a device.
        ArgumentError: Another trace is being captured on the device.

    Examples:
        >>> tensor = ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> trace = ttnn.begin_trace_capture(device, cq_id=0)
        >>> output = ttnn.add(tensor, 1.0)
        >>> ttnn.end_trace_capture(device, trace, cq_id=0)
    """
    require_type("begin_trace_capture", Device, mesh_device=mesh_device)
    traces = mesh_device.traces
    if traces.capturing is not None:
        raise ArgumentError("begin_trace_capture: a trace is being captured on this device; end it first")
    number = traces.begun
    for device in mesh_device.devices:
        begun = device.traces
        begun.begun += 1
        begun.capturing = begun.captured[number] = Trace()
    mesh_device.profilers.append(traces.captured[number].ran)  # type: ignore[arg-type]
    return MeshTraceId(number)


def end_trace_capture(mesh_device: Device, trace_id: MeshTraceId, *, cq_id: int | None = None) -> None:
    """Ends the capture of a trace.

    Args:
        mesh_device: The device.
        trace_id: The number that `begin_trace_capture` returned.
        cq_id: Accepted as in ttnn; there is one queue.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: This trace is not being captured.

    Examples:
        >>> trace = ttnn.begin_trace_capture(device)
        >>> ttnn.end_trace_capture(device, trace)
        >>> ttnn.is_trace_capture_active(device)
        False
    """
    trace, traces = _trace("end_trace_capture", mesh_device, trace_id), mesh_device.traces
    if traces.capturing is not trace:
        raise ArgumentError(f"end_trace_capture: {trace_id} is not being captured")
    for device in mesh_device.devices:
        device.traces.capturing = None
    mesh_device.profilers[:] = [profiler for profiler in mesh_device.profilers if profiler is not trace.ran]


def execute_trace(
    mesh_device: Device, trace_id: MeshTraceId, *, cq_id: int | None = None, blocking: bool = True
) -> None:
    """Runs the calls of a trace again, on the current values of their inputs; profiles record the calls again.

    Args:
        mesh_device: The device.
        trace_id: The number that `begin_trace_capture` returned.
        cq_id: Accepted as in ttnn; there is one queue.
        blocking: Accepted as in ttnn; all calls have finished when this function returns.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: There is no such trace, or a trace is being captured on the device.
        DeviceError: A tensor that the trace reads was deallocated.

    Examples:
        >>> tensor = ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> trace = ttnn.begin_trace_capture(device)
        >>> output = ttnn.add(tensor, 1.0)
        >>> ttnn.end_trace_capture(device, trace)
        >>> ttnn.copy_host_to_device_tensor(ttnn.full((32, 32), 5.0, layout=ttnn.TILE_LAYOUT), tensor)
        >>> ttnn.execute_trace(device, trace)
        >>> output.to_numpy()[0, 0].item()
        6.0
    """
    trace = _trace("execute_trace", mesh_device, trace_id)
    if mesh_device.traces.capturing is not None:
        raise ArgumentError("execute_trace: a trace is still being captured on this device; end it first")
    for device in mesh_device.devices:
        captured = device.traces.captured[trace_id.number]
        locked(device.machine, partial(captured.replay, device.machine.memory))
    for profiler in mesh_device.profilers:
        profiler.extend(call for call in trace.ran if isinstance(call, RanCall))


def release_trace(mesh_device: Device, trace_id: MeshTraceId) -> None:
    """Forgets a trace.

    Args:
        mesh_device: The device.
        trace_id: The number that `begin_trace_capture` returned.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: There is no such trace, or it is still being captured.

    Examples:
        >>> trace = ttnn.begin_trace_capture(device)
        >>> ttnn.end_trace_capture(device, trace)
        >>> ttnn.release_trace(device, trace)
    """
    trace, traces = _trace("release_trace", mesh_device, trace_id), mesh_device.traces
    if traces.capturing is trace:
        raise ArgumentError(f"release_trace: {trace_id} is still being captured; call end_trace_capture first")
    for device in mesh_device.devices:
        del device.traces.captured[trace_id.number]


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
    """Records an event on a queue; all earlier calls have finished, so the event has passed.

    Args:
        mesh_device: The device.
        cq_id: Number of the queue, which the event's text shows.
        sub_device_ids: Accepted as in ttnn; there are no sub-devices.
        device_range: Accepted as in ttnn; there is one device.

    Returns:
        The event.

    Raises:
        ArgumentTypeError: ``mesh_device`` is not a device.

    Examples:
        >>> event = ttnn.record_event(device, cq_id=0)
        >>> ttnn.event_synchronize(event)
    """
    require_type("record_event", Device, mesh_device=mesh_device)
    queue = 0 if cq_id is None else required_integer("record_event", "cq_id", cq_id)
    number, mesh_device.traces.events = mesh_device.traces.events, mesh_device.traces.events + 1
    return MeshEvent(number, mesh_device.id(), queue)


def wait_for_event(cq_id: int | None = None, mesh_event: MeshEvent | None = None) -> None:
    """Makes a queue wait for an event, which has passed already.

    Args:
        cq_id: Accepted as in ttnn; there is one queue.
        mesh_event: The event.

    Raises:
        ArgumentTypeError: ``mesh_event`` is not an event.

    Examples:
        >>> ttnn.wait_for_event(0, ttnn.record_event(device))
    """
    require_type("wait_for_event", MeshEvent, mesh_event=mesh_event)


def event_synchronize(mesh_event: MeshEvent) -> None:
    """Waits for an event, which has passed already.

    Args:
        mesh_event: The event.

    Raises:
        ArgumentTypeError: The argument is not an event.

    Examples:
        >>> ttnn.event_synchronize(ttnn.record_event(device))
    """
    require_type("event_synchronize", MeshEvent, mesh_event=mesh_event)
