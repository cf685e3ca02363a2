"""The values pass."""

from dataclasses import dataclass

import numpy as np

from device.matrix_unit.arithmetic import FAST
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, Array, quantize
from device.plan import DeviceOp
from device.spec.device_spec import load_spec
from ops.builder import PlanBuilder, PlanTensor
from ops.op_model import OpModel, ValuesContext, given
from ops.passes.values import run_values


@dataclass(frozen=True, slots=True)
class Halves(DeviceOp):
    """The rows above 32, and the rest."""


def halved(op: Halves, inputs: object, context: ValuesContext) -> tuple[Array, ...]:
    rows = given(inputs[0])  # type: ignore[index]
    return rows[:32], rows[32:]


def test_an_operation_with_two_outputs_has_a_tuple_of_values() -> None:
    spec = load_spec("wormhole_n150")
    whole, half = (TensorSpec((rows, 32), BFLOAT16, TILE) for rows in (64, 32))
    builder = PlanBuilder(spec, {"input": whole})
    above, below = PlanTensor("above", half), PlanTensor("below", half)
    assert builder.run("Halves", Halves(), [builder.tensor("input")], above, more_outputs=[below]) == above
    plan = builder.finish({"first": above, "second": below})
    values = quantize(np.arange(64 * 32, dtype=np.float32).reshape(64, 32), BFLOAT16)
    table = {Halves: OpModel(op=Halves, values=halved)}
    result = run_values(plan, {"input": values}, ValuesContext(spec=spec, arithmetic=FAST), op_models=table)
    assert np.array_equal(result["above"], values[:32])
    assert np.array_equal(result["below"], values[32:])
