"""Calls that ran: the cycles of each, L1 at its fullest moment, and the lines of the script that made it."""

from collections.abc import Iterator, Sequence
from functools import partial
from math import fsum
from os.path import basename, commonpath, dirname, isabs, relpath
from pathlib import PurePath

from device.memory.memory_config import BufferType
from device.plan import BufferAllocated, BufferFreed, Event, OperationBegin, OperationEnd
from device.spec.device_spec import DeviceSpec
from ops.op_model import Meanings
from ops.op_models import OP_MODELS
from ops.passes.caches import PlanCache
from ops.passes.cycles import TimedOperation, launches_of, operations_of, run_cycles
from ttsim.report.cycles import CallRun
from ttsim.report.memory import fullest_core_bytes
from ttsim.report.runs import LivingBuffer, Runs
from ttsim.runtime.traces import RanCall


def timed_call(
    call: RanCall, spec: DeviceSpec, *, op_models: Meanings = OP_MODELS, plans: PlanCache | None = None
) -> CallRun:
    """The cycles of a call on a device; `plans` caches the cycles of plans."""

    def run(operations: Sequence[TimedOperation]) -> CallRun:
        return CallRun(
            name=call.function,
            ran=tuple(operations),
            spec=spec,
            useful_flops=call.useful_flops,
            decisions=call.plan.decisions,
            launches=partial(launches_of, call.plan, operations, spec, ran=call.ran),
        )

    if plans is None or op_models is not OP_MODELS:
        return run(run_cycles(call.plan, spec, ran=call.ran, op_models=op_models).operations)
    return plans.made_of(
        call.plan,
        spec,
        (call.function, call.ran, call.useful_flops),
        lambda: run(plans.cycles_of(call.plan, spec, ran=call.ran).operations),
    )


def cycles_of(call: RanCall, spec: DeviceSpec, *, op_models: Meanings = OP_MODELS) -> float:
    """Cycles of a call's operations on any machine; operations without a model count 0."""
    ran = run_cycles(call.plan, spec, ran=call.ran, op_models=op_models).operations
    return fsum(op.cycles.cycles for op in ran if op.cycles is not None)


def runs_of(calls: Sequence[RanCall], taken: Sequence[CallRun], spec: DeviceSpec) -> Runs:
    """The device operations of calls in sequence; `taken` has the cycles of each call."""
    makers: dict[int, tuple[str, str]] = {}
    runs = Runs(spec.clock_hz, spec)
    for number, (call, run, where) in enumerate(zip(calls, taken, places(calls), strict=True)):
        result = (event.number for event in call.events if isinstance(event, BufferAllocated))
        makers.update((buffer, (call.function, where)) for buffer in result)
        steps, op_ends = operations_of(call.plan, call.ran), ends_of_operations(call.events)
        of_calls = zip(steps, run.ran, run.in_order, fullest_moments(call), op_ends, strict=True)
        for step, timed, figures, live, end in of_calls:
            buffers = tuple(_living(event, *makers.get(event.number, ("", ""))) for event in live)
            circular = [buffer for buffer in step.circular_buffers if buffer.view_of is None]
            runs.add(
                name=step.name,
                call=number,
                function=call.function,
                where=where,
                taken=figures,
                l1=(fullest_core_bytes(circular), sum(buffer.bank_bytes for buffer in buffers)),
                buffers=buffers,
                step=step,
                tensors=call.plan.tensors,
                timed=timed,
                cached=end.cached,
            )
        runs.launches += run.launches
    return runs


def ends_of_operations(events: Sequence[Event]) -> Iterator[OperationEnd]:
    """The events that end device operations, without the ends of the library's functions."""
    ops = []
    for event in events:
        if isinstance(event, OperationBegin):
            ops.append(event.op)
        elif isinstance(event, OperationEnd) and ops.pop() is not None:
            yield event


def _living(event: BufferAllocated, function: str, where: str) -> LivingBuffer:
    return LivingBuffer(
        name=event.name,
        memory=event.buffer.buffer_type.name,
        bank_bytes=event.buffer.bank_bytes,
        address=event.address,
        function=function,
        where=where,
    )


def fullest_moments(call: RanCall) -> Iterator[tuple[BufferAllocated, ...]]:
    """The buffers in L1 at the fullest moment of each device operation of a call, oldest first."""
    live = {
        allocation.number: allocation
        for allocation in call.before
        if allocation.buffer.buffer_type is not BufferType.DRAM
    }
    most = 0
    fullest: tuple[BufferAllocated, ...] | None = None
    for event in call.events:
        if isinstance(event, BufferAllocated) and event.buffer.buffer_type is not BufferType.DRAM:
            live[event.number] = event
        elif isinstance(event, BufferFreed):
            live.pop(event.number, None)
        if isinstance(event, OperationBegin) or fullest is not None:
            now = sum(allocation.buffer.bank_bytes for allocation in live.values())
            if fullest is None or now > most:
                most, fullest = now, tuple(live.values())
        if isinstance(event, OperationEnd) and fullest is not None:
            yield fullest
            fullest = None


def places(calls: Sequence[RanCall]) -> list[str]:
    """The lines that made each call, without the lines that all calls have in common.

    "net.py:12 > block.py:30" is the call that line 30 of block.py made when line 12 of net.py ran it; the innermost
    line is always part of the text. File paths are relative to the folder that holds all files.
    """
    return [
        " > ".join(
            f"{line}" if at and stack[at - 1][0] == file else f"{file}:{line}" for at, (file, line) in enumerate(stack)
        )
        for stack in _stacks(calls)
    ]


def sources(calls: Sequence[RanCall]) -> list[tuple[str, int]]:
    """The innermost line that made each call, with the file names of `places`; ("", 0) if the line is unknown."""
    return [stack[-1] if stack else ("", 0) for stack in _stacks(calls)]


def _stacks(calls: Sequence[RanCall]) -> list[list[tuple[str, int]]]:
    """File and line numbers of the lines that made each call, without the lines that all calls have in common."""
    stacks = [call.sites for call in calls]
    known = [stack for stack in stacks if stack]
    shared = 0
    while known and all(len(stack) > shared + 1 and stack[shared] == known[0][shared] for stack in known):
        shared += 1
    text = [stack[shared:] for stack in stacks]
    folders = sorted({dirname(site.file) for stack in text for site in stack if isabs(site.file)})
    folder = commonpath(folders) if folders else ""
    return [[(_file(site.file, folder), site.line) for site in stack] for stack in text]


def _file(file: str, folder: str) -> str:
    """A file's path relative to a folder, with slashes; names that are no path, such as <stdin>, stay the same."""
    return PurePath(relpath(file, folder)).as_posix() if isabs(file) else basename(file)
