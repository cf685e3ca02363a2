"""The values pass over a plan: the values after each step, by the table of op models."""

from collections.abc import Mapping
from functools import partial
from typing import cast

import numpy as np

from device.numbers.formats import Array
from device.plan import Allocate, DeviceOp, Free, Operation, Plan
from ops.op_model import OpModels, ValuesContext, op_model_of
from ops.op_models import OP_MODELS
from ops.passes.caches import WeightCache


def run_values(
    plan: Plan,
    inputs: Mapping[str, Array],
    context: ValuesContext,
    *,
    op_models: OpModels = OP_MODELS,
    kept: WeightCache | None = None,
) -> dict[str, Array]:
    """The arrays of the plan's results by name, as the device stores them, from the arrays of its inputs by name.

    ``kept`` caches the prepared host tensors.
    """
    arrays = dict(inputs)

    def prepared(raw: Array, op: DeviceOp) -> Array:
        return cast(Array, op_model_of(op, op_models).values(op, [raw], context))

    with np.errstate(over="ignore", invalid="ignore"):  # infinities are numbers to the device, which warns of nothing
        for step in plan.steps:
            match step:
                case Allocate(source=str(source)):
                    raw, op = arrays[source], step.op
                    if op is not None:
                        make = partial(prepared, raw, op)
                        raw = make() if kept is None else kept.derived_from(raw, op, make)
                    arrays[step.tensor] = raw
                case Free(tensor=tensor):
                    arrays.pop(tensor, None)
                case Operation():
                    result = _computed(plan, step, arrays, context, op_models)
                    arrays |= zip(step.written, result if isinstance(result, tuple) else (result,), strict=True)
    # No operation writes a result without elements
    return {name: arrays[name] if name in arrays else _empty(plan, name) for name in plan.results.values()}


def _computed(
    plan: Plan, step: Operation, arrays: Mapping[str, Array], context: ValuesContext, op_models: OpModels
) -> Array | tuple[Array, ...]:
    """The values that an operation writes; empty if its results have no elements."""
    names = [output.tensor for output in step.outputs]
    if names and not step.updates and all(_has_none(plan, name) for name in names):
        return tuple(_empty(plan, name) for name in names)
    inputs = [name for name in step.inputs if name not in step.targets]
    read = [_empty(plan, name) if name not in arrays and _has_none(plan, name) else arrays.get(name) for name in inputs]
    return op_model_of(step.op, op_models).values(step.op, read, context)


def _has_none(plan: Plan, name: str) -> bool:
    """Whether a tensor has no elements, so that it is never written."""
    return name in plan.tensors and not plan.tensors[name].volume


def _empty(plan: Plan, name: str) -> Array:
    spec = plan.tensors[name]
    assert not spec.volume, f"{name} is written by no operation"
    return np.empty(spec.shape, spec.data_format.storage)
