"""The record of a profile, from which the files for other tools are written."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from device.memory.buffers import place
from device.plan import (
    Allocate,
    CircularBufferAllocated,
    CircularBuffersFreed,
    Event,
    MadeTensor,
    Operation,
    OperationBegin,
    OperationEnd,
    Refuse,
    Step,
)
from device.spec.device_spec import DeviceSpec
from ops.op_model import op_model_of
from ops.passes.cycles import operations_of
from ttsim.recording.capture import Node, NodeText, nodes
from ttsim.recording.profiling import Profile, ends_of_operations, places, runs_of, sources
from ttsim.report.cycle_report import cycle_report
from ttsim.report.network import network_report
from ttsim.report.record import Chunks, Record, RecordedCall, device_figures, known_arch, lifetimes, numbered
from ttsim.report.runs import OpRun, names_read
from ttsim.report.timelines import Timeline, timeline
from ttsim.runtime.traces import RanCall


def record_of(profile: Profile, name: str) -> Record:
    """The record of all calls of a profile so far; the profile may go on."""
    device, spec = profile.device, profile.device.spec
    text = [call for call in profile.calls if call.ran or call.error]
    taken = profile.taken()
    operations = runs_of(profile.ran, taken, spec)
    tensors = numbered(tensor for call in text for tensor in _tensors(call))
    of_calls = (list(group) for _, group in groupby(operations, key=lambda op: op.call))

    def recorded(number: int, call: RanCall, where: str, at: tuple[str, int]) -> RecordedCall:
        ran = next(of_calls) if call.ran else []
        carried_out = (index for index, step in enumerate(call.plan.steps) if not isinstance(step, Refuse))
        read = {name for step in operations_of(call.plan, carried_out) for name in names_read(step)}
        return RecordedCall(
            number=number,
            function=call.function,
            where=where,
            at=at,
            before=call.before,
            events=call.events,
            nanoseconds=sum(op.kernel_nanoseconds for op in ran),
            arguments=tuple(_arguments(call)),
            inputs=tuple(tensors[tensor] for name, tensor in call.inputs if name in read),
            outputs=tuple(tensors[tensor] for _, tensor in call.results),
            error=call.error,
            nodes=tuple(_nodes(call, ran, spec)),
        )

    lines = enumerate(zip(text, places(text), sources(text), strict=True), start=1)
    calls = tuple(recorded(number, *line) for number, line in lines)
    return Record(
        name=name,
        arch=known_arch(spec),
        device=device_figures(spec, device.machine.l1_small_bytes),
        clock_mhz=round(spec.clock_hz / 1e6),
        calls=calls,
        operations=tuple(operations),
        tensors=tuple((number, tensor) for tensor, number in tensors.items()),
        lifetimes=lifetimes(calls, tensors),
        chunks=Chunks({tensor.number: tensor.spec for tensor in reversed(tensors)}, spec),
        timelines=tuple(_timelines(operations, profile)),
        cycles=cycle_report(taken, spec),
        network=network_report(operations, spec),
    )


def _timelines(operations: Iterable[OpRun], profile: Profile) -> Iterator[tuple[int, Timeline]]:
    """The network traffic of programs by program number, each program once."""
    first: dict[int, OpRun] = {}
    for op in operations:
        first.setdefault(op.program, op)
    for op in first.values():
        model = op_model_of(op.step.op, profile.device.op_models)
        sent = () if model.sent is None else model.sent(op.step.op, profile.device.spec)
        if sent:
            yield op.program, timeline(sent, profile.device.spec)


def _tensors(call: RanCall) -> Iterator[MadeTensor]:
    yield from (tensor for _, tensor in call.inputs)  # including the tensors that the call writes into
    for end in ends_of_operations(call.events):
        yield from end.made
    yield from (tensor for _, tensor in call.results)


def _arguments(call: RanCall) -> Iterator[tuple[str, str]]:
    """The arguments in the script, or else the tensors of the plan; then the planner's choices."""
    yield from call.given
    if not call.given:
        result = {result.tensor for step in call.plan.steps for result in _allocated(step)}
        for name, spec in call.plan.tensors.items():
            if name not in result:
                yield name, f"{list(spec.shape)} {spec.data_format.name} {spec.layout.name}"
    for decision in call.plan.decisions:
        yield decision.name, str(decision.value)


def _allocated(step: Step) -> tuple[Allocate, ...]:
    if isinstance(step, Operation):
        return (*step.outputs, *step.resident)
    return (step,) if isinstance(step, Allocate) else ()


def _nodes(call: RanCall, operations: Sequence[OpRun], spec: DeviceSpec) -> list[Node]:
    """The graph of a call: a function around all its events, with the kernel time of each device operation.

    If the call did not fit, only the device operation that could not be allocated is part of the graph.
    """
    inside: Iterable[Event] = _with_circular_buffers(call, spec)
    if call.error:
        refused = (event for event in call.events if isinstance(event, OperationEnd) and event.aborted)
        inside = (event for end in refused for event in (OperationBegin(end.name), end))
    events = [OperationBegin(call.function), *inside, OperationEnd(call.function, aborted=bool(call.error))]
    text = (NodeText(op.kernel_nanoseconds, op.attributes) for op in operations)
    return nodes(events, lambda begin, end: next(text))


def _with_circular_buffers(call: RanCall, spec: DeviceSpec) -> Iterator[Event]:
    """The events of a call, with the circular buffers of every device operation that are no views, until its end.

    A capture leaves out circular buffers of programs from the cache and of programs with dataflow buffers.
    """
    steps = operations_of(call.plan, call.ran)
    text = False
    for event in call.events:
        if isinstance(event, OperationEnd):
            step = next(steps)
            yield from () if text else _local_buffers(step, spec)
            yield CircularBuffersFreed()
        shown = isinstance(event, CircularBufferAllocated) and event.shown
        text = shown or (text and not isinstance(event, OperationBegin))
        yield event


def _local_buffers(step: Operation, spec: DeviceSpec) -> Iterator[CircularBufferAllocated]:
    """The circular buffers of a program that are no views, at the addresses of every program."""
    local = [buffer for buffer in step.circular_buffers if buffer.view_of is None]
    placed = place([(buffer.size_bytes, buffer.cores) for buffer in local], spec.l1)
    for buffer, address in zip(local, placed.addresses, strict=True):
        yield CircularBufferAllocated(step.name, buffer.name, buffer.size_bytes, address, buffer.cores, view=False)
