"""Every field of a device has a unit, and a name that tells it."""

import pytest

from device.errors import SpecError
from device.spec.device_spec import catalog_names
from ops.op_models import load_spec
from ops.sensitivity.fields import Better, Dimension, fields_of, numeric_fields, scaled, with_values

SPEC = load_spec("wormhole_n150")


def field(name):
    return next(one for one in fields_of(SPEC) if one.name == name)


@pytest.mark.parametrize("name", catalog_names())
def test_every_number_has_a_unit_or_is_a_plain_number(name):
    plain = {one.name for one in numeric_fields(load_spec(name)) if not one.unit}
    assert all(one.endswith(("_share", "_factor")) or one == "l1.circular_buffers" for one in plain), plain


@pytest.mark.parametrize(
    ("name", "unit", "dimension", "better"),
    [
        ("clock_hz", "Hz", Dimension.CLOCK, Better.LARGER),
        ("dram.bank_bytes_per_second", "bytes/s", Dimension.RATE, Better.LARGER),
        ("dram.access_ns", "ns", Dimension.TIME, Better.SMALLER),
        ("noc.flit_bytes", "bytes/cycle", Dimension.CYCLE_RATE, Better.LARGER),
        ("compute.phase_cycles", "cycles", Dimension.CYCLES, Better.SMALLER),
        ("l1.bytes", "bytes", Dimension.NUMBER, Better.NEITHER),
        ("reader.tilize[0].dst_16bit_cycles", "cycles", Dimension.CYCLES, Better.NEITHER),
    ],
)
def test_units(name, unit, dimension, better):
    one = field(name)
    assert (one.unit, one.dimension, one.better) == (unit, dimension, better)


def test_what_is_no_number_is_a_field_too():
    assert field("arch").value == "wormhole_b0"
    assert field("noc.worker_cols").value == [1, 2, 3, 4, 6, 7, 8, 9]
    assert not any(field(name).numeric for name in ("arch", "noc.worker_cols", "compute.minus_one_quirk"))


def test_a_field_is_changed_where_the_machine_allows_it():
    assert scaled(SPEC, field("dram.banks"), 0.5).dram.banks == 6
    assert scaled(SPEC, field("reader.tilize[1].dst_32bit_cycles"), 2).reader.tilize[1].dst_32bit_cycles == 148
    assert scaled(SPEC, field("dram.achieved_share"), 2) is None  # no share is above 1
    assert scaled(SPEC, field("compute.stationary_tiles"), 1.1) is None  # it rounds to what it was
    both = with_values(SPEC, {("clock_hz",): 5e8, ("noc", "flit_bytes"): 16})
    assert (both.clock_hz, both.noc.flit_bytes) == (500_000_000, 16)


def test_a_number_whose_unit_nobody_knows_is_refused():
    with pytest.raises(SpecError, match=r"grid\.width: nobody knows the unit"):
        fields_of(_Strange())


class _Strange:
    def to_dict(self):
        return {"grid": {"width": 3}}
