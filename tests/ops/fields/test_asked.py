"""What a computation asks a device for."""

import pytest

from device.spec.device_spec import DeviceSpec
from device.time.network import torus_of
from ops.fields.asked import parts_asked
from ops.fields.field import numeric_fields, scaled
from ops.fields.held import held_launches, held_operations, with_model
from ops.fields.samples import samples
from ops.meanings import COSTS, load_spec
from ops.programs.halo.costs import HaloCosts

SPEC = load_spec("wormhole_n150")
TABLES = {costs.TABLE for costs in COSTS}


@pytest.mark.parametrize(
    ("run", "asked"),
    [
        (lambda spec: spec.clock_hz, {"clock_hz"}),
        (lambda spec: spec.l1.usable_bytes, {"l1"}),
        (lambda spec: spec.costs_of(HaloCosts), {"halo_costs"}),
        (lambda spec: spec.tables, {"tables", *TABLES}),
        (lambda spec: 1, set()),
    ],
)
def test_parts_that_are_read_are_asked_for(run, asked):
    assert parts_asked(run, SPEC) == asked


def test_a_listening_device_is_the_device():
    def run(spec):
        assert isinstance(spec, DeviceSpec)
        assert spec.to_dict() == SPEC.to_dict()
        assert torus_of(spec) == torus_of(SPEC)

    assert parts_asked(run, SPEC) >= {"grid", "noc", "reader", *TABLES}


def test_what_was_not_asked_for_moves_nothing():
    """Every tenth operation of the samples, and every field of what it does not read."""
    held = with_model(held_operations(samples(), SPEC), SPEC)[::10]
    for one in (*held, held_launches(samples()[:3], SPEC)):
        asked, before = parts_asked(one.cycles, SPEC), one.cycles(SPEC)
        assert asked & {"clock_hz", *TABLES}
        for field in numeric_fields(SPEC):
            device = None if field.path[0] in asked else scaled(SPEC, field, 2.0)
            assert device is None or one.cycles(device) == before, (one.name, field.name)
