"""Validates, plans and runs calls of oneDNN operations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from device.errors import ArgumentError
from device.numbers.formats import Array
from device.plan import Plan, ProgramKey
from ops.passes.values import run_values
from ops.planners.conv.arguments import Lowering, lowering_of
from ops.planners.onednn import checks
from ops.planners.onednn.checks import (
    BACKPROP_FILTERS,
    BACKWARD_DATA,
    BACKWARD_WEIGHTS,
    FORWARD,
    Deconvolution,
    Names,
    Operand,
    operand,
)
from ops.planners.onednn.plan import plan_backward_data, plan_backward_weights, plan_forward
from ops.programs.patch_matmul import float64
from ops.programs.patch_matmul.op import Precision
from ops.programs.patch_matmul.values import from_canonical, image_of, weights_of
from ttsim.runtime.device import Device, open_device
from ttsim.runtime.execution import locked_on, place, values_context
from ttsim.runtime.session import current
from ttsim.runtime.system import GetDefaultDevice
from ttsim.runtime.types.call import require_type, require_type_or_none

LOWERINGS: Final = (Lowering.ZERO_INSERTION, Lowering.PHASE)  # others make calls of ttnn


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """The part of a call that depends on its arguments without the values of arrays."""

    name: str
    problem: Deconvolution  # Its sizes, types and formats
    # Plans the call on a device, which is its last argument; the others are all that decides the plan
    plan: partial[Plan]
    shape: tuple[int, ...]
    finish: Callable[[Array], Array]  # The result in the caller's order, of the array that the plan ends in

    @cached_property
    def key(self) -> ProgramKey:
        """Everything that determines the plan."""
        return ProgramKey((self.plan.func, self.plan.args, *self.plan.keywords.items()))

    @cached_property
    def useful_flops(self) -> int:
        """Multiplications and additions of the definition."""
        return self.problem.useful_flops


@dataclass(frozen=True, slots=True)
class Call:
    """A validated call of one operation, which `run` runs; ``plan(spec)`` plans it on a device.

    Examples:
        >>> source, weights = np.ones((1, 2, 1), np.float32), np.ones((2, 1, 1), np.float32)
        >>> window = {"strides": [2], "pads_begin": [0], "pads_end": [0], "dilations": [1]}
        >>> ttnn.onednn.OPERATIONS["ConvTranspose"].call([source, weights], window).shape
        (1, 4, 1)
    """

    prepared: Prepared  # All but its numbers
    arrays: Mapping[str, Array]  # The caller's arrays by their names in the plan

    name = property(attrgetter("prepared.name"), doc="The operation.")
    problem = property(attrgetter("prepared.problem"), doc="Its sizes, types and formats.")
    plan = property(attrgetter("prepared.plan"), doc="Plans the call on a device.")
    shape = property(attrgetter("prepared.shape"), doc="Shape of the result.")


def call_of(
    names: Names, attributes: dict[str, Any], precision: Any, arrays: Mapping[str, Any], **options: Any
) -> Call:
    """A call with oneDNN's attributes on arrays keyed by their names in the plan; raises ArgumentError.

    ``options`` are ``lowering``, ``dst_shape`` and ``strict`` of ConvTranspose, ``src_shape`` of its data gradient, and
    ``weights_shape`` and ``declared`` of its weights gradient in the newer or older form.
    """
    if names is FORWARD:
        require_type(FORWARD.operation, bool, strict=options.get("strict", False))
        options["lowering"] = lowering_of(options["lowering"], FORWARD.operation, LOWERINGS).value
    called = {"src": names.src, "diff_dst": names.diff_dst}
    arrays = {role: array for role, array in arrays.items() if role != "bias" or array is not None}
    operands = {role: operand(names, called.get(role, role), array, precision) for role, array in arrays.items()}
    return Call(_prepared(operands, names, attributes, precision=precision, **options), arrays)


def _prepared(
    operands: dict[str, Operand], names: Names, attributes: dict[str, Any], *, lowering: str = "", **options: Any
) -> Prepared:
    """A checked call of any direction; ``options`` are further arguments of its checks."""
    if "diff_dst" not in operands:
        bias = operands.get("bias")
        problem = checks.forward(operands["src"], operands["weights"], bias, attributes, **options)
        plan = partial(plan_forward, problem, bias=bias is not None, lowering=Lowering(lowering))
        shape = problem.dst_shape
    elif "weights" in operands:
        problem = checks.backward_data(operands["diff_dst"], operands["weights"], attributes, **options)
        plan, shape = partial(plan_backward_data, problem), problem.src_shape
    else:
        problem = checks.backward_weights(**operands, given=attributes, names=names, **options)
        sides = (problem.in_channels, problem.out_channels // problem.groups, *problem.geometry.kernel_shape)
        return Prepared(
            name=names.operation,
            problem=problem,
            plan=partial(plan_backward_weights, problem),
            shape=from_canonical(np.broadcast_to(0, sides), problem.weights_format).shape,
            finish=lambda array: weights_of(array.reshape(array.shape[-len(sides) - 1 :]), problem.weights_format),
        )
    finish = partial(image_of, channels_last=problem.channels_last)
    return Prepared(name=names.operation, problem=problem, plan=plan, shape=shape, finish=finish)


def run(call: Call, device: Device | None = None) -> Array:
    """Runs a call.

    Args:
        call: A validated call, from ``OPERATIONS[name].call(inputs, attributes)``.
        device: The device; None for the default device, or a new device with ``values="fast"``.

    Returns:
        The array; on a device with ``values="off"`` and in a capture without dispatch, all NaN without using memory.

    Raises:
        ArgumentTypeError: ``call`` is not a Call, or ``device`` is not a device.
        DeviceError: The call does not fit the device.

    Examples:
        >>> source, weights = np.ones((1, 2, 1), np.float32), np.ones((2, 1, 1), np.float32)
        >>> window = {"strides": [2], "pads_begin": [0], "pads_end": [0], "dilations": [1]}
        >>> call = ttnn.onednn.OPERATIONS["ConvTranspose"].call([source, weights], window)
        >>> ttnn.onednn.run(call, device).shape
        (1, 4, 1)
    """
    require_type("run", Call, call=call)
    prepared = call.prepared
    require_type_or_none(prepared.name, Device, device=device)
    chosen = device or GetDefaultDevice()
    if chosen is None:
        with open_device(values="fast") as fresh:
            return run(call, fresh)
    problem = prepared.problem
    if not problem.batch:
        return np.zeros(prepared.shape, problem.host_type)
    dispatch = current().dispatch

    def placed() -> Plan:
        plan = chosen.plans.plan_of(prepared.key, chosen.spec, lambda: prepared.plan(chosen.spec))
        with chosen.function(f"onednn.{prepared.name}"):
            for buffer in place(plan, {}, chosen, useful_flops=prepared.useful_flops).values():
                chosen.machine.free(buffer)
        return plan

    plan = locked_on(chosen, placed)
    if not dispatch or chosen.values == "off":
        return np.broadcast_to(problem.host_type.type(np.nan), prepared.shape)
    op_models = float64.OP_MODELS if problem.precision is Precision.FLOAT64 else chosen.op_models
    results = run_values(plan, call.arrays, values_context(chosen), op_models=op_models)
    return prepared.finish(results[plan.results["output"]])


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOperation:
    """An operation of a graph: inputs by position, attributes by name; ``OPERATIONS`` has all operations by name.

    Examples:
        >>> ttnn.onednn.OPERATIONS["ConvTranspose"].inputs
        ('src', 'weights', 'bias')
    """

    name: str
    inputs: tuple[str, ...]  # Names of its inputs, in order
    required: int  # How many of them must be there
    prepare: Callable[[Sequence[Any], dict[str, Any], str, str], Call]  # Validates inputs and attributes

    def call(
        self,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        *,
        precision: str = "ieee",
        lowering: str = Lowering.ZERO_INSERTION.value,
    ) -> Call:
        """Validates a call without running it; raises ArgumentError if an argument breaks a rule of oneDNN.

        Args:
            inputs: Arrays in oneDNN's order; optional inputs may be None or omitted.
            attributes: Attributes with oneDNN's names.
            precision: "ieee", "device" or "float64".
            lowering: For the forward operation, "zero_insertion" or "phase".
        """
        tensors = list(inputs)
        if not self.required <= len(tensors) <= len(self.inputs) or any(
            tensor is None for tensor in tensors[: self.required]
        ):
            raise ArgumentError(
                f"{self.name}: inputs must be {self.required} to {len(self.inputs)} tensors "
                f"({', '.join(self.inputs)}), not {len([tensor for tensor in tensors if tensor is not None])}"
            )
        padded = tensors + [None] * (len(self.inputs) - len(tensors))
        return self.prepare(padded, dict(attributes), precision, lowering)

    def __call__(
        self,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        *,
        device: Device | None = None,
        precision: str = "ieee",
        lowering: str = Lowering.ZERO_INSERTION.value,
    ) -> Array:
        """Validates and runs a call; takes the arguments of `call` and the device."""
        return run(self.call(inputs, attributes, precision=precision, lowering=lowering), device)


def _graph_call(names: Names, inputs: Sequence[Any], attributes: dict[str, Any], precision: str, lowering: str) -> Call:
    """A call with the attributes of a graph operation, which has its own default layout of weights."""
    attributes = {names.weights_format: names.usual_format} | attributes
    roles: tuple[str, ...]
    options: dict[str, Any]
    if names is BACKWARD_DATA:
        roles, options = ("diff_dst", "weights"), {}
    elif names is FORWARD:
        roles, options = ("src", "weights", "bias"), {"lowering": lowering}
    else:
        attribute = attributes.pop(names.weights_shape, None)
        options = {"weights_shape": attribute if inputs[2] is None else inputs[2]}
        roles = ("src", "diff_dst")
    return call_of(names, attributes, precision, dict(zip(roles, inputs, strict=False)), **options)


OPERATIONS: Final[Mapping[str, GraphOperation]] = MappingProxyType(
    {
        names.operation: GraphOperation(
            name=names.operation, inputs=inputs, required=2, prepare=partial(_graph_call, names)
        )
        for names, inputs in (
            (FORWARD, ("src", "weights", "bias")),
            (BACKWARD_DATA, ("diff_dst", "weights")),
            (BACKWARD_WEIGHTS, ("src", "diff_dst", "weights_shape")),
            (BACKPROP_FILTERS, ("input_forward", "output_delta", "filter_shape")),
        )
    }
)
