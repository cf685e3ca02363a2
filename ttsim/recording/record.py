"""The record of what a profile saw, from which files for other tools are written."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from ttsim.recording.profiling import Profile
from ttsim.recording.runs import ends_of_operations, places, runs_of, sources
from ttsim.report.cycle_report import cycle_report
from ttsim.report.memory import living_after
from ttsim.report.network import network_report
from ttsim.report.record import (
    Chunks,
    Record,
    RecordedCall,
    SeenCall,
    device_figures,
    known_arch,
    lifetimes,
    numbered,
    until_refused,
)
from ttsim.report.runs import OpRun, names_read
from ttsim.report.timelines import Timeline, timeline
from ttsim.runtime.execution import texts
from ttsim.runtime.traces import RanCall


def record_of(profile: Profile, name: str) -> Record:
    """Everything that has run so far; the profile may go on.

    Args:
        profile: What watched.
    """
    device, spec = profile.device, profile.device.spec
    told = [call for call in profile.calls if call.ran or call.error]
    calls = [call for call in told if call.ran]
    taken = profile.taken()
    operations = runs_of(calls, taken, spec)
    cycles, network = cycle_report(taken, spec), network_report(operations, spec)
    tensors = numbered(tensor for call in told for tensor in _tensors(call))
    of_calls = groupby(operations, key=lambda one: one.call)
    seen = [
        SeenCall(number=number, before=call.before, events=call.events, at=at)
        for number, (call, at) in enumerate(zip(told, sources(told), strict=True), start=1)
    ]
    chunks = Chunks({one.number: one.spec for one in reversed(tensors)}, spec)
    return Record(
        name=name,
        arch=known_arch(spec),
        device=device_figures(spec, device.machine.l1_small_bytes),
        clock_mhz=round(spec.clock_hz / 1e6),
        calls=tuple(
            _call(call, number, list(next(of_calls)[1]) if call.ran else [], where, tensors, chunks, spec)
            for number, (call, where) in enumerate(zip(told, places(told), strict=True), start=1)
        ),
        operations=tuple(operations),
        tensors=tuple((number, tensor) for tensor, number in tensors.items()),
        lifetimes=lifetimes(seen, tensors),
        timelines=tuple(_timelines(operations, profile)),
        cycles=cycles,
        network=network,
    )


def _timelines(operations: Iterable[OpRun], profile: Profile) -> Iterator[tuple[int, Timeline]]:
    """What programs send over the networks, each program once."""
    told = set()
    for op in operations:
        if op.program in told:
            continue
        told.add(op.program)
        model = op_model_of(op.step.op, profile.device.op_models)
        sent = () if model.sent is None else model.sent(op.step.op, profile.device.spec)
        if sent:
            yield op.program, timeline(sent, profile.device.spec)


def _call(
    call: RanCall,
    number: int,
    operations: Sequence[OpRun],
    where: str,
    tensors: Mapping[MadeTensor, int],
    chunks: Chunks,
    spec: DeviceSpec,
) -> RecordedCall:
    """A call, whose device operations are known."""
    living = tuple(living_after(call.before, until_refused(call.events)).values())
    carried_out = (index for index, step in enumerate(call.plan.steps) if not isinstance(step, Refuse))
    read = {name for step in operations_of(call.plan, carried_out) for name in names_read(step)}
    return RecordedCall(
        number=number,
        function=call.function,
        where=where,
        nanoseconds=sum(op.kernel_nanoseconds for op in operations),
        arguments=tuple(_arguments(call)),
        inputs=tuple(tensors[one] for name, one in call.inputs if name in read),
        outputs=tuple(tensors[one] for _, one in call.results),
        living=living,
        chunks=tuple(chunks.of(living)),
        error=call.error,
        nodes=tuple(_nodes(call, operations, spec)),
    )


def _tensors(call: RanCall) -> Iterator[MadeTensor]:
    """Tensors on the device that a call read or made."""
    yield from (one for _, one in call.inputs)  # what it writes into among them
    for end in ends_of_operations(call.events):
        yield from end.made
    yield from (one for _, one in call.results)


def _arguments(call: RanCall) -> Iterator[tuple[str, str]]:
    """What a script gave to a call, or else the tensors of its plan; and what was chosen for the caller."""
    yield from texts(call.given)
    made = {one.tensor for step in call.plan.steps for one in _makes(step)}
    for name, spec in call.plan.tensors.items():
        if name not in made and not call.given:
            yield name, f"{list(spec.shape)} {spec.data_format.name} {spec.layout.name}"
    for decision in call.plan.decisions:
        yield decision.name, str(decision.value)


def _makes(step: Step) -> tuple[Allocate, ...]:
    """What a step allocates."""
    if isinstance(step, Operation):
        return (*step.outputs, *step.resident)
    return (step,) if isinstance(step, Allocate) else ()


def _nodes(call: RanCall, operations: Sequence[OpRun], spec: DeviceSpec) -> list[Node]:
    """The graph of a call: its function around all that it did, and what each of its device operations took."""
    if call.error:
        return nodes(_that_failed(call))
    events = [OperationBegin(call.function), *_with_circular_buffers(call, spec), OperationEnd(call.function)]
    told = (NodeText(one.kernel_nanoseconds, one.attributes) for one in operations)
    return nodes(events, lambda begin, end: next(told))


def _that_failed(call: RanCall) -> list[Event]:
    """A call that did not fit, and the device operation that could not be made: nothing else of it ran."""
    refused = [event for event in call.events if isinstance(event, OperationEnd) and event.aborted]
    inside = [event for end in refused for event in (OperationBegin(end.name), end)]
    return [OperationBegin(call.function), *inside, OperationEnd(call.function, aborted=True)]


def _with_circular_buffers(call: RanCall, spec: DeviceSpec) -> Iterator[Event]:
    """What a call did, every device operation with the circular buffers that take L1, which go at its end.

    A capture leaves those out of programs that were found in the cache, and of those that have dataflow buffers.
    """
    steps = operations_of(call.plan, call.ran)
    told = False
    for event in call.events:
        if isinstance(event, OperationEnd):
            step = next(steps)
            yield from () if told else _local_buffers(step, spec)
            yield CircularBuffersFreed()
        told = _tells(event) or (told and not isinstance(event, OperationBegin))
        yield event


def _tells(event: Event) -> bool:
    return isinstance(event, CircularBufferAllocated) and event.shown


def _local_buffers(step: Operation, spec: DeviceSpec) -> Iterator[CircularBufferAllocated]:
    """The circular buffers of a program that are no views, where every program has them."""
    local = [one for one in step.circular_buffers if one.view_of is None]
    placed = place([(one.size_bytes, one.cores) for one in local], spec.l1)
    for one, address in zip(local, placed.addresses, strict=True):
        yield CircularBufferAllocated(step.name, one.name, one.size_bytes, address, one.cores, view=False)
