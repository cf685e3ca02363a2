"""Measures calls in simulated time: a profile of all calls of a ``with`` block, and the estimate of a single call."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from inspect import signature
from math import fsum, prod
from typing import Any, Final

from device.errors import ArgumentTypeError, shown
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.passes.sensitivity import sensitivities
from ops.programs.conv2d.buffers import SCHEME_DECISION
from ttsim.recording.pages import ShownCycles, ShownNetwork, page_of_run
from ttsim.recording.runs import cycles_of, runs_of, timed_call
from ttsim.recording.suggestions import LEAST_SHARE, Measured, Search
from ttsim.report.advice import Advice, machine_changes
from ttsim.report.cycle_report import CycleReport, cycle_report
from ttsim.report.cycles import CallRun
from ttsim.report.network import NetworkReport, network_report
from ttsim.report.runs import Runs
from ttsim.report.writers.html.document import page_frame
from ttsim.runtime.device import Device
from ttsim.runtime.session import current, locked, remember
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.tensor_copies import tensor_like
from ttsim.runtime.traces import RanCall
from ttsim.runtime.types.call import require_type
from ttsim.runtime.types.tensors import TensorDescription

ROWS_OF_A_STEP: Final = 12000  # rows of an image whose halo costs as much as planning one step
MOST_OF_MACHINE: Final = 5  # changes of the machine in the advice


class Profile:
    """The calls made on a device while a profile runs; ``profile`` makes it.

    Attributes:
        device: Where.
        calls: What ran, or did not fit, in order.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.calls: list[RanCall] = []

    def report(self, *, suggestions: bool = False) -> CycleReport:
        """The cycles of all calls that have run so far; the profile may go on.

        Args:
            suggestions: Say which figures of the machine the calls depend on, too, and how much; this reads their
                cycles again for every figure. (What other configs would give, `estimate_cycles` finds out.)
        """
        report = cycle_report(self.taken(), self.device.spec, ShownCycles)
        return replace(report, advice=self.machine_advice(report.cycles)) if suggestions else report

    def network(self) -> NetworkReport:
        """Everything that has run so far as one network; the profile may go on.

        All device operations in order, sums of them by kind and by line of the script, and L1 at its fullest moment.
        """
        return network_report(self.runs(), self.device.spec, ShownNetwork)

    def _repr_html_(self) -> str:
        """A page in a frame, for notebooks."""
        return page_frame(page_of_run(self.network(), self.report(), self.ran, self.device.spec))

    @property
    def ran(self) -> list[RanCall]:
        """The calls that ran a device operation, in order."""
        return [call for call in self.calls if call.ran]

    def machine_advice(self, cycles: int) -> Advice:
        """What the calls depend on that have run so far, and take so many cycles; their plans are held."""
        sensitivity = sensitivities(self.device.spec, self._cycles_on)
        return Advice(
            cycles=cycles,
            machine=machine_changes(sensitivity, least_share=LEAST_SHARE, most=MOST_OF_MACHINE),
            sensitivity=sensitivity,
        )

    def measured(self) -> Measured:
        """What the calls take that have run so far."""
        taken = self.taken()
        chosen = [
            decision.value
            for call in self.calls
            for decision in call.plan.decisions
            if decision.name == SCHEME_DECISION
        ]
        return Measured(
            cycles=sum(call.total.cycles for call in taken),
            untimed=sum(len(call.untimed) for call in taken),
            effort=sum(len(call.plan.steps) + _most_rows(call.plan) // ROWS_OF_A_STEP for call in self.calls),
            scheme=", ".join(map(str, chosen)),
        )

    def taken(self) -> list[CallRun]:
        """What each of the calls took that ran."""
        device = self.device
        return [timed_call(call, device.spec, op_models=device.op_models, plans=device.plans) for call in self.ran]

    def runs(self) -> Runs:
        """The device operations of these calls."""
        return runs_of(self.ran, self.taken(), self.device.spec)

    def _cycles_on(self, spec: DeviceSpec) -> float:
        """Cycles of the same plans on another machine, in fractions, so that small changes show."""
        return fsum(cycles_of(call, spec, op_models=self.device.op_models) for call in self.ran)


def _most_rows(plan: Plan) -> int:
    return max((prod(tensor.shape[:-1]) for tensor in plan.tensors.values()), default=0)


def profile(device: Device) -> AbstractContextManager[Profile]:
    """Records the calls of a ``with`` block on one device; profiles may nest, and devices do not disturb each other.

    Calls that a graph capture does not dispatch take no time and are left out. A device opened with ``cycles=False``
    records nothing.

    Raises:
        ArgumentTypeError: It is no device.
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
    """What a call would take, without making it: it is planned on a copy of the device's memory, without values.

    Args:
        function: A function of this library, such as ``ttsim.conv_transpose2d`` or ``ttsim.add``.
        *arguments: Of the call; tensors may be given as such, or as a TensorDescription.
        device: Where it would run; it stays as it is, and so do the tensors. The function gets it if it takes a device.
        suggestions: Search for other configs that would be faster, too, and say which figures of the machine the call
            depends on: the report's ``advice``. The search is bounded, and takes some ten times as long as the call.
        **options: Of the call.

    Raises:
        Exception: Whatever the call raises, for example because it does not fit.
    """
    require_type("estimate_cycles", Device, device=device)
    require_type("estimate_cycles", bool, suggestions=suggestions)
    if not callable(function):
        raise ArgumentTypeError(
            f"estimate_cycles: function must be one of this library, such as ttsim.conv_transpose2d, not "
            f"{shown(function)}"
        )
    result = _tried(function, arguments, options, device, suggestions=device.suggestions)
    report = result.report()
    return replace(report, advice=_advice(result, function, arguments, options, device)) if suggestions else report


def _advice(
    call_profile: Profile,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    options: Mapping[str, Any],
    device: Device,
) -> Advice:
    def measure(others: Mapping[str, Any]) -> Measured:
        return _tried(function, arguments, others, device, suggestions=False).measured()

    before = call_profile.measured()
    machine = call_profile.machine_advice(before.cycles)
    advice = Search(function, options, measure).run(before)
    return replace(advice, machine=machine.machine, sensitivity=machine.sensitivity)


def _tried(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    options: Mapping[str, Any],
    device: Device,
    *,
    suggestions: bool,
) -> Profile:
    with uncaptured(), copy_of(device, suggestions=suggestions) as copy:
        positional = [twin(value, device, copy) for value in arguments]
        named = {name: twin(value, device, copy) for name, value in options.items()}
        if "device" in signature(function).parameters:
            named["device"] = copy
        with profile(copy) as profiled:
            function(*positional, **named)
    return profiled


@contextmanager
def uncaptured() -> Iterator[None]:
    """Hides a ``with`` block from running graph captures."""
    before = current()
    remember(replace(before, captures=()))
    try:
        yield
    finally:
        remember(before)


def copy_of(device: Device, *, suggestions: bool = False) -> Device:
    """A device in the same state, without values, for trial calls."""
    copy = Device(
        device.spec,
        device_id=device.device_id,
        values="off",
        strict=device.strict,
        suggestions=suggestions,
        op_models=device.op_models,
    )
    copy.machine = locked(device.machine, device.machine.copy)
    return copy


def twin(value: Any, device: Device, copy: Device) -> Any:
    """The same value for a call on the copy: tensors and descriptions become tensors there, also in lists."""
    if isinstance(value, list | tuple) and any(isinstance(item, Tensor | TensorDescription) for item in value):
        return [twin(item, device, copy) for item in value]
    if isinstance(value, TensorDescription):
        return tensor_like(value, copy)
    if not isinstance(value, Tensor) or value.device() is not device or not value.is_allocated():
        return value
    buffer = copy.machine.memory.at(value.buffer.spec.buffer_type, value.buffer_address())
    return Tensor.of_buffer(copy, buffer, value.spec, made_by=value.made_by)
