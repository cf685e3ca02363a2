"""Calls of oneDNN's operations: validated first, then planned and run; and the operations as a graph holds them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from device.errors import ArgumentError, shown
from device.numbers.formats import Array
from device.plan import Plan, ProgramKey
from ops.calls.onednn import operands, validation
from ops.calls.onednn.alike import MOST_KEPT
from ops.calls.onednn.backward_data import plan_backward_data
from ops.calls.onednn.backward_weights import plan_backward_weights
from ops.calls.onednn.forward import Lowering, plan_forward
from ops.calls.onednn.problem import Deconvolution
from ops.programs.patch_matmul import float64
from ops.programs.patch_matmul.host_values import image_of, weights_of
from ops.programs.patch_matmul.slicing import Precision
from ops.programs.patch_matmul.weight_formats import from_canonical
from ops.readings.values import run_values
from ttsim.runtime.device import Device, open_device
from ttsim.runtime.execution import in_turn_on, place, values_reading
from ttsim.runtime.session import current
from ttsim.runtime.system import GetDefaultDevice
from ttsim.types.signature import require_type, require_type_or_none


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A validated call of one operation.

    Attributes:
        name: The operation.
        problem: Its sizes, types and formats.
        arrays: The caller's arrays by their names in the plan.
        plan: Plans the call on a device, which is its last argument; the others are all that decides the plan.
        shape: Shape of the result.
        finish: The result in the caller's order, of the array that the plan ends in.
    """

    name: str
    problem: Deconvolution
    arrays: Mapping[str, Array]
    plan: partial[Plan]
    shape: tuple[int, ...]
    finish: Callable[[Array], Array]


def run(call: Call, device: Device | None = None) -> Array:
    """Runs a call.

    Args:
        call: What to run; `GraphOperation.call` makes it.
        device: Where; None for the default device, or a fresh one with ``values="fast"``.

    Returns:
        The result; on a device with ``values="off"``, and in a capture without dispatch, an array of NaN that takes no
        memory.
    """
    require_type_or_none(call.name, Device, device=device)
    chosen = device or GetDefaultDevice()
    if chosen is None:
        with open_device(values="fast") as fresh:
            return run(call, fresh)
    host_type = call.problem.host_type
    if not call.problem.batch:
        return np.zeros(call.shape, host_type)
    dispatch = current().dispatch

    def placed() -> Plan:
        key = ProgramKey((call.plan.func, call.plan.args, *call.plan.keywords.items()))
        plan = chosen.plans.plan_of(key, chosen.spec, lambda: call.plan(chosen.spec))
        with chosen.function(f"onednn.{call.name}"):
            for buffer in place(plan, {}, chosen, useful_flops=_useful_flops(call.problem)).values():
                chosen.machine.free(buffer)
        return plan

    plan = in_turn_on(chosen, placed)
    if not dispatch or chosen.values == "off":
        return np.broadcast_to(host_type.type(np.nan), call.shape)
    meanings = float64.MEANINGS if call.problem.precision is Precision.FLOAT64 else chosen.meanings
    made = run_values(plan, call.arrays, values_reading(chosen), meanings=meanings)
    return call.finish(made[plan.results["output"]])


@lru_cache(MOST_KEPT)
def _useful_flops(problem: Deconvolution) -> int:
    return problem.useful_flops


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
        given = list(inputs)
        if not self.required <= len(given) <= len(self.inputs) or any(one is None for one in given[: self.required]):
            raise ArgumentError(
                f"{self.name}: inputs must be {self.required} to {len(self.inputs)} tensors "
                f"({', '.join(self.inputs)}), not {len([one for one in given if one is not None])}"
            )
        padded = given + [None] * (len(self.inputs) - len(given))
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


def forward(
    src: Any,
    weights: Any,
    bias: Any,
    given: dict[str, Any],
    precision: Any,
    lowering: Any,
    dst_shape: Any,
    *,
    strict: bool,
) -> Call:
    """A call of ConvTranspose.

    Args:
        src: The source.
        weights: The weights.
        bias: The bias, or None.
        given: The attributes.
        precision: "ieee", "device" or "float64".
        lowering: "frame" or "phase".
        dst_shape: Shape the result must have, or None.
        strict: Refuse output padding that is not smaller than the stride.

    Raises:
        ArgumentError: An argument breaks a rule of the text.
    """
    names = operands.FORWARD
    require_type(names.operation, bool, strict=strict)
    if not isinstance(lowering, str) or lowering not in [one.value for one in Lowering]:
        raise ArgumentError(
            f"{names.operation}: lowering must be one of {', '.join(one.value for one in Lowering)}, not "
            f"{shown(lowering)}"
        )
    problem = validation.forward(
        operands.operand(names, "src", src, precision),
        operands.operand(names, "weights", weights, precision),
        None if bias is None else operands.operand(names, "bias", bias, precision),
        given,
        precision=precision,
        dst_shape=dst_shape,
        strict=strict,
    )
    arrays = {"src": src, "weights": weights, **({} if bias is None else {"bias": bias})}

    return Call(
        name=names.operation,
        problem=problem,
        arrays=arrays,
        plan=partial(plan_forward, problem, bias=bias is not None, lowering=Lowering(lowering)),
        shape=problem.dst_shape,
        finish=lambda made: image_of(made, channels_last=problem.channels_last),
    )


def backward_data(diff_dst: Any, weights: Any, given: dict[str, Any], precision: Any, src_shape: Any) -> Call:
    """A call of ConvTransposeBackwardData.

    Args:
        diff_dst: Gradient of the destination.
        weights: The weights.
        given: The attributes.
        precision: "ieee", "device" or "float64".
        src_shape: Shape the result must have, or None.

    Raises:
        ArgumentError: An argument breaks a rule of the text.
    """
    names = operands.BACKWARD_DATA
    problem = validation.backward_data(
        operands.operand(names, "diff_dst", diff_dst, precision),
        operands.operand(names, "weights", weights, precision),
        given,
        precision=precision,
        src_shape=src_shape,
    )
    return Call(
        name=names.operation,
        problem=problem,
        arrays={"diff_dst": diff_dst, "weights": weights},
        plan=partial(plan_backward_data, problem),
        shape=problem.src_shape,
        finish=lambda made: image_of(made, channels_last=problem.channels_last),
    )


def backward_weights(
    names: operands.Names,
    src: Any,
    diff_dst: Any,
    weights_shape: Any,
    given: dict[str, Any],
    precision: Any,
    declared: Any,
) -> Call:
    """A call of ConvTransposeBackwardWeights, or of ConvTransposeBackpropFilters.

    Args:
        names: Names of the operation and its arguments.
        src: The source.
        diff_dst: Gradient of the destination.
        weights_shape: Stored shape of the weights; None takes the declared one.
        given: The attributes.
        precision: "ieee", "device" or "float64".
        declared: Shape the result must have, or None.

    Raises:
        ArgumentError: An argument breaks a rule of the text.
    """
    problem = validation.backward_weights(
        operands.operand(names, names.src, src, precision),
        operands.operand(names, names.diff_dst, diff_dst, precision),
        weights_shape,
        given,
        precision=precision,
        names=names,
        declared=declared,
    )
    canonical = (problem.in_channels, problem.out_channels // problem.groups, *problem.geometry.kernel_shape)
    return Call(
        name=names.operation,
        problem=problem,
        arrays={"src": src, "diff_dst": diff_dst},
        plan=partial(plan_backward_weights, problem),
        shape=from_canonical(np.broadcast_to(0, canonical), problem.weights_format).shape,
        finish=lambda made: weights_of(made.reshape(made.shape[-len(canonical) - 1 :]), problem.weights_format),
    )


def _graph_forward(inputs: Sequence[Any], attributes: dict[str, Any], precision: str, lowering: str) -> Call:
    given = {"weights_format": "XOI"} | attributes
    src, weights, bias = inputs
    return forward(src, weights, bias, given, precision, lowering, None, strict=False)


def _graph_backward_data(inputs: Sequence[Any], attributes: dict[str, Any], precision: str, _: str) -> Call:
    diff_dst, weights = inputs
    return backward_data(diff_dst, weights, {"weights_format": "XOI"} | attributes, precision, None)


def _graph_backward_weights(inputs: Sequence[Any], attributes: dict[str, Any], precision: str, _: str) -> Call:
    src, diff_dst, shape = inputs
    attribute = attributes.pop("weights_shape", None)
    given = {"weights_format": "XOI"} | attributes
    shape = attribute if shape is None else shape
    return backward_weights(operands.BACKWARD_WEIGHTS, src, diff_dst, shape, given, precision, None)


def _graph_backprop_filters(inputs: Sequence[Any], attributes: dict[str, Any], precision: str, _: str) -> Call:
    src, diff_dst, shape = inputs
    attribute = attributes.pop("filter_shape", None)
    given = {"filter_format": "XIO"} | attributes
    shape = attribute if shape is None else shape
    return backward_weights(operands.BACKPROP_FILTERS, src, diff_dst, shape, given, precision, None)


OPERATIONS: Final[Mapping[str, GraphOperation]] = MappingProxyType(
    {
        one.name: one
        for one in (
            GraphOperation(name="ConvTranspose", inputs=("src", "weights", "bias"), required=2, prepare=_graph_forward),
            GraphOperation(
                name="ConvTransposeBackwardData",
                inputs=("diff_dst", "weights"),
                required=2,
                prepare=_graph_backward_data,
            ),
            GraphOperation(
                name="ConvTransposeBackwardWeights",
                inputs=("src", "diff_dst", "weights_shape"),
                required=2,
                prepare=_graph_backward_weights,
            ),
            GraphOperation(
                name="ConvTransposeBackpropFilters",
                inputs=("input_forward", "output_delta", "filter_shape"),
                required=2,
                prepare=_graph_backprop_filters,
            ),
        )
    }
)
