"""What fields move: each something, on one card at least."""

from functools import cache

import pytest

from device.spec.device_spec import catalog_names
from ops.fields.effects import CYCLES, LAUNCHES, MEMORY, PLAN, effects
from ops.fields.field import numeric_fields
from ops.fields.samples import planners_samples, samples
from ops.meanings import COSTS, load_spec

TABLES = [costs.TABLE for costs in COSTS]


def effect(name, *calls, spec="wormhole_n150"):
    device = load_spec(spec)
    (field,) = (one for one in numeric_fields(device) if one.name == name)
    (found,) = effects([field], calls or samples()[:2], device, programs_tables=TABLES)
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


@cache
def all_effects(name):
    spec = load_spec(name)
    return effects(numeric_fields(spec), samples(), spec, planned=planners_samples(), programs_tables=TABLES)


@pytest.mark.slow
def test_every_field_moves_something():
    """On one of the machines at least: a cost of what a machine does not do is there for those that do it."""
    moved = {one.field.name for name in catalog_names() for one in all_effects(name) if one.moves}
    fields = {field.name for name in catalog_names() for field in numeric_fields(load_spec(name))}
    assert fields - moved == set()
