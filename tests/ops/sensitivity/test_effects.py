"""What fields move: each something, on one card at least."""

import pytest

from device.spec.device_spec import catalog_names
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
    with_model,
)
from ops.sensitivity.fields import numeric_fields, scaled
from ops.sensitivity.samples import planners_samples, samples

AT_A_TIME = 6  # calls that are tried, before the fields that they moved need not be tried again


def effect(name, *calls, spec="wormhole_n150", **options):
    device = load_spec(spec)
    (field,) = (one for one in numeric_fields(device) if one.name == name)
    (found,) = effects([field], calls or samples()[:2], device, **options)
    return found


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
    told = effect(name, elasticities=False)
    assert (told.moves, told.elasticity) == (moves, {})


def test_plans_are_not_held_on_a_network_without_their_cores():
    """Half of 9 columns has the network of the card, whose 8 have no ninth."""
    found = effect("grid.cols", spec="wormhole_n150, grid=9x7")
    assert {PLAN, CYCLES} <= set(found.moves)


def test_elasticity_is_the_part_that_a_figure_has():
    """Cycles that a start alone takes double with it; a program of which it is a part moves by that part."""
    matmul = next(one for one in samples() if one.name == "matmul, few columns")
    part = effect("matmul_costs.start_cycles", matmul).elasticity["matmul"]
    assert 0.01 < part < 0.9
    assert set(effect("matmul_costs.start_cycles", matmul).elasticity) == {"matmul"}


def test_the_planners_rates_move_plans_alone():
    found = effect("reader.tilize[4].dst_16bit_cycles", *planners_samples())
    assert found.moves == (PLAN, MEMORY)
    assert not found.elasticity


def timed_at_once(fields, calls, spec):
    """Names of fields whose double or half moves the time of anything: each is looked at until the first that moves."""
    held = (fixed_launches(calls, spec), *with_model(fixed_operations(calls, spec), spec))
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
        for first in range(0, len(calls), AT_A_TIME):
            found = effects(left(spec), calls[first : first + AT_A_TIME], spec)
            still -= {one.field.name for one in found if one.moves}
        found = effects(left(spec, readers=True), calls[:1], spec, planned=planners_samples())
        still -= {one.field.name for one in found if one.moves}
        if not still:
            break
    assert still == set()
