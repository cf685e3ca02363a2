"""Plans and prepared weights are found again by all that they came from, and only by that."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Barrier

import numpy as np
import pytest

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import L1_MEMORY_CONFIG, Layout
from device.numbers.formats import BFLOAT16
from device.plan import Allocate, DeviceOp, Operation, Plan, ProgramKey, Relocate
from device.spec.device_spec import load_spec
from ops.passes.caches import MOST_MADE, BoundedCache, PlanCache, WeightCache, canonical_spec
from ops.passes.cycles import run_cycles
from ops.planners.shape.to_layout import plan_to_layout

SPEC = load_spec("wormhole_n150")
PLANNED_ROWS = TensorSpec((1, 1, 64, 64), BFLOAT16, Layout.ROW_MAJOR, L1_MEMORY_CONFIG)
CALL = ProgramKey(("call",))
BUFFER = PLANNED_ROWS.buffer(SPEC)


def of_length(steps):
    return Plan(steps=tuple(Allocate(str(number), BUFFER) for number in range(steps)))


def tilized():
    """A program, and a tensor that moves if there is a better place."""
    plan = plan_to_layout(PLANNED_ROWS, Layout.TILE, SPEC, place=None, data_format=None)
    return replace(plan, steps=(*plan.steps, Relocate(plan.results["output"], BUFFER)))


def operations_in(plan):
    return tuple(index for index, step in enumerate(plan.steps) if isinstance(step, Operation))


def refuse():
    raise DeviceError("no plan")


def test_a_plan_is_made_once_for_a_call_and_a_spec():
    kept, other = PlanCache(), SPEC.replace(clock_hz=SPEC.clock_hz - 1)
    for _ in range(2):  # what is refused is asked again
        with pytest.raises(DeviceError, match="no plan"):
            kept.plan_of(CALL, SPEC, refuse)
    first, second = (kept.plan_of(CALL, spec, lambda: of_length(1)) for spec in (SPEC, other))
    third = kept.plan_of(ProgramKey(("another",)), SPEC, lambda: of_length(1))
    assert len({id(plan) for plan in (first, second, third)}) == kept.steps == 3
    assert kept.plan_of(CALL, SPEC, refuse) is first
    assert kept.plan_of(CALL, other, refuse) is second
    assert (kept.holds(CALL, SPEC), kept.holds(ProgramKey(("another",)), other)) == (True, False)


def test_one_spec_stands_for_all_that_are_alike():
    first = canonical_spec(SPEC.replace(name="alike"))
    assert canonical_spec(SPEC.replace(name="alike")) is first
    assert canonical_spec(pickle.loads(pickle.dumps(first))) is first
    assert canonical_spec(first.replace(dram_banks=first.dram.banks - 1)) is not first
    with_a_list = replace(SPEC, tables=list(SPEC.tables))  # which has no hash
    assert canonical_spec(with_a_list) is with_a_list


@pytest.mark.parametrize("other", [10**9 * 1.0, np.float64(10**9), True])
def test_equal_figures_of_other_types_are_not_alike(other):
    first = canonical_spec(SPEC.replace(name="of types", clock_hz=int(other)))
    written_otherwise = replace(first, clock_hz=other)
    assert written_otherwise == first
    assert canonical_spec(written_otherwise) is written_otherwise
    assert canonical_spec(first) is first


def test_the_plan_that_was_not_used_for_longest_goes_first():
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
    kept.plan_of(ProgramKey((4,)), SPEC, lambda: of_length(6))  # a plan that is too long is not kept
    assert (kept.holds(ProgramKey((4,)), SPEC), kept.steps) == (False, 3)


def test_a_value_counts_once_however_often_its_key_is_put():
    cache = BoundedCache[str, int](10, lambda value: value)
    for key, value in (("a", 4), ("b", 5), ("a", 2), ("a", 3), ("c", 11)):  # the last alone is too large
        cache.put(key, value)
    assert (cache.size, cache.get("a"), cache.get("b"), cache.get("c")) == (8, 3, 5, None)
    assert (cache.latest(lambda value: value < 5), cache.latest(lambda value: value > 5)) == (3, None)
    cache.put("d", 4)  # 12 in all: "a" was not used for longest
    assert (cache.size, cache.get("a"), cache.get("d")) == (9, None, 4)
    cache.clear()
    assert (cache.size, cache.get("b")) == (0, None)


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
    assert first == run_cycles(plan, SPEC, ran=ran) == PlanCache(0).cycles_of(plan, SPEC, ran=ran)
    with pytest.raises(AssertionError, match="nothing is known of None"):  # the move, which says nothing of itself
        kept.cycles_of(plan, SPEC, ran=(*ran, len(plan.steps) - 1))
    assert kept.cycles_of(plan, SPEC, ran=ran) is first
    slower = SPEC.replace(clock_hz=SPEC.clock_hz // 2)
    assert kept.cycles_of(plan, slower, ran=ran).clock_hz == slower.clock_hz


def test_what_is_made_of_a_plan_is_kept_with_it_for_its_device_and_bounded():
    kept, other = PlanCache(), SPEC.replace(clock_hz=SPEC.clock_hz - 1)
    plan = kept.plan_of(CALL, SPEC, lambda: of_length(1))
    first = kept.derived_from(plan, SPEC, "a key", lambda: [1])
    assert kept.derived_from(plan, SPEC, "a key", lambda: [2]) is first
    assert kept.derived_from(plan, SPEC, "another", lambda: [2]) == [2]
    assert kept.derived_from(plan, other, "a key", lambda: [3]) == [3]
    for number in range(MOST_MADE):
        kept.derived_from(plan, SPEC, number, list)
    assert kept.derived_from(plan, SPEC, "a key", lambda: [4]) == [4]
    assert kept.derived_from(of_length(1), SPEC, "a key", lambda: [5]) == [5]  # an equal plan, but not this one


@dataclass(frozen=True, slots=True)
class Doubled(DeviceOp):
    times: int = 2


class Weights(WeightCache):
    """A cache that counts how often something is made."""

    calls = 0

    def of(self, raw, times=2):
        def make():
            self.calls += 1
            return raw * times

        return self.derived_from(raw, Doubled(times), make)


def frozen(values, dtype=np.float32):
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array


def test_the_same_bits_are_made_once():
    kept, raw = Weights(), np.arange(100, dtype=np.float32)
    first, nan = kept.of(frozen(raw)), kept.of(frozen([np.nan]))
    assert kept.of(frozen(raw)) is first
    assert kept.of(frozen([np.nan])) is nan
    assert not first.flags.writeable
    raw[-1] = 5  # arrays may differ at their ends alone
    assert kept.of(frozen(raw))[-1] == 10
    assert kept.calls == 3
    kept.clear()
    assert kept.bytes == 0
    raw = frozen([1, 2, 3, 4])  # views of one array are the same
    assert kept.of(raw.reshape(2, 2)) is kept.of(raw.reshape(2, 2))
    assert kept.of(raw.reshape(2, 2).T).tolist() == [[2, 6], [4, 8]]


def test_other_bits_operations_shapes_and_types_are_made_anew():
    kept = Weights()
    zero = kept.of(frozen([0.0]))
    assert np.signbit(kept.of(frozen([-0.0]))) != np.signbit(zero)
    assert kept.of(frozen([0.0]), 3) is not zero
    assert kept.of(frozen([[0.0]])).shape == (1, 1)
    assert kept.of(frozen([0], np.int32)).dtype == np.int32
    assert kept.calls == 5


def test_what_may_be_written_to_is_not_kept():
    kept, raw = Weights(), np.ones(2, np.float32)
    view = raw[:]
    view.flags.writeable = False
    for array in (raw, view, np.frombuffer(bytearray(8), np.float32)):
        kept.of(array)
    assert kept.bytes == 0
    raw[0] = 5
    assert kept.of(view).tolist() == [10, 2]


def test_the_weight_that_was_not_used_for_longest_goes_first():
    kept = Weights(most_bytes=40)  # 16 bytes each, raw and made
    one, two = (kept.of(frozen([n, n]), n) for n in (1, 2))
    assert kept.of(frozen([1, 1]), 1) is one
    kept.of(frozen([3, 3]), 3)
    assert kept.bytes == 32
    assert kept.of(frozen([1, 1]), 1) is one
    assert kept.of(frozen([2, 2]), 2) is not two
    small = Weights(most_bytes=0)
    assert (small.of(frozen([1, 2])).tolist(), small.bytes) == ([2, 4], 0)
