"""Helpers of functions of device tensors: argument checks, docstrings, cached plans, runs."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from inspect import signature
from types import MappingProxyType
from typing import Final, ParamSpec, TypeVar

import numpy as np

from device.errors import ArgumentTypeError, DeviceError, NotSimulatedError, shown
from device.memory.layouts import TensorSpec
from device.numbers.formats import DataFormat
from device.plan import Plan, ProgramKey
from ops.builder import FreeL1
from ops.planners.concat import plan_concat
from ops.planners.shape.repeat import plan_repeat, plan_repeat_interleave
from ops.planners.shape.to_layout import plan_to_layout
from ops.planners.to_config import plan_tilize, plan_to_memory_config, plan_untilize, plan_untilize_with_unpadding
from ttsim.runtime.calls import on_device
from ttsim.runtime.device import Device
from ttsim.runtime.execution import require_allocated, run
from ttsim.runtime.session import current
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.call import OPERATIONS, checked_as, wrong
from ttsim.runtime.types.docs import RAISES, documented
from ttsim.runtime.types.tensors import DataType

# They choose programs and buffers by the L1 that is free below the tensors there
FREE_L1_READERS: Final = (
    plan_concat,
    plan_repeat,
    plan_repeat_interleave,
    plan_tilize,
    plan_to_memory_config,
    plan_to_layout,
    plan_untilize,
    plan_untilize_with_unpadding,
)
P = ParamSpec("P")
R = TypeVar("R")
INPUT_LOST: Final = "Input Tensor is not allocated"  # said of the first tensor of most device operations
LOST: Final = "Tensor is not allocated"
# What parameters of these names mean, where a function's docstring does not say it
TEXTS: Final = MappingProxyType(
    {
        "input_tensor": "A tensor on the device.",
        "memory_config": "Memory of the result; None for that of the tensor.",
        "dtype": "Data type of the result; None for that of the tensor.",
        "use_multicore": "False computes the result on one core.",
        "sub_core_grids": "Not simulated; None for all cores.",
        "use_low_perf": "Not simulated; None for the usual program.",
        "output_tensor": "Not simulated; None creates a new tensor.",
    }
)


def operation_as(
    prefix: str = OPERATIONS,
    raises: Iterable[str] = tuple(RAISES),
    others: Mapping[str, Sequence[str]] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for operations: checks arguments, serializes calls per device, and completes the docstring.

    ``prefix`` precedes the name in the real library's errors; ``raises`` are the errors of the docstring; ``others``
    are arguments of `Signature`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        operation = on_device(checked_as(prefix, others=others)(function))
        parameters = signature(function).parameters
        texts = {name: TEXTS[name] for name in parameters if name in TEXTS}
        errors = {name: RAISES[name] for name in raises}
        operation.__doc__ = documented(
            documented(function.__doc__ or "", {"Args": texts}, parameters), {"Raises": errors}
        )
        return operation

    return decorate


operation = operation_as()


def required_device(owner: str, tensor: Tensor, *, lost: str = INPUT_LOST) -> Device:
    """The device of a tensor; raises DeviceError for a host tensor, or with text ``lost`` for a deallocated one."""
    require_allocated(tensor, first_line=lost)
    device = tensor.device()
    if device is None:
        raise DeviceError(
            "Device Operations expect device tensors as inputs\n"
            f"{owner}: the tensor is on the host; give it to the device with .to(device)"
        )
    return device


def cached_plan(planner: Callable[..., Plan], device: Device, *arguments: Hashable, **options: Hashable) -> Plan:
    """The plan of a call, from the cache if an equal call was planned before.

    ``planner`` takes the arguments, the device spec and options. A division by a side of 0 raises NotSimulatedError;
    the process of the real library ends there.
    """
    spec = device.spec
    if planner in FREE_L1_READERS:
        options["free_l1"] = free_l1(device)
    numbers = [repr(value) for value in (*arguments, *options.values()) if isinstance(value, float)]  # 0.0 is not -0.0
    key = ProgramKey((planner, arguments, *options.items(), *numbers))
    try:
        return device.plans.plan_of(key, spec, lambda: planner(*arguments, spec, **options))
    except ZeroDivisionError as error:
        if not _has_empty((arguments, *options.values())):
            raise
        function = planner.__name__.removeprefix("plan_")
        raise NotSimulatedError(
            f"{function}: a side of 0 by which the real library divides, which ends its process; give elements"
        ) from error


def _has_empty(value: object) -> bool:
    """Whether a tensor without elements is among the arguments of a planner."""
    if isinstance(value, TensorSpec):
        return not value.volume
    if is_dataclass(value):
        return any(_has_empty(getattr(value, field.name)) for field in fields(value))
    return isinstance(value, tuple) and any(map(_has_empty, value))


def free_l1(device: Device) -> FreeL1:
    """The free L1 at the time of a call."""
    machine = device.machine
    room = machine.l1_room_bytes
    before = device.spec.l1.usable_bytes if machine.allocator.lowest_l1_address is None else room
    return FreeL1(before, room, machine.allocator.largest_l1_hole_bytes, allocates=current().dispatch)


def converted(
    owner: str,
    planner: Callable[..., Plan],
    tensor: Tensor,
    *arguments: Hashable,
    strict: Callable[[Plan], None] | None = None,
    lost: str = INPUT_LOST,
    target: Tensor | None = None,
    **options: Hashable,
) -> Tensor:
    """The result of a device operation on one tensor, planned from its spec, arguments and options.

    The option ``target`` is a tensor of the caller that receives the result.

    ``owner`` is the qualified name of the function in ttnn, ``strict`` refuses plans on a strict device, and ``lost``
    is the error text for a deallocated tensor. Raises DeviceError for a deallocated tensor and for a host tensor.
    """
    device = required_device(owner.rpartition(".")[2], tensor, lost=lost)
    if target is not None:
        require_allocated(target, first_line=lost)
        options["target"] = target.spec
    plan = cached_plan(planner, device, tensor.spec, *arguments, **options)
    if device.strict and strict is not None:
        strict(plan)
    return carried_out(owner, plan, tensor, device, target=target)


def carried_out(owner: str, plan: Plan, tensor: Tensor, device: Device, *, target: Tensor | None = None) -> Tensor:
    """Runs a plan on the tensor "input"; "target", if given, receives the result.

    Raises DeviceError if a tensor was deallocated or does not fit.
    """
    require_allocated(tensor, first_line=INPUT_LOST)
    with device.function(f"ttnn.{owner}"):
        return run(plan, {"input": tensor} | ({} if target is None else {"target": target}), device)["output"]


def run_on_several(
    function: str,
    planner: Callable[..., Plan],
    call: Hashable,
    tensors: Mapping[str, Tensor | None],
    strict: Callable[[], None],
) -> Tensor:
    """Plans and runs a call on tensors, keyed by their names in the plan; None leaves a tensor out.

    ``function`` is the qualified name of the function in ttnn; ``strict`` refuses values on a strict device.
    """
    given = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    device, *_ = [required_device(function.rpartition(".")[2], tensor) for tensor in given.values()]
    plan = cached_plan(planner, device, call)
    if device.strict:
        strict()
    with device.function(f"ttnn.{function}"):
        return run(plan, given, device)["output"]


def are_readable(*tensors: Tensor | None) -> bool:
    """Whether the values of all tensors are known; on a device with ``values="off"`` they are not."""
    return all(tensor is None or (tensor.known and not tensor.distributed) for tensor in tensors)


def format_of(dtype: DataType | None) -> DataFormat | None:
    """The data format of a data type, if there is one."""
    return None if dtype is None else dtype.format


def require_left_out(owner: str, **arguments: object) -> None:
    """Raises ArgumentError for an argument of a feature that is not simulated, unless it is None, False or empty."""
    for name, value in arguments.items():
        empty = isinstance(value, list | tuple) and not value
        if not (value is None or value is False or empty):
            raise NotSimulatedError(f"{owner}: {name} is not simulated; leave it out")


def pair_of(owner: str, name: str, value: object) -> tuple[Tensor, Tensor] | None:
    """A pair of tensors for two results, or None; raises ArgumentTypeError for other values."""
    if value is None:
        return None
    if isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(tensor, Tensor) for tensor in value):
        return value[0], value[1]
    raise wrong(owner, f"{name} must be a tuple of two tensors, not {shown(value)}")


def named_targets(names: Sequence[str], targets: Sequence[Tensor] | None) -> dict[str, Tensor]:
    """The caller's tensors for the results of a plan, keyed by their names in the plan; empty without such tensors."""
    return dict(zip(names, targets, strict=True)) if targets else {}


def sides_of(operation: str, shape: object) -> Sequence[int]:
    """The argument ``shape`` of an operation, a sequence; raises ArgumentTypeError for anything else.

    Methods of tensors take integers one by one, operations of the bindings do not.
    """
    if isinstance(shape, str | bytes) or not isinstance(shape, Sequence | np.ndarray):
        raise wrong(operation, f"shape must be a sequence of integers, not {shown(shape)}")
    return shape  # type: ignore[return-value]


def integers_of(what: str, values: object) -> tuple[int, ...]:
    """A sequence of integers as a tuple; raises ArgumentTypeError, which names the argument ``what``."""
    if not isinstance(values, Sequence) or not all(isinstance(value, int) for value in values):
        raise ArgumentTypeError(f"{what} must be a sequence of integers, not {shown(values)}")
    return tuple(values)
