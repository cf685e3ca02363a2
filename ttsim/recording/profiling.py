"""Simulated time of calls: a profile of all calls of a ``with`` block, and the estimate of a single call."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from inspect import signature
from itertools import pairwise
from linecache import getlines
from math import fsum, prod
from os.path import basename, commonpath, dirname, isabs, relpath
from pathlib import PurePath
from typing import Any, Final

from device.errors import ArgumentTypeError, TTSimError, shown
from device.memory.memory_config import BufferType
from device.plan import BufferAllocated, Event, OperationBegin, OperationEnd
from device.spec.device_spec import DeviceSpec
from ops.op_model import OpModels
from ops.op_models import OP_MODELS
from ops.passes.caches import PlanCache
from ops.passes.cycles import TimedOperation, launches_of, operations_of, run_cycles
from ops.passes.sensitivity import sensitivities
from ops.programs.conv2d.op import SCHEME_DECISION
from ttsim.recording.suggestions import LEAST_SHARE, Measured, Search
from ttsim.report.advice import Advice, machine_changes
from ttsim.report.cycle_report import CycleReport, cycle_report
from ttsim.report.cycles import CallRun
from ttsim.report.formatting import counted
from ttsim.report.memory import fullest_core_bytes, living
from ttsim.report.network import LivingBuffer, NetworkReport, Runs, local_buffers, network_report
from ttsim.report.pages import Source, page_of_calls, page_of_network
from ttsim.report.sections import Page
from ttsim.report.writers.html.document import page_frame
from ttsim.runtime.call_source import estimate_source
from ttsim.runtime.device import Device
from ttsim.runtime.execution import require_here
from ttsim.runtime.session import current, locked, remember
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.tensor_copies import DESCRIPTIONS, tensor_like
from ttsim.runtime.traces import CallSite, RanCall
from ttsim.runtime.types.call import require_type, wrong

ROWS_OF_A_STEP: Final = 12000  # rows of an image whose halo costs as much as planning one step
MOST_OF_MACHINE: Final = 5  # changes of the machine in the advice


class ShownCycles(CycleReport):
    """A report on cycles with a notebook page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """An HTML page in a frame."""
        return page_frame(page_of_calls(self))


class ShownNetwork(NetworkReport):
    """A report on a network with a notebook page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """An HTML page in a frame."""
        return page_frame(page_of_network(self))


class Profile:
    """The calls made on a device while a profile runs; `profile` creates it.

    Examples:
        >>> tensor = ttnn.zeros((32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> with ttnn.profile(device) as profile:
        ...     output = ttnn.relu(ttnn.add(tensor, 1.0))
        >>> len(profile.report().calls), len(profile.network().operations)
        (2, 2)
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.calls: list[RanCall] = []  # What ran, or did not fit, in order
        self.advice: Advice | None = None  # For its page; None if nobody looked for faster configs

    def report(self, *, suggestions: bool = False) -> CycleReport:
        """The cycles of all calls so far; the profile may continue.

        With `suggestions`, the calls are timed again with other values of every figure of the machine, to find the
        figures that matter. (`estimate_cycles` tries other configs.)
        """
        report = cycle_report(self.taken(), self.device.spec, ShownCycles)
        return replace(report, advice=self.machine_advice(report.cycles)) if suggestions else report

    def network(self) -> NetworkReport:
        """All calls so far as one network; the profile may continue.

        The report has all device operations in order, sums by kind and by line of the script, and the peak of L1.
        """
        return network_report(self.runs(), self.device.spec, ShownNetwork)

    def __repr__(self) -> str:
        return f"<Profile of {self.device.spec.name}: {counted(len(self.ran), 'call')}>"

    def _repr_html_(self) -> str:
        """A page in a frame, for notebooks."""
        return page_frame(page_of_run(self, self.network(), self.report()))

    @property
    def ran(self) -> list[RanCall]:
        """The calls that ran device operations, in order."""
        return [call for call in self.calls if call.ran]

    def machine_advice(self, cycles: int) -> Advice:
        """The figures of the machine that the calls so far depend on, with fixed plans."""
        models = self.device.op_models  # cycles are fractions, so that small changes show
        sensitivity = sensitivities(
            self.device.spec, lambda spec: fsum(cycles_of(call, spec, op_models=models) for call in self.ran)
        )
        return Advice(
            cycles=cycles,
            machine=machine_changes(sensitivity, least_share=LEAST_SHARE, most=MOST_OF_MACHINE),
            sensitivity=sensitivity,
        )

    def measured(self) -> Measured:
        """The cost of all calls so far."""
        taken = self.taken()
        plans = [call.plan for call in self.calls]
        decisions = (decision for plan in plans for decision in plan.decisions if decision.name == SCHEME_DECISION)
        rows = (max((prod(tensor.shape[:-1]) for tensor in plan.tensors.values()), default=0) for plan in plans)
        return Measured(
            cycles=sum(call.total.cycles for call in taken),
            untimed=sum(len(call.untimed) for call in taken),
            effort=sum(len(plan.steps) + most // ROWS_OF_A_STEP for plan, most in zip(plans, rows, strict=True)),
            scheme=", ".join(str(decision.value) for decision in decisions),
        )

    def taken(self) -> list[CallRun]:
        """The cycles of each call."""
        device = self.device
        return [timed_call(call, device.spec, op_models=device.op_models, plans=device.plans) for call in self.ran]

    def runs(self) -> Runs:
        """The device operations of these calls."""
        return runs_of(self.ran, self.taken(), self.device.spec)


def timed_call(
    call: RanCall, spec: DeviceSpec, *, op_models: OpModels = OP_MODELS, plans: PlanCache | None = None
) -> CallRun:
    """The cycles of a call on a device; `plans` is a cache of the cycles of plans."""

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
    return plans.derived_from(
        call.plan,
        spec,
        (call.function, call.ran, call.useful_flops),
        lambda: run(plans.cycles_of(call.plan, spec, ran=call.ran).operations),
    )


def cycles_of(call: RanCall, spec: DeviceSpec, *, op_models: OpModels = OP_MODELS) -> float:
    """Cycles of a call's operations on any machine; operations without a model count 0."""
    ran = run_cycles(call.plan, spec, ran=call.ran, op_models=op_models).operations
    return fsum(op.cycles.cycles for op in ran if op.cycles is not None)


def runs_of(calls: Sequence[RanCall], taken: Sequence[CallRun], spec: DeviceSpec) -> Runs:
    """The device operations of calls in sequence; `taken` has the cycles of each call."""
    makers: dict[int, tuple[str, str]] = {}
    runs = Runs(spec.clock_hz, spec)
    for number, (call, run, where) in enumerate(zip(calls, taken, places(calls), strict=True)):
        allocated = (event.number for event in call.events if isinstance(event, BufferAllocated))
        makers.update((buffer, (call.function, where)) for buffer in allocated)
        steps, ends = operations_of(call.plan, call.ran), ends_of_operations(call.events)
        for step, timed, figures, live, end in zip(
            steps, run.ran, run.in_order, fullest_moments(call), ends, strict=True
        ):
            buffers = tuple(LivingBuffer.of(event, *makers.get(event.number, ("", ""))) for event in live)
            runs.add(
                name=step.name,
                call=number,
                function=call.function,
                where=where,
                taken=figures,
                l1=(fullest_core_bytes(local_buffers(step)), sum(buffer.bank_bytes for buffer in buffers)),
                buffers=buffers,
                step=step,
                tensors=call.plan.tensors,
                timed=timed,
                cached=end.cached,
            )
        runs.calls.append(run)
    return runs


def ends_of_operations(events: Sequence[Event]) -> Iterator[OperationEnd]:
    """The end events of device operations, without those of the library's functions."""
    ops = []
    for event in events:
        if isinstance(event, OperationBegin):
            ops.append(event.op)
        elif isinstance(event, OperationEnd) and ops.pop() is not None:
            yield event


def fullest_moments(call: RanCall) -> Iterator[tuple[BufferAllocated, ...]]:
    """The buffers in L1 at the peak of each device operation of a call, oldest first."""
    fullest: tuple[BufferAllocated, ...] | None = None
    before = (event for event in call.before if _on_chip(event))
    for event, live in living(before, (event for event in call.events if _on_chip(event))):
        if isinstance(event, OperationBegin) or fullest is not None:
            now = tuple(live.values())
            fullest = now if fullest is None else max(fullest, now, key=_bank_bytes)
        if isinstance(event, OperationEnd) and fullest is not None:
            yield fullest
            fullest = None


def _on_chip(event: Event) -> bool:
    return not (isinstance(event, BufferAllocated) and event.buffer.buffer_type is BufferType.DRAM)


def _bank_bytes(buffers: Sequence[BufferAllocated]) -> int:
    return sum(event.buffer.bank_bytes for event in buffers)


def places(calls: Sequence[RanCall]) -> list[str]:
    """The script lines of each call, without the lines that all calls have in common.

    "net.py:12 > block.py:30" is a call in line 30 of block.py, which line 12 of net.py called; the innermost line is
    always included. File paths are relative to the common folder of all files.
    """
    texts = (
        [
            f"{site.line}" if site.file == outer.file else f"{site.file}:{site.line}"
            for outer, site in pairwise([CallSite("", 0), *stack])
        ]
        for stack in stacks_of(calls)
    )
    return [" > ".join(text) for text in texts]


def sources(calls: Sequence[RanCall]) -> dict[str, str]:
    """The texts of the files of the calls, keyed by the file names of `places`; only readable files."""
    pairs = (
        (shown.file, site.file)
        for call, stack in zip(calls, stacks_of(calls), strict=True)
        for site, shown in zip(reversed(call.sites), reversed(stack), strict=False)
    )
    texts = {name: "".join(getlines(file)).encode("utf-8", "replace").decode() for name, file in dict(pairs).items()}
    return {name: text for name, text in texts.items() if text}


def stacks_of(calls: Sequence[RanCall]) -> list[tuple[CallSite, ...]]:
    """The script lines of each call, outermost first, without the lines that all calls have in common.

    File names are those of `places`.
    """
    stacks = [call.sites for call in calls]
    known = [stack for stack in stacks if stack]
    shared = 0
    while known and all(len(stack) > shared + 1 and stack[shared] == known[0][shared] for stack in known):
        shared += 1
    text = [stack[shared:] for stack in stacks]
    folders = sorted({dirname(site.file) for stack in text for site in stack if isabs(site.file)})
    folder = commonpath(folders) if folders else ""
    return [tuple(site._replace(file=_file(site.file, folder)) for site in stack) for stack in text]


def _file(file: str, folder: str) -> str:
    """A file's path relative to a folder, with slashes; names such as <stdin> are unchanged."""
    return PurePath(relpath(file, folder)).as_posix() if isabs(file) else basename(file)


def page_of_run(profile: Profile, network: NetworkReport, report: CycleReport) -> Page:
    """The page of a profile: its operations in order, the cycles of the same calls, and its convolutions as Python."""
    first = {op.call: op for op in reversed(network.operations)}
    sources = (
        Source(f"#{first[number].number} {first[number].place}", estimate_source(call.asked))
        for number, call in enumerate(profile.ran)
        if call.asked is not None
    )
    advised = replace(report, advice=profile.advice) if profile.advice else report
    return page_of_network(network, advised, profile.device.spec, tuple(sources))


def profile(device: Device) -> AbstractContextManager[Profile]:
    """Records the calls of a ``with`` block on one device; profiles may nest.

    Calls in a graph capture without dispatch, and calls on a device opened with ``cycles=False``, are not recorded.

    Args:
        device: The device.

    Returns:
        A context manager that yields the Profile.

    Raises:
        ArgumentTypeError: The argument is not a device.

    Examples:
        >>> tensor = ttnn.zeros((1, 1, 32, 32), layout=ttnn.TILE_LAYOUT, device=device)
        >>> with ttnn.profile(device) as profile:
        ...     output = ttnn.relu(tensor)
        >>> [operation.name for operation in profile.report().operations]
        ['UnaryDeviceOperation']
    """
    require_type("profile", Device, device=device)
    return _profile(device)


@contextmanager
def _profile(device: Device) -> Iterator[Profile]:
    result = Profile(device)
    device.profilers.append(result.calls)
    try:
        yield result
    finally:
        device.profilers[:] = [profiler for profiler in device.profilers if profiler is not result.calls]


def estimate_cycles(
    function: Callable[..., Any], /, *arguments: Any, device: Device, suggestions: bool = False, **options: Any
) -> CycleReport:
    """Estimates the cycles of a call; the call is planned on a copy of the device's memory, without values.

    Args:
        function: A function of this library, such as ``ttsim.conv_transpose2d`` or ``ttsim.add``.
        arguments: Positional arguments of the call; a tensor may be a Tensor, a TensorSpec or a TensorDescription.
        device: The device, which stays unchanged; ttsim supplies a ``device`` parameter of the function.
        suggestions: Also search for faster configs and for the figures of the machine that the call depends on (the
            report's ``advice``). The search is bounded and takes about ten times as long as the call.
        options: Keyword arguments of the call.

    Returns:
        The report of the call.

    Raises:
        ArgumentTypeError: ``function`` cannot be called, or ``device`` is not a device.
        TTSimError: Any error of the call itself.

    Examples:
        >>> tensor = ttnn.TensorDescription((1, 1, 32, 32), ttnn.bfloat16, ttnn.TILE_LAYOUT, ttnn.DRAM_MEMORY_CONFIG)
        >>> ttnn.estimate_cycles(ttnn.relu, tensor, device=device).cycles > 0
        True
    """
    require_type("estimate_cycles", Device, device=device)
    require_type("estimate_cycles", bool, suggestions=suggestions)
    if not callable(function):
        raise ArgumentTypeError(
            f"estimate_cycles: function must be one of this library, such as ttsim.conv_transpose2d, not "
            f"{shown(function)}"
        )

    def tried(options: Mapping[str, Any], *, suggestions: bool = False) -> Profile:
        return planned(function, arguments, options, device, suggestions=suggestions)

    try:
        call_profile = tried(options, suggestions=device.suggestions)
    except TypeError as error:
        given = {"device": device} if "device" in signature(function).parameters else {}
        raise refusal_by(error, function, arguments, {**options, **given}) from None
    report = call_profile.report()
    if not suggestions:
        return report
    before = call_profile.measured()
    machine = call_profile.machine_advice(before.cycles)
    advice = Search(function, options, lambda others: tried(others).measured()).run(before)
    return replace(report, advice=replace(advice, machine=machine.machine, sensitivity=machine.sensitivity))


def planned(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    options: Mapping[str, Any],
    device: Device,
    *,
    suggestions: bool = False,
    gives_device: bool = True,
) -> Profile:
    """The profile of one call, planned on a copy of the device without values; tensors may be descriptions.

    A parameter ``device`` of the function receives the copy, unless ``gives_device`` is false.
    """
    with uncaptured(), copy_of(device, suggestions=suggestions) as copy:
        positional = [twin(value, device, copy) for value in arguments]
        named = {name: twin(value, device, copy) for name, value in options.items()}
        if gives_device and "device" in signature(function).parameters:
            named["device"] = copy
        with profile(copy) as profiled:
            function(*positional, **named)
    return profiled


def refusal_by(error: Exception, op: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> TTSimError:
    """The error as a TTSimError: also a TypeError for arguments that ``op`` does not accept; raises other errors."""
    if isinstance(error, TTSimError):
        return error
    try:
        signature(op).bind(*args, **kwargs)
    except TypeError as mismatch:
        name, home = getattr(op, "__name__", "op"), getattr(op, "__module__", None) or ""
        own = home.partition(".")[0] == __name__.partition(".")[0]
        return wrong(name, str(mismatch)) if own else ArgumentTypeError(f"{name}: {mismatch}")
    raise error


@contextmanager
def uncaptured() -> Iterator[None]:
    """A context that active graph captures do not record."""
    before = current()
    if before.captures:
        remember(replace(before, captures=()))
    try:
        yield
    finally:
        remember(before)


def copy_of(device: Device, *, suggestions: bool = False) -> Device:
    """A device in the same state, without values, for trial calls."""
    return Device(
        device.spec,
        device_id=device.device_id,
        values="off",
        strict=device.strict,
        suggestions=suggestions,
        op_models=device.op_models,
        machine=locked(device.machine, device.machine.copy),
        of_script=False,
    )


def twin(value: Any, device: Device, copy: Device) -> Any:
    """An argument for a call on the copy: tensors and descriptions, also in lists, become tensors on the copy.

    Raises DeviceError for a tensor on another device than the one that was copied.
    """
    if isinstance(value, list | tuple) and any(isinstance(item, Tensor | DESCRIPTIONS) for item in value):
        return [twin(item, device, copy) for item in value]
    if isinstance(value, DESCRIPTIONS):
        return tensor_like(value, copy)
    if value is device:
        return copy
    if isinstance(value, Tensor):
        require_here(device, {"argument": value})
    if not isinstance(value, Tensor) or value.device() is None or not value.is_allocated():
        return value
    buffer = copy.machine.memory.at(value.buffer.spec.buffer_type, value.buffer_address())
    return Tensor.of_buffer(copy, buffer, value.spec, created_by=value.created_by)
