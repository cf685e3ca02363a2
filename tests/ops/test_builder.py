"""Writing plans: who owns which tensor, and what finishing finds wrong."""

from dataclasses import dataclass

import pytest

from device.cores import first_cores
from device.errors import NotSimulatedError, OutOfMemoryError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from device.plan import CircularBuffer, Refuse
from device.spec.device_spec import load_spec
from ops.builder import FreeL1, PlanBuilder, PlanTensor

WORMHOLE = load_spec("wormhole_n150")
IN_DRAM = TensorSpec((1, 1, 64, 64), BFLOAT16, Layout.TILE, DRAM_MEMORY_CONFIG)


@dataclass(frozen=True)
class Nothing:
    """A work that says nothing."""


def begun():
    builder = PlanBuilder(WORMHOLE, {"x": IN_DRAM, "w": IN_DRAM})
    return builder, builder.tensor("x"), builder.tensor("w")


def copied(builder, source, name, spec=IN_DRAM):
    return builder.run("CopyDeviceOperation", Nothing(), [source], PlanTensor(name, spec))


def test_a_plan_that_ends_in_a_refusal_returns_nothing_and_may_hold_what_it_made():
    builder, x, _ = begun()
    copied(builder, x, "y")
    assert not builder.refused
    builder.refuse(OutOfMemoryError("no room"))
    plan = builder.finish({})
    assert plan.steps[-1] == Refuse("no room", OutOfMemoryError)
    assert (builder.refused, plan.refused, dict(plan.results)) == (True, True, {})


def test_what_is_refused_behind_a_step_ends_the_plan_and_else_raises():
    def refused():
        raise OutOfMemoryError("no room")

    builder, x, _ = begun()
    assert builder.attempt(lambda: x, otherwise=x) is x
    with pytest.raises(OutOfMemoryError, match="no room"):
        builder.attempt(refused, otherwise=x)
    y = copied(builder, x, "y")
    assert builder.attempt(refused, otherwise=y) is y
    assert builder.steps[-1] == Refuse("no room", OutOfMemoryError)


def test_an_output_that_is_a_target_of_the_caller_is_written_into():
    builder = PlanBuilder(WORMHOLE, {"x": IN_DRAM, "target": IN_DRAM})
    x, target = map(builder.tensor, ("x", "target"))
    assert builder.run("Copy", Nothing(), [x], target) == target
    copied(builder, x, "y")
    into, apart = builder.steps
    assert (into.inputs, into.outputs, into.written) == (("x", "target"), (), ("target",))
    assert (apart.inputs, apart.written) == (("x",), ("y",))
    assert into.key != apart.key


def test_several_targets_are_written_in_the_order_of_the_outputs():
    names = "target.values", "target.indices"
    builder = PlanBuilder(WORMHOLE, dict.fromkeys(("x", *names), IN_DRAM))
    x, values, indices = map(builder.tensor, ("x", *names))
    builder.run("Sort", Nothing(), [x], values, more_outputs=[indices])
    (step,) = builder.finish({"values": values, "indices": indices}).steps
    assert (step.inputs, step.outputs, step.written) == (("x", *names), (), names)


def reads_what_is_gone(builder, x):
    builder.free(x)
    copied(builder, x, "y")


def moves_what_is_gone(builder, x):
    builder.free(x)
    builder.relocate(x, Nothing())


def frees_a_result(builder, x):
    builder.free(copied(builder, x, "y"))
    return {"output": PlanTensor("y", IN_DRAM)}


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda builder, x: builder.free(x, x), "step 1 of the plan, Free: there is no tensor x"),
        (reads_what_is_gone, "step 1 of the plan, Operation: there is no tensor x"),
        (moves_what_is_gone, "step 1 of the plan, Relocate: there is no tensor x"),
        (lambda builder, x: builder.upload("y", IN_DRAM, "z"), "step 0 of the plan, Allocate: there is no tensor z"),
        (lambda builder, x: copied(builder, x, "w"), "step 0 of the plan, Operation: there is a tensor w already"),
        (lambda builder, x: copied(builder, x, "y") and None, r"the plan returns \[\], but its tensors .* \['y'\]"),
        (frees_a_result, r"the plan returns \['y'\], but its tensors at the end are \[\]"),
    ],
)
def test_finishing_names_the_step_that_is_wrong(write, message):
    builder, x, _ = begun()
    results = write(builder, x)
    with pytest.raises(AssertionError, match=f"^{message}$"):
        builder.finish(results if isinstance(results, dict) else {})


def test_a_circular_buffer_has_pages_of_at_least_a_byte():
    builder, x, _ = begun()
    empty = CircularBuffer("fill", 0, 0, BFLOAT16, first_cores(1, 8, 8))
    with pytest.raises(NotSimulatedError, match=r"^Copy: its circular buffer 'fill' has pages of 0 bytes"):
        builder.run("Copy", Nothing(), [x], PlanTensor("y", IN_DRAM), (empty,))


def test_a_view_that_is_returned_is_seen_as_it_is():
    builder, x, _ = begun()
    rows = TensorSpec((1, 8, 8, 64), BFLOAT16, Layout.TILE, DRAM_MEMORY_CONFIG)
    y = PlanTensor(copied(builder, x, "y").name, rows)
    assert builder.finish({"output": y}).tensors["y"] == rows


def test_a_tensor_between_others_takes_nothing_below_them() -> None:
    free = FreeL1(before_bytes=1000, room_bytes=1000, hole_bytes=300)
    assert free.without(300) == FreeL1(1000, 1000, 0)
    assert free.without(301) == FreeL1(699, 699, 300)
