"""Plans are found again by all that they came from, their cycles by what ran and where, and only by that."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import numpy as np
import pytest

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from device.plan import Allocate, Operation, Plan, ProgramKey, Relocate
from device.spec.device_spec import load_spec
from ops.op_models import OP_MODELS
from ops.passes.caches import MOST_MADE, PlanCache, one_of_alike
from ops.passes.cycles import run_cycles
from ops.planners.to_config import plan_to_layout

SPEC = load_spec("wormhole_n150")
ROWS = TensorSpec((1, 1, 64, 64), BFLOAT16, Layout.ROW_MAJOR, L1_MEMORY_CONFIG)
CALL = ProgramKey(("call",))
BUFFER = ROWS.buffer(SPEC)


def of_length(steps):
    return Plan(steps=tuple(Allocate(str(number), BUFFER) for number in range(steps)))


def tilized():
    """A program, and a tensor that moves if there is a better place."""
    plan = plan_to_layout(ROWS, Layout.TILE, SPEC, place=None, data_format=None)
    return replace(plan, steps=(*plan.steps, Relocate(plan.results["output"], BUFFER)))


def operations_in(plan):
    return tuple(index for index, step in enumerate(plan.steps) if isinstance(step, Operation))


def refuse():
    raise DeviceError("no plan")


def test_a_plan_is_made_once():
    kept = PlanCache()
    first = kept.plan_of(ProgramKey(("call", 1)), SPEC, lambda: of_length(1))
    assert kept.plan_of(ProgramKey(("call", 1)), SPEC, refuse) is first
    assert kept.plan_of(ProgramKey(("call", 2)), SPEC, lambda: of_length(1)) is not first


def test_another_spec_has_another_plan():
    kept, other = PlanCache(), SPEC.replace(clock_hz=SPEC.clock_hz - 1)
    first = kept.plan_of(CALL, SPEC, lambda: of_length(1))
    second = kept.plan_of(CALL, other, lambda: of_length(1))
    assert second is not first
    assert kept.plan_of(CALL, SPEC, refuse) is first
    assert kept.plan_of(CALL, other, refuse) is second
    assert kept.steps == 2


def test_one_spec_stands_for_all_that_are_alike():
    first = one_of_alike(SPEC.replace(name="alike"))
    assert one_of_alike(SPEC.replace(name="alike")) is first
    assert one_of_alike(pickle.loads(pickle.dumps(first))) is first
    assert one_of_alike(first.replace(dram_banks=first.dram.banks - 1)) is not first


@pytest.mark.parametrize("other", [10**9 * 1.0, np.float64(10**9), True])
def test_equal_figures_of_other_types_are_not_alike(other):
    first = one_of_alike(SPEC.replace(name="of types", clock_hz=int(other)))
    written_otherwise = replace(first, clock_hz=other)
    assert written_otherwise == first
    assert one_of_alike(written_otherwise) is written_otherwise
    assert one_of_alike(first) is first


def test_a_spec_that_can_not_be_looked_up_stands_for_itself():
    with_a_list = replace(SPEC, tables=list(SPEC.tables))
    assert one_of_alike(with_a_list) is with_a_list


def test_what_is_refused_is_asked_again():
    kept = PlanCache()
    for _ in range(2):
        with pytest.raises(DeviceError, match="no plan"):
            kept.plan_of(CALL, SPEC, refuse)
    made = of_length(1)
    assert kept.plan_of(CALL, SPEC, lambda: made) is made


def test_what_was_not_used_for_longest_goes_first():
    kept = PlanCache(most_steps=5)
    first, second = (
        kept.plan_of(ProgramKey((1,)), SPEC, lambda: of_length(2)),
        kept.plan_of(ProgramKey((2,)), SPEC, lambda: of_length(2)),
    )
    assert kept.plan_of(ProgramKey((1,)), SPEC, refuse) is first
    kept.plan_of(ProgramKey((3,)), SPEC, lambda: of_length(3))
    assert kept.steps == 5
    assert kept.plan_of(ProgramKey((1,)), SPEC, refuse) is first
    assert kept.plan_of(ProgramKey((2,)), SPEC, lambda: of_length(1)) is not second
    assert kept.steps == 3


def test_a_plan_that_is_too_long_is_not_kept():
    kept = PlanCache(most_steps=2)
    short = kept.plan_of(ProgramKey((1,)), SPEC, lambda: of_length(2))
    long = kept.plan_of(ProgramKey((2,)), SPEC, lambda: of_length(3))
    assert kept.plan_of(ProgramKey((2,)), SPEC, lambda: of_length(3)) is not long
    assert kept.plan_of(ProgramKey((1,)), SPEC, refuse) is short


def test_threads_that_plan_at_once_get_plans_of_their_calls():
    kept, begin = PlanCache(most_steps=40), Barrier(4)

    def ask(seed):
        begin.wait()
        for number in np.random.default_rng(seed).integers(1, 12, 500):
            steps = int(number)
            plan = kept.plan_of(ProgramKey((steps,)), SPEC, lambda steps=steps: of_length(steps))
            assert len(plan.steps) == steps
            assert kept.cycles_of(plan, SPEC, ran=()).operations == ()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    assert kept.steps <= 40


def test_cycles_are_read_once_for_what_ran_and_the_device():
    kept = PlanCache()
    plan = kept.plan_of(CALL, SPEC, tilized)
    ran = operations_in(plan)
    first = kept.cycles_of(plan, SPEC, ran=ran)
    assert first == run_cycles(plan, SPEC, ran=ran)
    assert kept.cycles_of(plan, SPEC, ran=ran) is first

    with pytest.raises(AssertionError, match="nothing is known of None"):  # the move, which says nothing of itself
        kept.cycles_of(plan, SPEC, ran=(*ran, len(plan.steps) - 1))
    assert kept.cycles_of(plan, SPEC, ran=ran) is first

    slower = SPEC.replace(clock_hz=SPEC.clock_hz // 2)
    assert kept.cycles_of(plan, slower, ran=ran).clock_hz == slower.clock_hz
    assert kept.cycles_of(plan, SPEC, ran=ran).clock_hz == SPEC.clock_hz


def test_cycles_by_a_table_of_ones_own_are_read_anew():
    kept, own = PlanCache(), dict(OP_MODELS)
    plan = kept.plan_of(CALL, SPEC, tilized)
    ran = operations_in(plan)
    before = kept.cycles_of(plan, SPEC, ran=ran, meanings=own)
    assert before.operations
    own.clear()
    with pytest.raises(AssertionError, match="nothing is known"):
        kept.cycles_of(plan, SPEC, ran=ran, meanings=own)


def test_a_plan_that_is_not_kept_has_cycles_too():
    plan = tilized()
    assert PlanCache(0).cycles_of(plan, SPEC, ran=operations_in(plan)).cycles > 0


def test_what_is_made_of_a_plan_is_kept_with_it_for_its_device_and_bounded():
    kept, other = PlanCache(), SPEC.replace(clock_hz=SPEC.clock_hz - 1)
    plan = kept.plan_of(CALL, SPEC, lambda: of_length(1))
    first = kept.made_of(plan, SPEC, "a key", lambda: [1])
    assert kept.made_of(plan, SPEC, "a key", lambda: [2]) is first
    assert kept.made_of(plan, SPEC, "another", lambda: [2]) == [2]
    assert kept.made_of(plan, other, "a key", lambda: [3]) == [3]
    for number in range(MOST_MADE):
        kept.made_of(plan, SPEC, number, list)
    assert kept.made_of(plan, SPEC, "a key", lambda: [4]) == [4]
    assert kept.made_of(of_length(1), SPEC, "a key", lambda: [5]) == [5]  # an equal plan, but not this one
