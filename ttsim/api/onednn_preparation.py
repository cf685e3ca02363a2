"""From the arguments of a oneDNN operation to a call that can be run: validated, and prepared once for all alike."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from device.errors import ArgumentError, shown
from device.numbers.formats import Array
from device.plan import Plan, ProgramKey
from device.spec.device_spec import DeviceSpec
from ops.planners.onednn import checks as validation
from ops.planners.onednn import problem as operands
from ops.planners.onednn.plan import Lowering, plan_backward_data, plan_backward_weights, plan_forward
from ops.planners.onednn.problem import Deconvolution, Operand, once_for_alike
from ops.programs.patch_matmul.host_values import image_of, weights_of
from ops.programs.patch_matmul.weight_formats import from_canonical
from ttsim.types.signature import require_type

LOWERINGS: Final = tuple(one.value for one in Lowering)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """What all calls share whose arguments are alike but for their numbers."""

    name: str
    problem: Deconvolution  # Its sizes, types and formats
    # Plans the call on a device, which is its last argument; the others are all that decides the plan
    plan: partial[Plan]
    key: ProgramKey  # The same as a key
    useful_flops: int  # Multiplications and additions of its definition
    shape: tuple[int, ...]
    finish: Callable[[Array], Array]  # The result in the caller's order, of the array that the plan ends in


def _prepared(
    name: str, problem: Deconvolution, plan: partial[Plan], shape: tuple[int, ...], finish: Callable[[Array], Array]
) -> Prepared:
    return Prepared(
        name=name,
        problem=problem,
        plan=plan,
        key=ProgramKey((plan.func, plan.args, *plan.keywords.items())),
        useful_flops=problem.useful_flops,
        shape=shape,
        finish=finish,
    )


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
    if not isinstance(lowering, str) or lowering not in LOWERINGS:
        raise ArgumentError(f"{names.operation}: lowering must be one of {', '.join(LOWERINGS)}, not {shown(lowering)}")
    prepared = _forward(
        operands.operand(names, "src", src, precision),
        operands.operand(names, "weights", weights, precision),
        None if bias is None else operands.operand(names, "bias", bias, precision),
        given,
        precision,
        lowering,
        dst_shape,
        strict,
    )
    return Call(prepared, {"src": src, "weights": weights, **({} if bias is None else {"bias": bias})})


@once_for_alike
def _forward(
    src: Operand,
    weights: Operand,
    bias: Operand | None,
    given: dict[str, Any],
    precision: Any,
    lowering: str,
    dst_shape: Any,
    strict: bool,
) -> Prepared:
    """Arguments and errors are those of `forward`."""
    problem = validation.forward(src, weights, bias, given, precision=precision, dst_shape=dst_shape, strict=strict)
    plan = partial(plan_forward, problem, bias=bias is not None, lowering=Lowering(lowering))
    finish = partial(image_of, channels_last=problem.channels_last)
    return _prepared(operands.FORWARD.operation, problem, plan, problem.dst_shape, finish)


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
    prepared = _backward_data(
        operands.operand(names, "diff_dst", diff_dst, precision),
        operands.operand(names, "weights", weights, precision),
        given,
        precision,
        src_shape,
    )
    return Call(prepared, {"diff_dst": diff_dst, "weights": weights})


@once_for_alike
def _backward_data(
    diff_dst: Operand, weights: Operand, given: dict[str, Any], precision: Any, src_shape: Any
) -> Prepared:
    """Arguments and errors are those of `backward_data`."""
    problem = validation.backward_data(diff_dst, weights, given, precision=precision, src_shape=src_shape)
    plan, finish = partial(plan_backward_data, problem), partial(image_of, channels_last=problem.channels_last)
    return _prepared(operands.BACKWARD_DATA.operation, problem, plan, problem.src_shape, finish)


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
    prepared = _backward_weights(
        names,
        operands.operand(names, names.src, src, precision),
        operands.operand(names, names.diff_dst, diff_dst, precision),
        weights_shape,
        given,
        precision,
        declared,
    )
    return Call(prepared, {"src": src, "diff_dst": diff_dst})


@once_for_alike
def _backward_weights(
    names: operands.Names,
    src: Operand,
    diff_dst: Operand,
    weights_shape: Any,
    given: dict[str, Any],
    precision: Any,
    declared: Any,
) -> Prepared:
    """Arguments and errors are those of `backward_weights`."""
    problem = validation.backward_weights(
        src, diff_dst, weights_shape, given, precision=precision, names=names, declared=declared
    )
    canonical = (problem.in_channels, problem.out_channels // problem.groups, *problem.geometry.kernel_shape)
    return _prepared(
        names.operation,
        problem,
        partial(plan_backward_weights, problem),
        from_canonical(np.broadcast_to(0, canonical), problem.weights_format).shape,
        lambda made: weights_of(made.reshape(made.shape[-len(canonical) - 1 :]), problem.weights_format),
    )
