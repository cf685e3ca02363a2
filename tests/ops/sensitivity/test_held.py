"""What is held while a machine changes."""

import pytest

from device.errors import DeviceError
from device.plan import Plan
from ops.launch import between_kernels_nanoseconds
from ops.op_models import load_spec
from ops.passes.cycles import run_cycles
from ops.sensitivity.effects import fixed_launches, fixed_operations, plan_or_refusal, with_model
from ops.sensitivity.samples import Sample, samples

SPEC = load_spec("wormhole_n150")


def sample(name):
    return next(one for one in samples() if one.name == name)


def test_operations_of_a_plan_alone_take_what_they_take_in_it():
    call = sample("DRAM_HEIGHT slices")
    plan = call.plan(SPEC)
    held = fixed_operations([call], SPEC)
    timed = {one.name.removesuffix("DeviceOperation"): one.cycles.cycles for one in run_cycles(plan, SPEC).operations}
    assert {one.name for one in held} == set(timed)
    assert held[-1].name == "ReshapeView"
    assert held[-1].cycles(SPEC) == timed["ReshapeView"]
    assert len(fixed_operations([call, call], SPEC)) == len(held)


def test_programs_are_those_of_their_folders():
    held = fixed_operations([sample("HEIGHT")], SPEC)
    assert [one.program for one in held] == ["movement", "halo", "movement", "conv2d"]
    assert len(with_model(held, SPEC)) == len(held)


def test_launches_are_read_in_all_ways_in_cycles_of_the_device():
    held = fixed_launches([sample("HEIGHT")], SPEC)
    assert len(held.queue) == 4
    passed = sum(between_kernels_nanoseconds(held.queue, SPEC).values())
    assert held.cycles(SPEC) == pytest.approx(passed)  # at 1 GHz


def test_a_call_that_a_device_can_not_do_says_why():
    def plan(spec):
        raise DeviceError("too large")

    assert isinstance(plan_or_refusal(sample("HEIGHT"), SPEC), Plan)
    assert plan_or_refusal(Sample("large", plan, {}), SPEC) == "too large"
    assert fixed_operations([Sample("large", plan, {})], SPEC) == ()
