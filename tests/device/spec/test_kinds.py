"""Units by the names of figures."""

import pytest

from device.errors import SpecError
from device.spec.figures import Better, Dimension, Kind, has_kind, kind_of


def test_a_listed_name_counts_before_its_ending():
    assert kind_of("noc.flit_bytes") == Kind("bytes/cycle", Dimension.CYCLE_RATE, Better.LARGER)
    assert kind_of("other.flit_bytes") == Kind("bytes", Dimension.NUMBER, Better.NEITHER)


def test_a_name_that_tells_no_unit():
    assert not has_kind("noc.worker_cols[0]")
    with pytest.raises(SpecError, match=r"^grid\.width: nobody knows the unit of this figure; let its name end in one"):
        kind_of("grid.width")
