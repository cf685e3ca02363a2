"""Calls of oneDNN's operations, planned and run; and the operations as a graph holds them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from device.errors import ArgumentError
from device.numbers.formats import Array
from device.plan import Plan
from ops.passes.values import run_values
from ops.planners.onednn import problem as operands
from ops.programs.patch_matmul import float64
from ops.programs.patch_matmul.slicing import Precision
from ttsim.api.onednn_preparation import Call, backward_data, backward_weights, forward
from ttsim.runtime.device import Device, open_device
from ttsim.runtime.execution import locked_on, place, values_reading
from ttsim.runtime.session import current
from ttsim.runtime.system import GetDefaultDevice
from ttsim.types.signature import require_type_or_none


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

    def moved() -> Plan:
        return placed() if chosen.profilers else chosen.moves.placed(prepared.key, chosen.machine, placed)

    plan = locked_on(chosen, moved)
    if not dispatch or chosen.values == "off":
        return np.broadcast_to(problem.host_type.type(np.nan), prepared.shape)
    meanings = float64.OP_MODELS if problem.precision is Precision.FLOAT64 else chosen.meanings
    made = run_values(plan, call.arrays, values_reading(chosen), meanings=meanings)
    return prepared.finish(made[plan.results["output"]])


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
