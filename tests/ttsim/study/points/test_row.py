import json

import pytest

from ttsim.study.store import Row, Verdict


def test_a_row_survives_json():
    row = Row(key="k", layer="l", device="d", verdict=Verdict.FITS, cycles=7, pcc=0.1)
    assert Row.from_dict(json.loads(json.dumps(row.to_dict()))) == row
    assert row.to_dict()["verdict"] == "fits"


@pytest.mark.parametrize(("changed", "error"), [({"x": 1}, TypeError), ({"verdict": "maybe"}, ValueError)])
def test_what_is_no_row(changed, error):
    values = Row(key="k", layer="l", device="d", verdict=Verdict.FITS).to_dict() | changed
    with pytest.raises(error):
        Row.from_dict(values)


def test_time_is_by_the_clock_of_the_device():
    row = Row(key="k", layer="l", device="d", verdict=Verdict.FITS, cycles=300, clock_hz=500_000_000)
    assert row.nanoseconds == 600.0
    assert "nanoseconds" not in row.to_dict()
    assert Row(key="k", layer="l", device="d", verdict=Verdict.REFUSED).nanoseconds is None
