"""The values pass over a plan: the numbers after each step, by the table of op models."""

from collections.abc import Mapping
from functools import partial

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
    with np.errstate(over="ignore", invalid="ignore"):  # infinities are numbers to the device, which warns of nothing
        return _run(plan, dict(inputs), context, op_models, kept)


def _run(
    plan: Plan, arrays: dict[str, Array], context: ValuesContext, op_models: OpModels, weight_cache: WeightCache | None
) -> dict[str, Array]:
    for step in plan.steps:
        match step:
            case Allocate(source=str(source)):
                raw, op = arrays[source], step.op
                if op is not None and weight_cache is not None:
                    raw = weight_cache.derived_from(raw, op, partial(_made, raw, op, context, op_models))
                elif op is not None:
                    raw = _made(raw, op, context, op_models)
                arrays[step.tensor] = raw
            case Free(tensor=tensor):
                arrays.pop(tensor, None)
            case Operation():
                read = [arrays.get(name) for name in step.inputs]
                result = op_model_of(step.op, op_models).values(step.op, read, context)
                arrays[step.outputs[0].tensor if step.outputs else step.inputs[-1]] = result
            case _:
                pass
    return {name: arrays[name] for name in plan.results.values()}


def _made(raw: Array, op: DeviceOp, context: ValuesContext, op_models: OpModels) -> Array:
    array: Array = op_model_of(op, op_models).values(op, [raw], context)
    return array
