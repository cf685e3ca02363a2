import numpy as np
import pytest

from tools.recorded.compare import buffer_difference, compare, correlation, difference, reason
from tools.recorded.records import DATA, PEAK_FIELDS, Outcome, Outputs, read_records

RECORDS = [record for record in read_records(DATA) if "error" not in record and "cbs" in record]


def perfect(record):
    """What a simulator without a fault would answer."""
    keys = ("output", "weight_prepared", "bias_prepared", "output_hw", "ops", "cbs", "buffers")
    peaks = record.get("resource_per_core") or {}
    fields = {key: record.get(key) for key in keys} | {
        "resource_per_core": {key: peaks[key] for key in PEAK_FIELDS if peaks}
    }
    return Outcome(fields=fields, values=Outputs(DATA).of(record))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record['set']}/{record['name']}")
def test_a_record_agrees_with_itself(record):
    found = compare(record, perfect(record), Outputs(DATA).of(record))
    assert found
    assert set(found.values()) == {None}


def test_every_aspect_can_disagree():
    record = next(record for record in RECORDS if "output_array" in record and record["cbs"])
    want = Outputs(DATA).of(record)
    outcome = perfect(record)
    outcome.values = -want
    for key in ("ops", "cbs", "buffers"):
        outcome.fields[key] = outcome.fields[key][1:]
    outcome.fields["output_hw"] = [1, 1]
    outcome.fields["resource_per_core"] = {"peak_cb": 1, "peak_l1": 2, "peak_total": 3}
    found = compare(record, outcome, want)
    assert all(found[aspect] for aspect in ("values", "specs", "ops", "cbs", "buffers", "peaks"))


def test_an_error_agrees_by_its_first_line():
    record = {"error": "Out of Memory: Not enough space", "case": {}}
    assert compare(record, Outcome(error="TT_FATAL\nOut of Memory: Not enough space\nmore"), None) == {"error": None}
    assert compare(record, Outcome(), None)["error"]
    assert compare({"case": {}}, Outcome(error="no"), None) == {"error": "no"}
    assert compare({"case": {}, "defect": True}, Outcome(error="no"), None) == {}


def test_reason_skips_the_position():
    assert reason("TT_FATAL @ a.cpp:1: x\ninfo:\nStride of program 12 is 0\nbacktrace") == "Stride of program N is 0"


def test_differences_name_the_place():
    assert difference([1, 2], [1, 2]) is None
    assert difference([1, 2], [1]) == "2 wanted, 1 got; at 1 want [2], got []"
    assert buffer_difference([{"size": 8}], [{"size": "8", "address": 0}]) is None
    assert "at 0" in buffer_difference([{"size": 8}], [{"size": 9}])


def test_correlation():
    values = np.arange(5.0)
    assert correlation(values, 3 * values + 1) == pytest.approx(1)
    assert correlation(values, -values) == pytest.approx(-1)
    assert correlation(np.ones(3), np.ones(3)) == 1
    assert correlation(np.ones(3), np.zeros(3)) == 0
