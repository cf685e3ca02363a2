"""Plans are values: equal when they say the same, usable as keys, and not to be changed."""

from dataclasses import dataclass, replace

import pytest

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from device.plan import Allocate, CircularBuffer, DeviceOp, Free, Operation, Plan, Relocate
from device.spec.device_spec import load_spec

TENSOR = TensorSpec((4, 64), BFLOAT16, Layout.ROW_MAJOR, DRAM_MEMORY_CONFIG)
BUFFER = TENSOR.buffer(load_spec("wormhole_n150"))


@dataclass(frozen=True, slots=True)
class Multiply(DeviceOp):
    """A work of this file."""

    factor: int


def steps():
    act = CircularBuffer(name="act", size_bytes=64, page_bytes=32, data_format=BFLOAT16, cores=first_cores(4, 8, 8))
    operation = Operation(
        name="Op", inputs=("x",), outputs=(Allocate("y", BUFFER),), circular_buffers=(act,), op=Multiply(1), key="k"
    )
    return Allocate("x", BUFFER, source="host"), operation, Relocate("y", BUFFER), Free("x")


def test_steps_are_values():
    assert steps() == steps()
    assert len({*steps(), *steps()}) == 4
    operation = steps()[1]
    assert replace(operation, op=Multiply(2)) != operation
    for step in (*steps(), operation.circular_buffers[0]):
        with pytest.raises(AttributeError):
            setattr(step, "name" if hasattr(step, "name") else "tensor", "z")


def test_plans_are_compared_by_what_they_say():
    plan = Plan(steps=steps(), tensors={"x": TENSOR}, results={"output": "y"})
    assert plan == Plan(steps=steps(), tensors={"x": TENSOR}, results={"output": "y"})
    assert plan != replace(plan, results={"output": "x"})


def test_an_allocation_is_a_tensors_unless_said_otherwise():
    allocate = Allocate("x", BUFFER)
    assert (allocate.by, allocate.source, allocate.op) == ("tt::tt_metal::create_device_tensor", None, None)


def test_the_key_of_a_program_is_hashed_once():
    hashed = []

    class Counted:
        def __hash__(self):
            hashed.append(self)
            return 7

    one = Counted()
    operation = Operation(name="Op", inputs=(), key=("op", one))
    assert {operation.key: 1}[operation.key] == 1
    assert len(hashed) == 1
    assert operation.key == ("op", one)
    assert hash(operation.key) == hash(("op", one))
