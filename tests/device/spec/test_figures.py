"""Units by the names of figures."""

import pytest

from device.errors import SpecError
from device.spec.figures import Better, Dimension, Kind, has_kind, kind_of, read_number, spelled_number


def test_a_listed_name_counts_before_its_ending():
    assert kind_of("noc.flit_bytes") == Kind("bytes/cycle", Dimension.CYCLE_RATE, Better.LARGER)
    assert kind_of("other.flit_bytes") == Kind("bytes", Dimension.NUMBER, Better.NEITHER)


def test_a_name_that_tells_no_unit():
    assert not has_kind("noc.worker_cols[0]")
    with pytest.raises(SpecError, match=r"^grid\.width: nobody knows the unit of this figure; let its name end in one"):
        kind_of("grid.width")


@pytest.mark.parametrize(
    ("name", "whole", "text", "value"),
    [
        ("l1.bytes", True, "2MiB", 2_097_152),
        ("clock_hz", True, "1.2GHz", 1_200_000_000),
        ("reader.clock_ghz", False, "1350MHz", 1.35),
        ("pool_costs.stick_cycles", False, "3", 3.0),
        ("dram.achieved_share", False, "50%", 0.5),
    ],
)
def test_a_number_in_the_unit_of_its_field(name, whole, text, value):
    found = read_number(name, text, whole=whole)
    assert (found, type(found)) == (value, type(value))
    assert read_number(name, spelled_number(name, value), whole=whole) == value


def test_what_is_counted_has_no_parts():
    with pytest.raises(SpecError, match=r"is a plain number, not a part of a whole as '50%' is; give a plain number$"):
        read_number("l1.circular_buffers", "50%", whole=True)


def test_a_long_number_is_not_printed():
    with pytest.raises(SpecError, match=r"^l1\.bytes must be a number, not '9{30}'\.\.\. \(500 characters\); give"):
        read_number("l1.bytes", "9" * 500, whole=True)
