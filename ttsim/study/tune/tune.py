"""ttsim.tune: the fastest, smallest and most exact configs of a call on a device, with reasons."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from math import inf
from typing import Any, Final, NamedTuple

from device.errors import ArgumentError, ArgumentTypeError, DeviceError, shown
from device.memory.memory_config import BufferType
from device.spec.device_spec import DeviceSpec
from device.time.stages import nanoseconds
from ops.op_models import OP_MODELS
from ops.planners.conv.arguments import ConvCall, Lowering
from ttsim.diagnose import MachineSnapshot
from ttsim.recording.profiling import copy_of, timed_call, twin, uncaptured
from ttsim.recording.suggestions import arguments_source
from ttsim.report.cycle_report import CycleReport, cycle_report
from ttsim.report.cycles import OperationTime
from ttsim.report.formatting import cycles
from ttsim.runtime.call_source import slice_argument
from ttsim.runtime.device import Device
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.traces import RanCall
from ttsim.runtime.types.call import require_type, required_integer
from ttsim.runtime.types.configs import Conv2dConfig, Conv2dSliceConfig, WormholeComputeKernelConfig
from ttsim.study.tune.search import Candidate, Search
from ttsim.study.tune.space import SEARCHED, Space, allowed, arithmetics, measured_error
from ttsim.study.tune.tuned import Choice, Tuned

SHOWN_FACTS: Final = 5  # planning differences listed for an operation


def report_on(candidate: Candidate, spec: DeviceSpec) -> CycleReport:
    """The report on a candidate."""
    ran = RanCall(function=f"ttnn.{candidate.call.rules.function}", plan=candidate.plan, ran=candidate.ran)
    return cycle_report([timed_call(ran, spec, op_models=OP_MODELS)], spec)


def differences(after: CycleReport, before: CycleReport) -> tuple[str, ...]:
    """The change in cycles by operation kind between two reports, with the causes, and the remaining roofline."""
    names = dict.fromkeys(operation.name for report in (after, before) for operation in report.operations)
    gains = []
    for name in names:
        now, then = (
            [operation for operation in report.operations if operation.name == name] for report in (after, before)
        )
        taken, took = sum(op.cycles for op in now), sum(op.cycles for op in then)
        if taken == took:
            continue
        text = f"{name}: {cycles(took)} -> {cycles(taken)} cycles"
        if len(now) != len(then):
            text += f", run {len(now)} times instead of {len(then)}"
        if now and then:
            longest = (max(operations, key=lambda op: op.cycles) for operations in (now, then))
            text += "".join(f"; {difference}" for difference in _differences(*longest))
        gains.append((took - taken, text))
    roof = after.total.roofline
    left = f"as it is laid out now, {roof.bound} alone takes {cycles(roof.cycles)} cycles (its roofline)"
    return (*(text for _, text in sorted(gains, key=lambda gain: -gain[0])), left)


def _differences(now: OperationTime, then: OperationTime) -> Iterator[str]:
    """The planning differences between two operations, and their bottlenecks."""
    known = {fact.name: fact for fact in then.facts}
    changed = [
        f"{fact.text} instead of {known[fact.name].text}"
        for fact in now.facts
        if fact.name in known and known[fact.name].value != fact.value
    ]
    yield from changed[:SHOWN_FACTS]
    if len(changed) > SHOWN_FACTS:
        left = len(changed) - SHOWN_FACTS
        yield f"{left} more difference{'s' if left > 1 else ''}"
    bound = f"bound by {now.bound_by}"
    yield bound if now.bound_by == then.bound_by else f"{bound} instead of by {then.bound_by}"


EFFORT: Final = 1000  # calls that are planned, placed and timed


class Question(NamedTuple):
    """A call to tune."""

    call: ConvCall  # The call as it is given
    snapshot: MachineSnapshot  # The device as it is before the call
    tensors: tuple[Tensor, ...]  # Device tensors of the call, kept alive by the question


def tune(
    function: Callable[..., Any],
    /,
    *,
    device: Device,
    allow: Collection[str] = (),
    keep: Collection[str] = (),
    effort: int = EFFORT,
    name: str = "",
    **options: Any,
) -> Tuned:
    """Finds the fastest configs of a call of a convolution; the device stays unchanged.

    Args:
        function: ``ttsim.conv_transpose2d`` or ``ttsim.conv2d``, or a function that calls one of them once.
        device: The device, with the tensors that it holds.
        allow: Fields that may change although they change the result: math_fidelity, fp32_dest_acc_en, packer_l1_acc,
            weights_dtype, dtype, lowering; or "fidelity", "dtypes". For conv_transpose2d only.
        keep: Fields that keep their given values: searched fields of Conv2dConfig, and "slices".
        effort: Maximum number of calls that are planned, placed and timed.
        name: Name of the call in the result; empty for the name of the function.
        options: Arguments of the call; a tensor may be a Tensor or a TensorDescription.

    Returns:
        The configurations that run, fastest first, and the default one for comparison.

    Raises:
        ArgumentTypeError: ``function`` cannot be called, or ``device`` is not a device.
        ArgumentError: A name is unknown, or the call is refused with any config.

    Examples:
        >>> tuned = ttnn.tune(
        ...     ttnn.conv_transpose2d, device=device, keep=["slices", "core_grid", "act_block_h_override"],
        ...     input_tensor=ttnn.TensorDescription((1, 1, 64, 32)),
        ...     weight_tensor=ttnn.TensorDescription((32, 16, 2, 2)), in_channels=32, out_channels=16, batch_size=1,
        ...     input_height=8, input_width=8, kernel_size=(2, 2), stride=(2, 2))
        >>> tuned.best.cycles <= tuned.default.cycles
        True
    """
    require_type("tune", Device, device=device)
    if not callable(function):
        raise ArgumentTypeError(f"tune: function must be one of this library, not {shown(function)}")
    if required_integer("tune", "effort", effort) < 2:
        raise ArgumentError(f"tune: effort must be at least 2 calls, not {effort}")
    for field in keep:
        if field not in SEARCHED:
            raise ArgumentError(f"tune: keep takes {', '.join(SEARCHED)}, not {shown(field)}")
    question = question_of(function, options, device)
    return answer(question, allow=allowed(allow), keep=keep, effort=effort, name=name)


def fastest(
    function: Callable[..., Any],
    options: Mapping[str, Any],
    device: Device,
    *,
    keep: Collection[str] = (),
    effort: int = EFFORT,
) -> Tuned:
    """The fastest config of a call: the search of `tune`, which ends when no call can be faster.

    The best choice equals that of `tune` with the same arguments; the front may be incomplete.
    """
    return answer(question_of(function, options, device), keep=keep, effort=effort, fastest_only=True)


def question_of(function: Callable[..., Any], options: Mapping[str, Any], device: Device) -> Question:
    """The convolution that a call runs, and the device before it."""
    with uncaptured():
        with copy_of(device) as copy:
            try:
                function(**{name: twin(value, device, copy) for name, value in options.items()}, device=copy)
            except (ArgumentError, DeviceError):
                if copy.asked is None:
                    raise
            call = copy.asked
        if call is None:
            raise ArgumentError(f"tune: {shown(function)} asks for no convolution that can be tuned")
        before = copy_of(device)
        arguments = {name: twin(value, device, before) for name, value in options.items()}
    tensors = {name: arguments.get(f"{name}_tensor") for name in ("input", "weight", "bias")}
    there = {name: tensor for name, tensor in tensors.items() if isinstance(tensor, Tensor) and tensor.device()}
    buffers = {name: tensor.buffer for name, tensor in there.items()}
    snapshot = MachineSnapshot(before.machine, buffers, device.strict)
    return Question(call, snapshot, tuple(there.values()))


def answer(
    question: Question,
    *,
    allow: Collection[str] = (),
    keep: Collection[str],
    effort: int,
    fastest_only: bool = False,
    name: str = "",
) -> Tuned:
    """The result of a search that may change the arithmetic fields in `allow`."""
    call, snapshot, _ = question
    spec = snapshot.machine.spec
    search = Search(snapshot=snapshot, effort=effort, fastest_only=fastest_only)
    free = snapshot.machine.allocator.statistics(BufferType.L1).free_bytes_per_bank
    error = measured_error(call, spec) if allow else 0.0
    space = Space(call=call, spec=spec, free_l1_bytes=free, keep=frozenset(keep))
    given, given_error = _attempted(search, call, error)
    default, default_error = _attempted(search, space.plain(), error)
    run = [candidate for candidate in (given, default) if candidate is not None]
    search.most_cycles = min((candidate.cycles for candidate in run), default=inf)
    untimed = min((candidate.untimed for candidate in run), default=0)
    search.front = tuple(candidate for candidate in search.front if candidate.untimed <= untimed)
    for number, other in enumerate(arithmetics(call, allow)):
        exact = measured_error(other, spec) if number else error
        own = replace(space, call=other)
        search.run(own, most_untimed=untimed, rms_error=exact, begin=(other, own.plain()) if number else ())
    best = search.front
    before = default or given
    differs = best and before is not None and best[0] is not before
    choice: Callable[[Candidate], Choice] = partial(choice_of, spec=spec, measured=bool(allow))
    return Tuned(
        name=name or f"ttnn.{call.rules.function}",
        device=spec.name,
        given=None if given is None else choice(given),
        given_error=given_error,
        default=None if default is None else choice(default),
        default_error=default_error,
        front=tuple(map(choice, best)),
        reasons=differences(report_on(best[0], spec), report_on(before, spec)) if differs and before else (),
        space=space.listed(),
        **asdict(search.count),
    )


def _attempted(search: Search, call: ConvCall, error: float) -> tuple[Candidate | None, str]:
    """A candidate, or the error of a call that does not run."""
    try:
        return search.attempt(call, rms_error=error), ""
    except DeviceError as refused:
        return None, str(refused)


def choice_of(candidate: Candidate, spec: DeviceSpec, *, measured: bool) -> Choice:
    """A candidate as a public `Choice`; `measured` says whether its arithmetic error was measured."""
    call, memory = candidate.call, candidate.output.memory_config
    conv_config = Conv2dConfig.of(call.conv_config)
    slices = None if call.slice_config is None else Conv2dSliceConfig.of(call.slice_config)
    compute = None if call.compute_config is None else WormholeComputeKernelConfig.of(call.compute_config)
    lowering = call.rules.lowering
    arguments = {
        "conv_config": conv_config,
        slice_argument(call): slices,
        "compute_config": compute,
        "lowering": None if lowering is Lowering.ZERO_INSERTION else lowering.value,
    }
    return Choice(
        conv_config=conv_config,
        slice_config=slices,
        compute_config=compute,
        lowering=lowering.value,
        arguments=arguments_source({key: value for key, value in arguments.items() if value is not None}),
        cycles=candidate.cycles,
        nanoseconds=nanoseconds(candidate.cycles, spec.clock_hz),
        l1_peak_bytes=candidate.l1_peak_bytes,
        rms_error=candidate.rms_error if measured else None,
        hands_on=f"{candidate.output.layout.name}, {memory.buffer_type.name} {memory.memory_layout.name}",
    )
