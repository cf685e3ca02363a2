"""From the arguments of a oneDNN operation to a validated call, its plan and its run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from device.errors import ArgumentError, shown
from device.numbers.formats import Array
from device.plan import Plan, ProgramKey
from device.spec.device_spec import DeviceSpec
from ops.passes.values import run_values
from ops.planners.onednn import checks
from ops.planners.onednn.plan import Lowering, plan_backward_data, plan_backward_weights, plan_forward
from ops.planners.onednn.problem import (
    BACKPROP_FILTERS,
    BACKWARD_DATA,
    BACKWARD_WEIGHTS,
    FORWARD,
    Deconvolution,
    Names,
    Operand,
    once_for_alike,
    operand,
)
from ops.programs.patch_matmul import float64
from ops.programs.patch_matmul.op import Precision
from ops.programs.patch_matmul.values import from_canonical, image_of, weights_of
from ttsim.runtime.device import Device, open_device
from ttsim.runtime.execution import locked_on, place, values_context
from ttsim.runtime.session import current
from ttsim.runtime.system import GetDefaultDevice
from ttsim.runtime.types.call import require_type, require_type_or_none

LOWERINGS: Final = tuple(lowering.value for lowering in Lowering)


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """What all calls share whose arguments are alike but for their numbers."""

    name: str
    problem: Deconvolution  # Its sizes, types and formats
    # Plans the call on a device, which is its last argument; the others are all that decides the plan
    plan: partial[Plan]
    shape: tuple[int, ...]
    finish: Callable[[Array], Array]  # The result in the caller's order, of the array that the plan ends in

    @cached_property
    def key(self) -> ProgramKey:
        """All that decides the plan."""
        return ProgramKey((self.plan.func, self.plan.args, *self.plan.keywords.items()))

    @cached_property
    def useful_flops(self) -> int:
        """Multiplications and additions of the definition."""
        return self.problem.useful_flops


@dataclass(frozen=True, slots=True)
class Call:
    """A validated call of one operation.

    Attributes:
        prepared: All but its numbers.
        arrays: The caller's arrays by their names in the plan.
    """

    prepared: Prepared
    arrays: Mapping[str, Array]

    @property
    def name(self) -> str:
        """The operation."""
        return self.prepared.name

    @property
    def problem(self) -> Deconvolution:
        """Its sizes, types and formats."""
        return self.prepared.problem

    @property
    def plan(self) -> Callable[[DeviceSpec], Plan]:
        """Plans the call on a device."""
        return self.prepared.plan

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return self.prepared.shape


def _call(prepare: Callable[..., Prepared], names: Names, precision: Any, *settings: Any, **arrays: Any) -> Call:
    """A call of arrays by their names in the plan; None is no array."""
    there = {role: array for role, array in arrays.items() if array is not None or role != "bias"}
    called = {"src": names.src, "diff_dst": names.diff_dst}
    operands = {role: operand(names, called.get(role, role), array, precision) for role, array in there.items()}
    return Call(prepare(operands, names, precision, *settings), there)


def forward(
    src: Any,
    weights: Any,
    bias: Any,
    attributes: dict[str, Any],
    precision: Any,
    lowering: Any,
    dst_shape: Any = None,
    *,
    strict: bool = False,
) -> Call:
    """A call of ConvTranspose with the attributes of the text; raises ArgumentError."""
    require_type(FORWARD.operation, bool, strict=strict)
    if not isinstance(lowering, str) or lowering not in LOWERINGS:
        raise FORWARD.error(f"lowering must be one of {', '.join(LOWERINGS)}, not {shown(lowering)}")
    settings = (attributes, lowering, dst_shape, strict)
    return _call(_forward, FORWARD, precision, *settings, src=src, weights=weights, bias=bias)


@once_for_alike
def _forward(
    operands: dict[str, Operand],
    names: Names,
    precision: Any,
    attributes: dict[str, Any],
    lowering: str,
    dst_shape: Any,
    strict: bool,
) -> Prepared:
    src, weights, bias = operands["src"], operands["weights"], operands.get("bias")
    problem = checks.forward(src, weights, bias, attributes, precision=precision, dst_shape=dst_shape, strict=strict)
    return Prepared(
        name=names.operation,
        problem=problem,
        plan=partial(plan_forward, problem, bias=bias is not None, lowering=Lowering(lowering)),
        shape=problem.dst_shape,
        finish=partial(image_of, channels_last=problem.channels_last),
    )


def backward_data(
    diff_dst: Any, weights: Any, attributes: dict[str, Any], precision: Any, src_shape: Any = None
) -> Call:
    """A call of ConvTransposeBackwardData with the attributes of the text; raises ArgumentError."""
    return _call(_backward_data, BACKWARD_DATA, precision, attributes, src_shape, diff_dst=diff_dst, weights=weights)


@once_for_alike
def _backward_data(
    operands: dict[str, Operand], names: Names, precision: Any, attributes: dict[str, Any], src_shape: Any
) -> Prepared:
    diff_dst, weights = operands["diff_dst"], operands["weights"]
    problem = checks.backward_data(diff_dst, weights, attributes, precision=precision, src_shape=src_shape)
    return Prepared(
        name=names.operation,
        problem=problem,
        plan=partial(plan_backward_data, problem),
        shape=problem.src_shape,
        finish=partial(image_of, channels_last=problem.channels_last),
    )


def backward_weights(
    names: Names,
    src: Any,
    diff_dst: Any,
    weights_shape: Any,
    attributes: dict[str, Any],
    precision: Any,
    declared: Any = None,
) -> Call:
    """A call of the weights' gradient, newer or older form, with the attributes of the text; raises ArgumentError."""
    return _call(_backward_weights, names, precision, attributes, weights_shape, declared, src=src, diff_dst=diff_dst)


@once_for_alike
def _backward_weights(
    operands: dict[str, Operand],
    names: Names,
    precision: Any,
    attributes: dict[str, Any],
    weights_shape: Any,
    declared: Any,
) -> Prepared:
    src, diff_dst = operands["src"], operands["diff_dst"]
    problem = checks.backward_weights(
        src, diff_dst, weights_shape, attributes, precision=precision, names=names, declared=declared
    )
    canonical = (problem.in_channels, problem.out_channels // problem.groups, *problem.geometry.kernel_shape)
    return Prepared(
        name=names.operation,
        problem=problem,
        plan=partial(plan_backward_weights, problem),
        shape=from_canonical(np.broadcast_to(0, canonical), problem.weights_format).shape,
        finish=lambda array: weights_of(array.reshape(array.shape[-len(canonical) - 1 :]), problem.weights_format),
    )


def run(call: Call, device: Device | None = None) -> Array:
    """Runs a call.

    Args:
        call: What to run; `GraphOperation.call` makes it.
        device: Where; None for the default device, or a fresh one with ``values="fast"``.

    Returns:
        The result; on a device with ``values="off"``, and in a capture without dispatch, an array of NaN that takes no
        memory.
    """
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
    """An operation as a graph holds it: inputs by position, attributes by name.

    Attributes:
        name: The operation.
        inputs: Names of its inputs, in order.
        required: How many of them must be there.
        prepare: Validates inputs and attributes.
    """

    name: str
    inputs: tuple[str, ...]
    required: int
    prepare: Callable[[Sequence[Any], dict[str, Any], str, str], Call]

    def call(
        self,
        inputs: Sequence[Any],
        attributes: Mapping[str, Any],
        *,
        precision: str = "ieee",
        lowering: str = "frame",
    ) -> Call:
        """Validates a call without running it.

        Args:
            inputs: Arrays in the order of the text; optional ones may be None or left out.
            attributes: By the text's names.
            precision: "ieee", "device" or "float64".
            lowering: Of the forward operation, "frame" or "phase".

        Raises:
            ArgumentError: An argument breaks a rule of the text.
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
        lowering: str = "frame",
    ) -> Array:
        """Validates and runs a call; the arguments are those of `call`, and where to run."""
        return run(self.call(inputs, attributes, precision=precision, lowering=lowering), device)


def _graph_forward(
    names: Names, inputs: Sequence[Any], attributes: dict[str, Any], precision: str, lowering: str
) -> Call:
    src, weights, bias = inputs
    return forward(src, weights, bias, {names.weights_format: names.usual_format} | attributes, precision, lowering)


def _graph_backward_data(
    names: Names, inputs: Sequence[Any], attributes: dict[str, Any], precision: str, _: str
) -> Call:
    diff_dst, weights = inputs
    return backward_data(diff_dst, weights, {names.weights_format: names.usual_format} | attributes, precision)


def _graph_backward_weights(
    names: Names, inputs: Sequence[Any], attributes: dict[str, Any], precision: str, _: str
) -> Call:
    src, diff_dst, shape = inputs
    attribute = attributes.pop(names.weights_shape, None)
    return backward_weights(
        names,
        src,
        diff_dst,
        attribute if shape is None else shape,
        {names.weights_format: names.usual_format} | attributes,
        precision,
    )


OPERATIONS: Final[Mapping[str, GraphOperation]] = MappingProxyType(
    {
        names.operation: GraphOperation(
            name=names.operation, inputs=inputs, required=2, prepare=partial(prepare, names)
        )
        for names, prepare, inputs in (
            (FORWARD, _graph_forward, ("src", "weights", "bias")),
            (BACKWARD_DATA, _graph_backward_data, ("diff_dst", "weights")),
            (BACKWARD_WEIGHTS, _graph_backward_weights, ("src", "diff_dst", "weights_shape")),
            (BACKPROP_FILTERS, _graph_backward_weights, ("input_forward", "output_delta", "filter_shape")),
        )
    }
)
