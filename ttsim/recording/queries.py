"""Queries of the memory and time of calls, with the names of tt-metal's graph queries (graph_query_op_constraints.hpp).

Every query runs on its own copy of the device, so the device itself stays unchanged.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from device.errors import ArgumentTypeError, TTSimError, shown
from device.machine import Machine
from device.memory.memory_config import BufferType
from device.plan import Event, UsagePerCore, usage_per_core
from ops.launch import Replay
from ops.passes.memory import usage_without_dispatch
from ttsim.recording.profiling import Profile, planned, profile, refusal_by
from ttsim.report.cycle_report import CycleReport, launch_times
from ttsim.runtime.device import Device
from ttsim.runtime.execution import require_here
from ttsim.runtime.queried import (
    AllocationRecord,
    ConstraintQueryResponse,
    ExecutionStatus,
    MockAllocatorState,
    QueryOutput,
    ResourceUsage,
    RuntimeQueryResponse,
    l1_bytes_of,
    refusal_of,
    tensors_of,
)
from ttsim.runtime.session import Capture, current, remember
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.tensor_copies import DESCRIPTIONS, tensor_like
from ttsim.runtime.traces import RanCall
from ttsim.runtime.types.call import require_type
from ttsim.runtime.types.tensor_spec import TensorSpec

MEMORIES: Final = (BufferType.DRAM, BufferType.L1, BufferType.L1_SMALL)


def query_op_constraints(
    op: Callable[..., Any], device: Device, /, *args: Any, **kwargs: Any
) -> ConstraintQueryResponse:
    """The memory that a call would take, from its plan; nothing is allocated, so it is never out of memory.

    As in tt-metal, a result larger than L1 has the status Success: compare the peaks with the size of L1, or use
    `query_op_constraints_with_initial_state`, which allocates results.

    Args:
        op: A function of this library, or a function that calls functions of this library.
        device: The device; it stays unchanged.
        args: Arguments of the call. A TensorSpec or TensorDescription represents a tensor on the device and counts in
            the peaks; a Tensor counts as allocated before the call.
        kwargs: Keyword arguments of the call, with the same rules.

    Returns:
        The response; a refused call has the status Error and the text of its error.

    Raises:
        ArgumentTypeError: ``op`` cannot be called, or ``device`` is not a device.

    Examples:
        >>> spec = ttnn.TensorSpec((1, 1, 64, 128), ttnn.bfloat16, ttnn.TILE_LAYOUT, ttnn.BufferType.L1)
        >>> ttnn.graph.query_op_constraints(ttnn.relu, device, spec).resource_usage
        ResourceUsage(cb_peak_size_per_core=0, l1_buffers_peak_per_core=4096, peak_memory_usage_per_core=12288, ...)
    """
    _check("query_op_constraints", op, device)
    return Context().run(_without_placing, op, device, args, kwargs)


def query_op_constraints_with_initial_state(
    op: Callable[..., Any], device: Device, initial_state: MockAllocatorState, /, *args: Any, **kwargs: Any
) -> QueryOutput:
    """The memory that a call takes in addition to a given state; results are allocated, arguments are not.

    Programs are not cached: their buffers in L1_SMALL are free after the call. An argument that the call frees stays in
    the state, and a result that is a view of an argument has address 0.

    Args:
        op: A function of this library, or a function that calls functions of this library.
        device: The device; it stays unchanged.
        initial_state: The state of memory before the call, including the call's arguments.
        args: Arguments of the call. A TensorSpec or a Tensor represents a tensor whose memory is in the state.
        kwargs: Keyword arguments of the call, with the same rules.

    Returns:
        The response, whose peaks exclude the arguments, the state after the call, and the buffers of the results. A
        call that does not fit has the status Error.

    Raises:
        ArgumentTypeError: ``op`` cannot be called, or an argument is of the wrong type.
        DeviceError: A region of the state exceeds a memory of the device.

    Examples:
        >>> empty = ttnn.graph.extract_mock_allocator_state(device)
        >>> spec = ttnn.TensorSpec((1, 1, 16384, 16384), ttnn.bfloat16, ttnn.TILE_LAYOUT, ttnn.BufferType.L1)
        >>> output = ttnn.graph.query_op_constraints_with_initial_state(ttnn.relu, device, empty, spec)
        >>> output.response.refusal
        'memory'
    """
    _check("query_op_constraints_with_initial_state", op, device)
    require_type("query_op_constraints_with_initial_state", MockAllocatorState, initial_state=initial_state)
    return Context().run(_on_top_of, op, device, initial_state, args, kwargs)


def query_op_runtime(op: Callable[..., Any], device: Device, /, *args: Any, **kwargs: Any) -> RuntimeQueryResponse:
    """The time that a call would take on a device in its current state; nothing runs.

    Args:
        op: A function of this library, or a function that calls functions of this library.
        device: The device; it stays unchanged.
        args: Arguments of the call; a TensorSpec or TensorDescription represents a tensor on the device.
        kwargs: Keyword arguments of the call, with the same rules.

    Returns:
        Nanoseconds of the kernels and of a trace replay, with the expected error; a refused call has the status Error.

    Raises:
        ArgumentTypeError: ``op`` cannot be called, or ``device`` is not a device.

    Examples:
        >>> spec = ttnn.TensorSpec((1, 1, 32, 32), ttnn.bfloat16, ttnn.TILE_LAYOUT)
        >>> runtime = ttnn.graph.query_op_runtime(ttnn.relu, device, spec).runtime
        >>> runtime == ttnn.estimate_cycles(ttnn.relu, spec, device=device).nanoseconds
        True
    """
    _check("query_op_runtime", op, device)
    return runtime_and_report(op, device, args, kwargs)[0]


def runtime_and_report(
    op: Callable[..., Any], device: Device, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[RuntimeQueryResponse, CycleReport | None]:
    """The answer of `query_op_runtime`, and the report with the time of each device operation; None if refused."""
    return _timed(lambda: planned(op, args, kwargs, device, gives_device=False), op, args, kwargs)


def query_constraints_and_runtime(
    op: Callable[..., Any], device: Device, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[ConstraintQueryResponse, RuntimeQueryResponse]:
    """The answers of `query_op_constraints` and `query_op_runtime`; a convolution is planned once for both."""
    memory: list[_Observed] = []

    def observed(*args: Any, **kwargs: Any) -> None:
        in_dram = all(
            tensor.buffer.spec.buffer_type is BufferType.DRAM for tensor in tensors_of((*args, *kwargs.values()))
        )
        results = tensors_of(op(*args, **kwargs))
        memory.append(_Observed(in_dram, *_described(results)))

    def run() -> Profile:
        profiled = planned(observed, args, kwargs, device, gives_device=False)
        memory[0] = memory[0]._replace(calls=tuple(profiled.calls))
        return profiled

    runtime, _ = _timed(run, op, args, kwargs)
    constraints = memory[0].constraints(device) if memory else None
    return constraints or query_op_constraints(op, device, *args, **kwargs), runtime


class _Observed(NamedTuple):
    """The memory events of a call that ran on a copy of its device."""

    in_dram: bool  # Whether all tensors that it was given on the device lay in DRAM
    outputs: tuple[TensorSpec, ...]
    output_bytes: int  # Of a core that results take which stay in L1
    calls: tuple[RanCall, ...] = ()

    def constraints(self, device: Device) -> ConstraintQueryResponse | None:
        """The response of a query that allocates nothing, if it would have the same plan; else None.

        The plan of a convolution depends only on its arguments and the free bytes of L1.
        """
        convolution = len(self.calls) == 1 and self.calls[0].asked is not None
        if not (convolution and self.in_dram) or device.machine.memory.live():
            return None
        return _accepted(usage_without_dispatch(self.calls[0].plan), self.outputs, self.output_bytes)


def query_op_runtime_with_initial_state(
    op: Callable[..., Any], device: Device, initial_state: MockAllocatorState, /, *args: Any, **kwargs: Any
) -> RuntimeQueryResponse:
    """The time that a call would take with a given state of memory; tt-metal has no such query.

    Occupied memory can change a plan, such as the blocks of a matmul, and so its time.

    Args:
        op: A function of this library, or a function that calls functions of this library.
        device: The device; it stays unchanged.
        initial_state: The state of memory before the call, including the call's arguments.
        args: Arguments of the call. A TensorSpec or a Tensor represents a tensor whose memory is in the state.
        kwargs: Keyword arguments of the call, with the same rules.

    Returns:
        The response of `query_op_runtime`; a call that does not fit has the status Error.

    Raises:
        ArgumentTypeError: ``op`` cannot be called, or an argument is of the wrong type.
        DeviceError: A region of the state exceeds a memory of the device.

    Examples:
        >>> empty = ttnn.graph.extract_mock_allocator_state(device)
        >>> spec = ttnn.TensorSpec((1, 1, 32, 32), ttnn.bfloat16, ttnn.TILE_LAYOUT)
        >>> on_top = ttnn.graph.query_op_runtime_with_initial_state(ttnn.relu, device, empty, spec)
        >>> on_top == ttnn.graph.query_op_runtime(ttnn.relu, device, spec)
        True
    """
    _check("query_op_runtime_with_initial_state", op, device)
    require_type("query_op_runtime_with_initial_state", MockAllocatorState, initial_state=initial_state)
    return runtime_and_report_on_top_of(op, device, initial_state, args, kwargs)[0]


def runtime_and_report_on_top_of(
    op: Callable[..., Any],
    device: Device,
    initial_state: MockAllocatorState,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> tuple[RuntimeQueryResponse, CycleReport | None]:
    """The answer of `query_op_runtime_with_initial_state`, and the report; None if refused."""
    trial = _occupied(device, initial_state)

    def run() -> Profile:
        device.machine.require_open()
        _capture(dispatch=False)
        own, named = _replaced(args, kwargs, Tensor | DESCRIPTIONS, device, trial)
        _capture(dispatch=True)
        with profile(trial) as profiled:
            op(*own, **named)
        return profiled

    return Context().run(_timed, run, op, args, kwargs)


def _timed(
    run: Callable[[], Profile], op: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[RuntimeQueryResponse, CycleReport | None]:
    """The times of a call that a function plans, and their report."""
    try:
        profiled = run()
        report = profiled.report()
    except (TTSimError, TypeError) as caught:
        error = refusal_by(caught, op, args, kwargs)
        refusal = refusal_of(error)
        return RuntimeQueryResponse(status=ExecutionStatus.Error, error_message=str(error), refusal=refusal), None
    queue = [launch for call in report.calls for launch in call.run.launches]
    replays = launch_times(queue, report.nanoseconds, profiled.device.spec, [Replay.TRACE]).readings
    response = RuntimeQueryResponse(
        status=ExecutionStatus.Success,
        runtime=round(report.nanoseconds),
        trace_replay=replays[0].total_nanoseconds if replays else 0,
        error_share=report.total.error.share,
        unmeasured_share=report.total.error.unmeasured_share,
        untimed=tuple(operation.name for call in report.calls for operation in call.untimed),
    )
    return response, report


def extract_mock_allocator_state(device: Device) -> MockAllocatorState:
    """The current state of a device's memories.

    Args:
        device: The device.

    Returns:
        The state; it does not change with the device.

    Raises:
        ArgumentTypeError: The argument is not a device.

    Examples:
        >>> ttnn.graph.extract_mock_allocator_state(device).is_empty(ttnn.BufferType.L1)
        True
    """
    require_type("extract_mock_allocator_state", Device, device=device)
    return _state(device.machine)


def _check(name: str, op: object, device: object) -> None:
    require_type(name, Device, device=device)
    if not callable(op):
        raise ArgumentTypeError(f"{name}: op must be a function of this library, such as ttsim.relu, not {shown(op)}")


def _like(device: Device) -> Device:
    """An empty device with the same spec that computes no values."""
    return Device(
        device.spec, l1_small_size=device.machine.l1_small_bytes, values="off", strict=device.strict, suggestions=False,
        op_models=device.op_models,
    )  # fmt: skip


def _occupied(device: Device, state: MockAllocatorState) -> Device:
    """A copy of a device with this state of memory and without a program cache."""
    trial = _like(device)
    trial.machine.keeps_programs = False
    for kind, regions in state.regions.items():
        trial.machine.allocator.occupy(kind, regions)
    return trial


def _capture(*, dispatch: bool) -> list[Event]:
    """A context that records events."""
    capture = Capture(dispatch=dispatch)
    remember(replace(current(), captures=(capture,)))
    return capture.events


def _without_placing(
    op: Callable[..., Any], device: Device, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> ConstraintQueryResponse:
    trial = _like(device)
    _capture(dispatch=False)
    try:
        device.machine.require_open()
        args, kwargs = _replaced(args, kwargs, Tensor, device, trial)
        events = _capture(dispatch=False)
        args, kwargs = _replaced(args, kwargs, DESCRIPTIONS, device, trial)
        results = tensors_of(op(*args, **kwargs))
    except (TTSimError, TypeError) as error:
        return _refused(refusal_by(error, op, args, kwargs))
    return _accepted(usage_per_core(events), *_described(results))


def _on_top_of(
    op: Callable[..., Any], device: Device, state: MockAllocatorState, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> QueryOutput:
    trial = _occupied(device, state)
    _capture(dispatch=False)
    refused = None
    try:
        device.machine.require_open()
        args, kwargs = _replaced(args, kwargs, Tensor | DESCRIPTIONS, device, trial)
        events = _capture(dispatch=True)
        results = tensors_of(op(*args, **kwargs))
    except (TTSimError, TypeError) as error:
        refused = _refused(refusal_by(error, op, args, kwargs))
    if refused is not None:  # what the call made is free once the error and its frames are gone
        return QueryOutput(response=refused, new_state=_state(trial.machine))
    return QueryOutput(
        response=_accepted(usage_per_core(events), *_described(results)),
        new_state=_state(trial.machine),
        output_allocations=tuple(_record(result, trial) for result in results),
    )


def _record(result: Tensor, device: Device) -> AllocationRecord:
    """Where a result lies; a view takes no more of its buffer than its own shape needs."""
    spec = result.spec.buffer(device.spec)
    return AllocationRecord(spec.buffer_type, result.buffer.address, spec.bank_bytes)


def _replaced(
    args: Sequence[Any], kwargs: Mapping[str, Any], kinds: Any, device: Device, trial: Device
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments, in which tensors of the trial device replace tensors and descriptions of these types."""
    replaced = partial(_replacement, kinds=kinds, device=device, trial=trial)
    return list(map(replaced, args)), {name: replaced(value) for name, value in kwargs.items()}


def _replacement(value: Any, *, kinds: Any, device: Device, trial: Device) -> Any:
    """An argument for a call on the trial device, including elements of a list or a tuple.

    Raises DeviceError for a tensor on another device than the one that is asked about.
    """
    if type(value) in (list, tuple):
        return type(value)(_replacement(each, kinds=kinds, device=device, trial=trial) for each in value)
    if value is device:
        return trial
    if not isinstance(value, kinds) or (isinstance(value, Tensor) and value.device() is None):
        return value
    if isinstance(value, Tensor):
        require_here(device, {"argument": value})
    return tensor_like(value, trial)


def _described(results: Sequence[Tensor]) -> tuple[tuple[TensorSpec, ...], int]:
    """The specs of the results, and the bytes per core of results in L1."""
    return tuple(TensorSpec.of(result.spec) for result in results), l1_bytes_of(results)


def _accepted(usage: UsagePerCore, outputs: tuple[TensorSpec, ...], output_bytes: int) -> ConstraintQueryResponse:
    return ConstraintQueryResponse(
        status=ExecutionStatus.Success,
        resource_usage=ResourceUsage(*usage, output_bytes),
        output_tensor_specs=outputs,
    )


def _refused(error: TTSimError) -> ConstraintQueryResponse:
    return ConstraintQueryResponse(status=ExecutionStatus.Error, error_message=str(error), refusal=refusal_of(error))


def _state(machine: Machine) -> MockAllocatorState:
    return MockAllocatorState().with_allocations(
        AllocationRecord(kind, block.address, block.size_bytes)
        for kind in MEMORIES
        for block in machine.allocator.blocks(kind)
        if block.allocated
    )
