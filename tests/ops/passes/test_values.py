"""The values of plans of a few steps, of works that a table of this file knows."""

from dataclasses import dataclass

import numpy as np

from device.matrix_unit.arithmetic import EXACT
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16
from device.plan import Allocate, DeviceOp, Free, Operation, Plan, Relocate
from device.spec.device_spec import load_spec
from ops.op_model import OpModel, ValuesContext
from ops.passes.values import run_values

SPEC = load_spec("wormhole_n150")
READING = ValuesContext(spec=SPEC, arithmetic=EXACT)
BUFFER = TensorSpec((1, 512), BFLOAT16, Layout.ROW_MAJOR).buffer(SPEC)


@dataclass(frozen=True, slots=True)
class Number(DeviceOp):
    """A tensor becomes this number."""

    number: int


def recording(calls):
    """A table that knows numbers, and writes down what they are made of."""

    def values(op, inputs, context):
        assert context is READING
        calls.append((op.number, [None if tensor is None else tensor.tolist() for tensor in inputs]))
        return np.array([op.number])

    return {Number: OpModel(op=Number, values=values)}


def test_values_follow_the_names():
    """Uploads are converted on the way; an operation without outputs writes into its last input; moves do nothing."""
    calls = []
    steps = (
        Allocate("w", BUFFER, source="weight", op=Number(1)),
        Allocate("raw", BUFFER, source="weight"),
        Allocate("given", BUFFER),
        Operation(name="A", inputs=("x", "w", "given"), outputs=(Allocate("a", BUFFER),), op=Number(2)),
        Free("x"),
        Relocate("a", BUFFER, op=Number(9)),
        Operation(name="B", inputs=("a", "raw", "given"), op=Number(3)),
    )
    results = {"output": "given", "weight": "w", "raw": "raw"}
    inputs = {"x": np.array([10]), "weight": np.array([20])}
    got = run_values(Plan(steps=steps, results=results), inputs, READING, op_models=recording(calls))
    assert calls == [(1, [[20]]), (2, [[10], [1], None]), (3, [[2], [20], None])]
    assert {name: array.tolist() for name, array in got.items()} == {"given": [3], "w": [1], "raw": [20]}


def test_the_callers_arrays_are_left_alone():
    inputs = {"x": np.array([1])}
    steps = (Operation(name="A", inputs=("x",), outputs=(Allocate("y", BUFFER),), op=Number(2)), Free("x"))
    run_values(Plan(steps=steps, results={"output": "y"}), inputs, READING, op_models=recording([]))
    assert list(inputs) == ["x"]
