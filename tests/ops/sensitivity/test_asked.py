"""What a computation asks a device for."""

from dataclasses import replace

import pytest

from device.spec.device_spec import DeviceSpec
from device.time.network import torus_of
from ops.op_models import COSTS, load_spec
from ops.programs.halo.cycles import HaloCosts
from ops.sensitivity.effects import fixed_launches, fixed_operations, with_model
from ops.sensitivity.fields import fields_of, numeric_fields, scaled
from ops.sensitivity.read_set import fields_asked, parts_asked
from ops.sensitivity.samples import samples
from ttsim.study.design import HeardPoint
from ttsim.study.evaluate import Evaluator
from ttsim.types.layer import Layer

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
    held = with_model(fixed_operations(samples(), SPEC), SPEC)[::10]
    for one in (*held, fixed_launches(samples()[:3], SPEC)):
        asked, before = parts_asked(one.cycles, SPEC), one.cycles(SPEC)
        assert asked & {"clock_hz", *TABLES}
        for field in numeric_fields(SPEC):
            device = None if field.path[0] in asked else scaled(SPEC, field, 2.0)
            assert device is None or one.cycles(device) == before, (one.name, field.name)


def cycles_and_memory(spec):
    """All that a row of a layer says, on a device."""
    layer = Layer(name="small", in_channels=64, out_channels=32, input_height=16, input_width=16)
    return replace(Evaluator().row(HeardPoint(layer=layer, spec=spec)), device="")


@pytest.mark.parametrize(
    ("run", "asked"),
    [
        (lambda spec: spec.clock_hz, {"clock_hz"}),
        (lambda spec: spec.l1.usable_bytes, {"l1.bytes", "l1.base_bytes"}),
        (lambda spec: spec.reader.local.peak_at_bytes, {"reader.local.peak_at_bytes"}),
        (lambda spec: spec.reader.tilize[2].dst_16bit_cycles, {"reader.tilize[2].dst_16bit_cycles"}),
        (lambda spec: spec.costs_of(HaloCosts).start_cycles, {"halo_costs.start_cycles"}),
        (lambda spec: hash(spec.grid), {"grid.cols", "grid.rows"}),
        (lambda spec: replace(spec.grid, cols=3), {"grid.rows"}),
        (lambda spec: spec.checked(COSTS), set()),
        (lambda spec: spec.noc, set()),
        (lambda spec: 1, set()),
    ],
)
def test_fields_that_are_read_are_asked_for(run, asked):
    assert fields_asked(run, SPEC) == asked


def test_reading_all_asks_for_all():
    assert fields_asked(lambda spec: spec.to_dict(), SPEC) == {field.name for field in fields_of(SPEC)}


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
