"""The record of a profile, from which the files for other tools are written."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from device.memory.buffers import place
from device.plan import (
    Allocate,
    CircularBufferAllocated,
    CircularBuffersFreed,
    DeviceOp,
    Event,
    MadeTensor,
    Operation,
    OperationBegin,
    OperationEnd,
    Refuse,
)
from device.spec.device_spec import DeviceSpec
from ops.op_model import op_model_of
from ops.passes.cycles import operations_of
from ttsim.recording.capture import Node, NodeText, nodes
from ttsim.recording.profiling import Profile, ends_of_operations, places, runs_of, sources
from ttsim.report.cycle_report import cycle_report
from ttsim.report.network import network_report
from ttsim.report.record import Record, RecordedCall, known_arch, numbered
from ttsim.report.runs import OpRun, names_read
from ttsim.report.timelines import Document, timeline
from ttsim.runtime.traces import RanCall


def record_of(profile: Profile, name: str) -> Record:
    """The record of all calls of a profile so far; the profile may go on."""
    device, spec = profile.device, profile.device.spec
    seen = [call for call in profile.calls if call.ran or call.error]
    taken = profile.taken()
    operations = runs_of(profile.ran, taken, spec)
    tensors = numbered(tensor for call in seen for tensor in _tensors(call))
    of_calls = (list(group) for _, group in groupby(operations, key=lambda op: op.call))
    calls = []
    for number, (call, where, at) in enumerate(zip(seen, places(seen), sources(seen), strict=True), start=1):
        ran = next(of_calls) if call.ran else []
        carried_out = (index for index, step in enumerate(call.plan.steps) if not isinstance(step, Refuse))
        read = {name for step in operations_of(call.plan, carried_out) for name in names_read(step)}
        recorded = RecordedCall(
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
        calls.append(recorded)
    return Record(
        name=name,
        spec=spec,
        l1_small_bytes=device.machine.l1_small_bytes,
        calls=tuple(calls),
        operations=tuple(operations),
        tensors=tensors,
        timelines=tuple(_timelines(operations, profile)),
        cycles=cycle_report(taken, spec),
        network=network_report(operations, spec),
    )


def _timelines(operations: Iterable[OpRun], profile: Profile) -> Iterator[tuple[int, Document]]:
    """The network traffic of programs by program number, each program once."""
    spec, programs = profile.device.spec, dict[int, DeviceOp | None]()
    for run in operations:
        programs.setdefault(run.program, run.step.op)
    for program, op in programs.items():
        model = op_model_of(op, profile.device.op_models)
        sent = () if model.sent is None else model.sent(op, spec)
        if sent:
            yield program, timeline(sent, spec, known_arch(spec) or "unknown")


def _tensors(call: RanCall) -> Iterator[MadeTensor]:
    yield from (tensor for _, tensor in call.inputs)  # including the tensors that the call writes into
    for end in ends_of_operations(call.events):
        yield from end.made
    yield from (tensor for _, tensor in call.results)


def _arguments(call: RanCall) -> Iterator[tuple[str, str]]:
    """The arguments in the script, or else the tensors of the plan; then the planner's choices."""
    yield from call.given
    if not call.given:
        allocated = {step.tensor for step in call.plan.steps if isinstance(step, Allocate)}
        for step in call.plan.steps:
            if isinstance(step, Operation):
                allocated |= {result.tensor for result in (*step.outputs, *step.resident)}
        for name, spec in call.plan.tensors.items():
            if name not in allocated:
                yield name, f"{list(spec.shape)} {spec.data_format.name} {spec.layout.name}"
    for decision in call.plan.decisions:
        yield decision.name, str(decision.value)


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
    shown = False
    for event in call.events:
        if isinstance(event, OperationEnd):
            step = next(steps)
            if not shown:
                local = [buffer for buffer in step.circular_buffers if buffer.view_of is None]
                placed = place([(buffer.size_bytes, buffer.cores) for buffer in local], spec.l1)
                for buffer, address in zip(local, placed.addresses, strict=True):
                    where = (buffer.size_bytes, address, buffer.cores)
                    yield CircularBufferAllocated(step.name, buffer.name, *where, view=False)
            yield CircularBuffersFreed()
        if isinstance(event, CircularBufferAllocated):
            shown = shown or event.shown
        elif isinstance(event, OperationBegin):
            shown = False
        yield event
