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


def test_a_program_writes_into_a_tensor_of_the_caller_instead_of_its_own():
    builder = PlanBuilder(WORMHOLE, {"x": IN_DRAM, "target": IN_DRAM})
    x, target = map(builder.tensor, ("x", "target"))
    view = CircularBuffer("result", 2048, 2048, BFLOAT16, first_cores(1, 8, 8), view_of="made")
    made = builder.run("Copy", Nothing(), [x], PlanTensor("made", IN_DRAM), (view,))
    other = copied(builder, x, "other")
    assert (builder.maker(made), builder.maker(x)) == ("Copy", "")
    assert builder.written_into(made, target) == target
    into, _ = builder.steps
    assert (into.inputs, into.outputs, into.written) == (("x", "target"), (), ("target",))
    assert into.circular_buffers[0].view_of == "target"
    assert into.key != copied_key(builder, x)
    assert not builder.is_own(made)
    assert builder.is_own(other)


def copied_key(builder, source):
    copied(builder, source, "again")
    return builder.steps[-1].key


def test_several_outputs_are_written_into_targets_in_order():
    names = "target.values", "target.indices"
    builder = PlanBuilder(WORMHOLE, dict.fromkeys(("x", *names), IN_DRAM))
    x, *targets = map(builder.tensor, ("x", *names))
    made = [PlanTensor(name, IN_DRAM) for name in ("values", "indices")]
    builder.run("Sort", Nothing(), [x], made[0], more_outputs=made[1:])
    results = [builder.written_into(*pair) for pair in zip(made, targets, strict=True)]
    (step,) = builder.finish(dict(zip(("values", "indices"), results, strict=True))).steps
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
