"""What fields move: each something, on one card at least."""

from dataclasses import replace

import pytest

from device.errors import DeviceError
from device.plan import Operation, Plan
from device.spec.device_spec import DeviceSpec, catalog_names
from device.time.network import torus_of
from ops.launch import between_kernels_nanoseconds
from ops.op_models import COSTS
from ops.passes.cycles import run_cycles
from ops.programs.halo.cycles import HaloCosts
from ops.sensitivity.changes import load_spec
from ops.sensitivity.effects import (
    CYCLES,
    LAUNCHES,
    MEMORY,
    NEAR,
    PLAN,
    SAME,
    effects,
    fixed_launches,
    fixed_operations,
    plan_or_refusal,
)
from ops.sensitivity.fields import fields_of, numeric_fields, scaled
from ops.sensitivity.read_set import fields_asked
from ops.sensitivity.samples import Sample, planners_samples, samples
from ttsim.runtime.types.layer import Layer
from ttsim.study.evaluate import Evaluator, Point

AT_A_TIME = 6  # calls that are tried, before the fields that they moved need not be tried again


def effect(name, *calls, spec="wormhole_n150", **options):
    device = load_spec(spec)
    (field,) = (one for one in numeric_fields(device) if one.name == name)
    (result,) = effects([field], calls or samples()[:2], device, **options)
    return result


@pytest.mark.parametrize(
    ("name", "moves"),
    [
        ("clock_hz", (CYCLES, LAUNCHES)),
        ("dispatch_costs.fetch_cycles", (LAUNCHES,)),
        ("compute.dst_tiles", (PLAN, MEMORY)),
        ("l1.bytes", (MEMORY,)),
        ("l1.circular_buffers", (MEMORY,)),
        ("l1.base_bytes", (MEMORY,)),
        ("dram.bank_bytes_per_second", (CYCLES,)),
        ("conv_costs.start_cycles", (CYCLES,)),
    ],
)
def test_what_a_field_moves(name, moves):
    found = effect(name)
    assert found.moves == moves
    assert bool(found.elasticity) == bool({CYCLES, LAUNCHES} & set(moves))
    text = effect(name, elasticities=False)
    assert (text.moves, text.elasticity) == (moves, {})


def test_the_planners_rates_move_plans_alone():
    found = effect("reader.tilize[4].dst_16bit_cycles", *planners_samples())
    assert (found.moves, found.elasticity) == ((PLAN, MEMORY), {})


def test_plans_are_not_held_on_a_network_without_their_cores():
    """Half of 9 columns has the network of the card, whose 8 have no ninth."""
    found = effect("grid.cols", spec="wormhole_n150, grid=9x7")
    assert {PLAN, CYCLES} <= set(found.moves)


@pytest.mark.parametrize("name", ["grid.cols", "grid.rows"])
def test_plans_are_not_held_on_fewer_cores(name):
    """A matmul on all 64 cores asks the device for its cores, of which half a grid has 32."""
    (fixed,) = fixed_operations([sample("matmul, few rows")], SPEC)
    assert fixed.plan.steps[0].op.cores == 64
    assert {PLAN, CYCLES} <= set(effect(name, sample("matmul, few rows")).moves)


def test_elasticity_is_the_part_that_a_figure_has():
    """Cycles that a start alone takes double with it; a program of which it is a part moves by that part."""
    matmul = next(one for one in samples() if one.name == "matmul, few columns")
    part = effect("matmul_costs.start_cycles", matmul).elasticity["matmul"]
    assert 0.01 < part < 0.9
    assert set(effect("matmul_costs.start_cycles", matmul).elasticity) == {"matmul"}


def timed_at_once(fields, calls, spec):
    """Names of fields whose double or half moves the time of anything: each is looked at until the first that moves."""
    held = (fixed_launches(calls, spec), *fixed_operations(calls, spec))
    before = [(one, one.cycles(spec)) for one in held]
    for field in fields:
        devices = [device for factor in NEAR if (device := scaled(spec, field, factor)) is not None]
        if any(abs(one.cycles(device) / was - 1) > SAME for device in devices for one, was in before):
            yield field.name


@pytest.mark.slow
def test_every_field_moves_something():
    """On one of the machines at least: a cost of what a machine does not do is there for those that do it."""
    calls = samples()
    machines = [load_spec(name) for name in reversed(catalog_names())]  # Wormhole's planner has more to choose
    still = {field.name for spec in machines for field in numeric_fields(spec)}

    def left(spec, *, readers=False):
        every = (field for field in numeric_fields(spec) if field.name in still)
        return [field for field in every if readers or not field.name.startswith("reader.")]

    still -= set(timed_at_once(left(machines[0]), calls, machines[0]))
    for spec in machines:
        several = [calls[first : first + AT_A_TIME] for first in range(0, len(calls), AT_A_TIME)]
        for group, planned in (*((group, ()) for group in several), (calls[:1], planners_samples())):
            found = effects(left(spec, readers=bool(planned)), group, spec, planned=planned)
            still -= {effect.field.name for effect in found if effect.moves}
        if not still:
            break
    assert still == set()


SPEC = load_spec("wormhole_n150")


def sample(name):
    return next(one for one in samples() if one.name == name)


def test_operations_of_a_plan_alone_take_what_they_take_in_it():
    call = sample("DRAM_HEIGHT slices")
    plan = call.plan(SPEC)
    held = fixed_operations([call], SPEC)
    timed = {
        operation.name.removesuffix("DeviceOperation"): operation.cycles.cycles
        for operation in run_cycles(plan, SPEC).operations
    }
    assert {one.name for one in held} == set(timed)
    assert held[-1].name == "ReshapeView"
    assert held[-1].cycles(SPEC) == timed["ReshapeView"]
    assert len(fixed_operations([call, call], SPEC)) == len(held)


def test_launches_are_read_in_all_ways_in_cycles_of_the_device():
    assert [held.program for held in fixed_operations([sample("HEIGHT")], SPEC)] == ["copy", "halo", "copy", "conv2d"]
    launches = fixed_launches([sample("HEIGHT")], SPEC)
    assert len(launches.queue) == 4
    passed = sum(between_kernels_nanoseconds(launches.queue, SPEC).values())
    assert launches.cycles(SPEC) == pytest.approx(passed)  # at 1 GHz


def test_a_call_that_a_device_can_not_do_says_why():
    def plan(spec):
        raise DeviceError("too large")

    assert isinstance(plan_or_refusal(sample("HEIGHT"), SPEC), Plan)
    assert plan_or_refusal(Sample("large", plan, {}), SPEC) == "too large"
    assert fixed_operations([Sample("large", plan, {})], SPEC) == ()
    refused = Sample(
        "refused", lambda spec: Plan(steps=(Operation(name="Halo", inputs=(), refused="too large"),), tensors={}), {}
    )
    assert fixed_operations([refused], SPEC) == ()
    assert fixed_launches([refused], SPEC).queue == ()


def test_a_listening_device_is_the_device():
    def run(spec):
        assert isinstance(spec, DeviceSpec)
        assert spec.to_dict() == SPEC.to_dict()
        assert torus_of(spec) == torus_of(SPEC)

    assert fields_asked(run, SPEC) == {field.name for field in fields_of(SPEC)}


def cycles_and_memory(spec):
    """All that a row of a layer says, on a device."""
    layer = Layer(name="small", in_channels=64, out_channels=32, input_height=16, input_width=16)
    return replace(Evaluator().row(Point(layer=layer, spec=spec), keyed=False), device="")


@pytest.mark.parametrize(
    ("run", "asked"),
    [
        (lambda spec: spec.clock_hz, {"clock_hz"}),
        (lambda spec: spec.l1.usable_bytes, {"l1.bytes", "l1.base_bytes"}),
        (lambda spec: spec.reader.local.peak_at_bytes, {"reader.local.peak_at_bytes"}),
        (lambda spec: spec.reader.tilize[2].dst_16bit_cycles, {"reader.tilize[2].dst_16bit_cycles"}),
        (lambda spec: spec.costs_of(HaloCosts).start_cycles, {"halo_costs.start_cycles", "release"}),
        (lambda spec: hash(spec.grid), {"grid.cols", "grid.rows"}),
        (lambda spec: replace(spec.grid, cols=3), {"grid.rows"}),
        (lambda spec: spec.checked(COSTS), set()),
        (lambda spec: spec.noc, set()),
        (lambda spec: 1, set()),
    ],
)
def test_fields_that_are_read_are_asked_for(run, asked):
    assert fields_asked(run, SPEC) == asked


def test_fields_that_were_not_asked_for_move_nothing():
    """Every number that a layer does not read, at its double, or its half; and the rest is not nothing."""
    asked, before = fields_asked(cycles_and_memory, SPEC), cycles_and_memory(SPEC)
    assert before.cycles
    assert {"clock_hz", "grid.cols", "l1.bytes", "dram.banks", "compute.phase_cycles"} <= asked
    tried = 0
    for field in numeric_fields(SPEC):
        device = scaled(SPEC, field, 2.0) or scaled(SPEC, field, 0.5)
        if device is not None and field.name not in asked:
            tried += 1
            assert cycles_and_memory(device) == before, field.name
    assert tried > 30
