"""Runs a plan on a device: binds tensors to operands, allocates, computes values, and returns tensors."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from device.errors import ArgumentError, DeviceError, NotSimulatedError, shown
from device.matrix_unit.arithmetic import EXACT, FAST, Arithmetic
from device.memory.buffers import Buffer
from device.memory.memory_config import BufferType
from device.numbers.formats import Array
from device.plan import TARGET, Allocate, BufferAllocated, Event, Operation, Plan, WrittenTensor
from ops.op_model import ValuesContext
from ops.passes.cycles import steps_that_ran
from ops.passes.memory import run_memory
from ops.passes.values import run_values
from ops.planners.conv.arguments import ConvCall
from ttsim.runtime.device import Device
from ttsim.runtime.session import current, locked
from ttsim.runtime.storage import not_allocated
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.traces import RanCall, TracedCall, call_sites
from ttsim.runtime.types.tensors import DataType, Shape

LONGEST = 2000  # characters of an argument that is told in full


def texts(arguments: Iterable[tuple[str, object]]) -> tuple[tuple[str, str], ...]:
    """Arguments as text; tensors and arrays are described without their values."""
    return tuple((name, _text(value)) for name, value in arguments)


def _text(value: Any) -> str:
    if isinstance(value, Tensor):
        # As in the real library's capture, without the tensor's number there, by which equal calls would differ
        spec, device = value.spec, value.device()
        home = "" if device is None else f", device_id={device.device_id}"
        return (
            f"ttnn.Tensor(shape={Shape(spec.shape)}, dtype={DataType.of(spec.data_format)}, layout={spec.layout}, "
            f"memory_config={spec.memory_config.reported()}, storage_type={value.storage_type()}, "
            f"is_allocated={value.is_allocated()}{home})"
        )
    if isinstance(value, list | tuple):
        inner = ", ".join(map(_text, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_text(name)}: {_text(item)}' for name, item in value.items())}}}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        kind = type(value)
        return f"{kind.__module__.partition('.')[0]}.{kind.__name__}(shape={list(value.shape)}, dtype={value.dtype})"
    try:
        text = str(value)
    except Exception:  # a value whose own text fails
        return shown(value)
    return text if len(text) <= LONGEST else shown(value)


R = TypeVar("R")

PREPARED = frozenset({"weight", "bias"})  # operands that may have been prepared, by their names in plans
ARITHMETIC: Mapping[str, Arithmetic] = MappingProxyType({"exact": EXACT, "fast": FAST})


def locked_on(device: Device, function: Callable[[], R]) -> R:
    """Runs a function while no other thread uses the device; see `locked`."""
    running = len(device.functions)
    try:
        return locked(device.listened(), function)
    except BaseException:
        del device.functions[running:]
        raise


def free_l1_bytes(device: Device) -> int:
    """Free bytes of every L1 bank."""
    return device.machine.allocator.statistics(BufferType.L1).free_bytes_per_bank


def values_context(device: Device) -> ValuesContext:
    """How a device computes values; its ``values`` are not "off"."""
    return ValuesContext(spec=device.spec, arithmetic=ARITHMETIC[device.values])


def run(
    plan: Plan,
    tensors: Mapping[str, Tensor],
    device: Device,
    *,
    useful_flops: int | None = None,
    asked: ConvCall | None = None,
    input_shape: tuple[int, int] | None = None,
) -> dict[str, Tensor]:
    """Runs a plan; returns tensors by their names in ``plan.results``; the caller's tensors may be returned as views.

    Args:
        tensors: The caller's tensors by their names in the plan, on the host or on the device.
        useful_flops: Multiplications and additions of the call's definition, for profiles.
        asked: The arguments of a convolution, for profiles.
        input_shape: Sticks and channels of the input according to the arguments, if the tensor differs: surplus
            elements are ignored, missing elements are zero.

    On a mesh, every device runs the plan on its parts of the tensors. Raises DeviceError if a buffer or the circular
    buffers of a program do not fit, or a tensor lives elsewhere.
    """
    run_on = partial(_run, plan, useful_flops=useful_flops, asked=asked, input_shape=input_shape)
    if not device.others and not any(tensor.distributed for tensor in tensors.values()):
        return run_on(tensors, device)
    parts = [_parts(name, tensor, device) for name, tensor in tensors.items()]
    results = run_on(tensors, device)
    others = []
    for number, other in enumerate(device.others, 1):
        own = {name: part[number] for name, part in zip(tensors, parts, strict=True)}
        others.append(locked(other.machine, partial(run_on, own, other)))
    for role, result in results.items():
        result.spread([each[role] for each in others])
    return results


def _parts(name: str, tensor: Tensor, device: Device) -> list[Tensor]:
    """The part of a tensor for each device of a mesh; raises DeviceError for a tensor on only one of the devices."""
    if tensor.distributed and tensor.mesh_shape().mesh_size() == len(device.devices):
        return tensor.each()
    if tensor.distributed or _lives(tensor):
        raise DeviceError(
            f"{name}_tensor has no part for each device of a mesh of {device.shape}, as the call needs it; distribute "
            "the tensor over this mesh with a mesh_mapper"
        )
    return [tensor] * len(device.devices)


def _run(
    plan: Plan,
    tensors: Mapping[str, Tensor],
    device: Device,
    *,
    useful_flops: int | None,
    asked: ConvCall | None,
    input_shape: tuple[int, int] | None,
) -> dict[str, Tensor]:
    """Runs a plan on one device, the first of its mesh."""
    require_here(device, tensors)
    _require_written(tensors, asked)
    dispatch = current().dispatch
    computes = dispatch and device.values != "off"
    if computes and plan.without_values is not None:
        raise NotSimulatedError(f'{plan.without_values}, or open the device with values="off"')
    # A result may go where nothing was written; operations that write a part of it ask for the rest
    read = [(name, tensor.each()[0]) for name, tensor in tensors.items()] if computes else []
    read = [
        (name, tensor)
        for name, tensor in read
        if not name.startswith(TARGET) or not tensor.is_allocated() or tensor.known
    ]
    arrays = {name: _array(name, tensor, _lives(tensors[name]), input_shape) for name, tensor in read}
    on_device = {name: tensor.buffer for name, tensor in tensors.items() if _lives(tensor)}
    buffers = on_device | place(plan, on_device, device, useful_flops=useful_flops, asked=asked)
    results = {}
    prepared = {step.tensor: step.op for step in plan.steps if isinstance(step, Allocate)}
    for role, name in plan.results.items():
        own = tensors.get(name)
        if own is None or buffers.get(name) is not on_device.get(name):  # its own, or moved to another place
            own = Tensor.of_buffer(device, buffers[name], plan.tensors[name], created_by=prepared.get(name))
        elif plan.tensors[name] != own.spec:
            own = own.seen_as(plan.tensors[name])
        results[role] = own
    if dispatch and device.traces.capturing is not None:
        device.traces.capturing.calls.append(_traced(plan, tensors, on_device, arrays, results, device, input_shape))
    if computes:
        result = run_values(plan, arrays, values_context(device), op_models=device.op_models, kept=device.kept)
        for name in set(plan.results.values()):
            if result[name] is arrays.get(name) and buffers.get(name) is on_device.get(name):
                continue
            buffers[name].store(result[name], plan.tensors[name])
    elif dispatch:
        for step in plan.steps:
            if isinstance(step, Operation):
                for name in on_device.keys() & set(step.written):
                    on_device[name].forget()  # which the operation would write
    return results


def _traced(
    plan: Plan,
    tensors: Mapping[str, Tensor],
    on_device: Mapping[str, Buffer],
    arrays: Mapping[str, Array],
    results: Mapping[str, Tensor],
    device: Device,
    input_shape: tuple[int, int] | None,
) -> TracedCall:
    """A call for later replay on the current contents of its device inputs; the call may have freed its inputs."""
    specs = {name: tensors[name].spec for name in on_device}
    result = {plan.results[role]: tensor for role, tensor in results.items()}
    written = {name: (tensor.buffer, tensor.spec) for name, tensor in result.items() if _lives(tensor)}
    host = {name: array for name, array in arrays.items() if name not in on_device}

    def values(stored: Mapping[str, Array]) -> Mapping[str, Array]:
        """The arrays that are written, of those that lie in the buffers that are read."""
        there = {name: Tensor.of_host(stored[name], spec) for name, spec in specs.items()}
        operands = host | {name: _array(name, tensor, True, input_shape) for name, tensor in there.items()}
        computed = run_values(plan, operands, values_context(device), op_models=device.op_models, kept=device.kept)
        given_back = {name for name in on_device if name in written and written[name][0] is on_device[name]}
        return {
            name: computed[name] for name in written if name not in given_back or computed[name] is not operands[name]
        }

    return TracedCall(read=on_device, written=written, values=None if device.values == "off" else values)


def _lives(tensor: Tensor) -> bool:
    return tensor.device() is not None


def place(
    plan: Plan,
    on_device: Mapping[str, Buffer],
    device: Device,
    *,
    useful_flops: int | None = None,
    asked: ConvCall | None = None,
) -> dict[str, Buffer]:
    """Allocates a plan's buffers and records the device operations that ran; returns the results' buffers by name.

    ``on_device`` are the buffers of tensors that are already on the device.
    """
    dispatch = current().dispatch
    profiled = bool(device.profilers) and device.cycles and dispatch
    live = device.machine.memory.live() if profiled else ()  # as allocations, so that a profile keeps no values
    before = tuple(BufferAllocated(buffer.number, buffer.name, buffer.address, buffer.spec) for buffer in live)
    arguments = texts(device.given) if profiled and device.of_script else ()  # before a tensor in it is released
    events: list[Event] = []

    def record(
        ran: tuple[int, ...] = (), buffers: Mapping[str, Buffer] = MappingProxyType({}), error: str = ""
    ) -> None:
        inputs = _tensors(plan, on_device, on_device)
        results = _tensors(plan, buffers, dict.fromkeys(plan.results.values()))
        call = RanCall(
            function=device.running, plan=plan, ran=ran, useful_flops=useful_flops, asked=asked, given=arguments,
            sites=call_sites() if device.of_script else (), before=before, events=tuple(events), inputs=inputs,
            results=results, error=error,
        )  # fmt: skip
        for profiler in device.profilers:
            profiler.append(call)

    with device.recording(events) as machine:
        try:
            buffers = run_memory(plan, machine, on_device, dispatch=dispatch)
        except DeviceError as error:
            if profiled:
                record(error=str(error))
            raise
    if profiled:
        record(steps_that_ran(events), buffers)
    return buffers


def _tensors(plan: Plan, buffers: Mapping[str, Buffer], names: Iterable[str]) -> tuple[tuple[str, WrittenTensor], ...]:
    """Tensors of a plan that are on the device, each as its buffer and its spec in the plan."""
    there = ((name, buffers[name]) for name in names if name in buffers and name in plan.tensors)
    return tuple((name, WrittenTensor(buffer.number, buffer.address, plan.tensors[name])) for name, buffer in there)


def require_here(device: Device, tensors: Mapping[str, Tensor]) -> None:
    """Raises DeviceError if one of the tensors, by the names ``NAME_tensor``, lives on another device."""
    for name, tensor in tensors.items():
        home = tensor.device()
        if home is not None and home is not device:
            there, here = (  # in words that distinguish devices of a kind, which may have the same number
                f"{each.spec.name} opened as {each.device_id}{' and closed' if each.machine.closed else ''} "
                f"(object {id(each):#x})"
                for each in (home, device)
            )
            raise DeviceError(
                f"{name}_tensor lives on another device, {there}, than the call runs on, {here}; bring it to the host "
                "with .cpu() and give it to this one with .to(device)"
            )


def _require_written(tensors: Mapping[str, Tensor], asked: ConvCall | None) -> None:
    """Raises ArgumentError for a tensor with elements that were never written.

    A convolution of fewer channels than its image has multiplies the others by zeros, so these need not be written.
    """
    for name, tensor in tensors.items():
        unwritten = tensor.buffer.unwritten if _lives(tensor) else None
        if unwritten and not (name == "input" and asked is not None and asked.in_channels <= unwritten.channels):
            raise ArgumentError(unwritten.text)


def _array(name: str, tensor: Tensor, on_device: bool, input_shape: tuple[int, int] | None) -> Array:
    """A tensor's values as a plan reads them: prepared weights with padding, all other tensors without padding."""
    array = tensor.padded_values() if on_device and name in PREPARED else tensor.values(unwritten=True)
    return _sticks(array, *input_shape) if name == "input" and input_shape is not None else array


def _sticks(values: Array, sticks: int, channels: int) -> Array:
    """Values as [1, 1, sticks, channels]: the first channels of each stick, or the first elements padded with zeros."""
    if values.size == sticks * values.shape[-1] and values.shape[-1] > channels:
        return values.reshape(1, 1, sticks, -1)[..., :channels]
    result = np.zeros(sticks * channels, values.dtype)
    count = min(values.size, result.size)
    result[:count] = values.reshape(-1)[:count]
    return result.reshape(1, 1, sticks, channels)


def require_allocated(*tensors: Tensor | None, first_line: str = "Tensor is not allocated") -> None:
    """Raises DeviceError if one of the tensors was deallocated."""
    if not all(tensor is None or tensor.is_allocated() for tensor in tensors):
        raise not_allocated(first_line)
