"""Moves of equal calls are made at once, and nobody can tell: not by addresses, block numbers, events or errors."""

import numpy as np
import pytest

from device.errors import DeviceClosedError, OutOfMemoryError
from device.machine import Machine
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import FLOAT32
from device.plan import Operation, ProgramKey, Relocate
from device.spec.device_spec import load_spec
from ops.builder import PlanBuilder
from ops.passes.caches import MOST_BUFFERS, ReplayCache
from ops.passes.memory import run_memory
from ops.planners.onednn.plan import plan_backward_data, plan_backward_weights, plan_forward
from ops.planners.onednn.problem import Deconvolution
from ops.reference import plan_geometry

SPEC = load_spec("wormhole_n150")


def problem(channels):
    geometry = plan_geometry([6, 6], [3, 3], stride=[2, 2], pad_before=[1, 1], pad_after=[0, 0])
    return Deconvolution(
        geometry=geometry, batch=1, in_channels=channels, out_channels=32, groups=1, data_format=FLOAT32
    )


PLANS = [
    plan(problem(channels), SPEC, **given)
    for channels in (32, 64)
    for plan, given in ((plan_forward, {"bias": True}), (plan_backward_data, {}), (plan_backward_weights, {}))
]
ROWS = TensorSpec((64, 64), FLOAT32, Layout.ROW_MAJOR).buffer(SPEC)


class Caller:
    """A device and what it keeps; `placed` are the calls that were placed step by step."""

    def __init__(self, most=256):
        self.machine, self.kept, self.placed, self.live = Machine(SPEC), ReplayCache(most), [], []

    def call(self, number):
        def place():
            plan = PLANS[number]
            self.placed.append(number)
            for buffer in run_memory(plan, self.machine, {}).values():
                self.machine.free(buffer)
            return plan

        return self.kept.placed(ProgramKey((number,)), self.machine, place)

    def allocate(self):
        self.live.append(self.machine.allocate(ROWS))

    def free(self, number):
        self.machine.free(self.live.pop(number % len(self.live)))

    def state(self):
        lists = [one.key for one in self.machine.allocator.standing()]
        return lists, tuple(self.machine.standing())[1:], [one.number for one in self.machine.memory.live()]


def test_devices_stand_alike_whether_moves_are_kept_or_not():
    keeps, anew = Caller(), Caller(0)
    rng = np.random.default_rng(0)
    for step in range(600):
        kind = rng.integers(0, 12)
        for one in (keeps, anew):
            if kind == 0 and step < 500:
                one.allocate()
            elif kind == 1 and one.live:
                one.free(step)
            elif kind == 2 and step % 5 == 0:
                one.machine.clear_program_cache()
            else:
                assert one.call(step * 7 % len(PLANS)) is PLANS[step * 7 % len(PLANS)]
        assert keeps.state() == anew.state()
    assert len(keeps.placed) < len(anew.placed)


def test_an_equal_call_is_placed_until_the_blocks_are_as_before():
    caller = Caller()
    for _ in range(9):
        caller.call(1)
    assert len(caller.placed) <= 4  # its program is new first; then the numbers of spare blocks come in turn
    caller.machine.clear_program_cache()
    placed = len(caller.placed)
    caller.call(1)
    assert len(caller.placed) == placed + 1
    assert len(caller.machine.program_cache) == 1


def test_a_program_that_was_made_anew_is_checked_anew():
    """Its circular buffers were checked against L1 when the moves were kept; those of another program were not."""
    caller = Caller()
    for _ in range(9):
        caller.call(1)
    cache, placed = caller.machine.program_cache, len(caller.placed)
    caller.call(1)
    assert len(caller.placed) == placed
    cache.update({key: program._replace(number=program.number + 1) for key, program in cache.items()})
    caller.call(1)
    assert len(caller.placed) == placed + 1


def test_who_listens_hears_of_every_move():
    caller, fresh, heard = Caller(), Caller(0), []
    for one in (caller, fresh):
        for _ in range(6):
            one.call(0)
        events = []
        one.machine.recorders.append(events)
        one.call(0)
        heard.append(events)
    assert len(heard[0]) > 10
    assert heard[0] == heard[1]


def test_what_does_not_fit_any_more_is_refused_as_ever():
    texts = []
    for caller in (Caller(), Caller(0)):
        for _ in range(6):
            caller.call(0)
        free = caller.machine.allocator.standing()[0].free[0]
        rows = (free[1] - free[0]) // 4096 * SPEC.dram.banks  # pages of 4,096 B, as many in every bank
        caller.live.append(caller.machine.allocate(TensorSpec((rows, 1024), FLOAT32, Layout.ROW_MAJOR).buffer(SPEC)))
        with pytest.raises(OutOfMemoryError) as refused:
            caller.call(0)
        texts.append(str(refused.value))
    assert texts[0] == texts[1]


def test_a_closed_device_makes_no_moves():
    caller = Caller()
    for _ in range(6):
        caller.call(0)
    caller.machine.close()
    with pytest.raises(DeviceClosedError):
        caller.call(0)


def test_calls_that_leave_something_are_placed_each_time():
    caller = Caller()

    def place():
        caller.placed.append(0)
        run_memory(PLANS[0], caller.machine, {})
        return PLANS[0]

    for _ in range(4):
        caller.kept.placed(ProgramKey((0,)), caller.machine, place)
    assert len(caller.placed) == 4


def test_tensors_that_move_are_placed_each_time():
    plan = PLANS[1]
    builder = PlanBuilder(SPEC, {})
    spec = TensorSpec((64, 64), FLOAT32, Layout.ROW_MAJOR)
    made = builder.allocate("made", spec)
    builder.free(made)
    steps = builder.finish({}).steps
    assert not any(isinstance(step, Relocate | Operation) for step in steps)
    moving = type(plan)(steps=(steps[0], Relocate("made", spec.buffer(SPEC)), *steps[1:]), tensors={"made": spec})
    caller, placed = Caller(), []

    def place():
        placed.append(0)
        run_memory(moving, caller.machine, {})
        return moving

    for _ in range(4):
        caller.kept.placed(ProgramKey(("moving",)), caller.machine, place)
    assert len(placed) == 4


def test_beside_many_buffers_calls_are_placed_each_time():
    caller = Caller()
    for _ in range(MOST_BUFFERS + 1):
        caller.allocate()
    for _ in range(6):
        caller.call(1)
    assert len(caller.placed) == 6


def test_only_some_calls_are_kept():
    caller = Caller(1)
    for _ in range(6):
        caller.call(0)
        caller.call(1)
    assert len(caller.placed) == 12
    caller.kept.clear()
