import csv
import json
from io import StringIO

import pytest

from ttsim.study.store import Row, Verdict
from ttsim.study.sweep import SweepResult


def row(cycles=None, **others):
    verdict = Verdict.DOES_NOT_FIT if cycles is None else Verdict.FITS
    figures = {} if cycles is None else {"cycles": cycles, "clock_hz": 500_000_000, "untimed_operations": 0}
    return Row(**{"key": str(cycles), "layer": "up", "device": "d", "verdict": verdict} | figures | others)


RESULT = SweepResult(
    axes=("config.x", "device.y"),
    samples=(
        ({"config.x": 1, "device.y": "2"}, row(300, inputs={"config.x": 1}, plan_key="p")),
        ({"config.x": None, "device.y": "2"}, row(200, inputs={}, plan_key="q")),
        ({"config.x": 3, "device.y": "2"}, row(200, inputs={"config.x": 3}, plan_key="q")),
        ({"config.x": 4, "device.y": "2"}, row(100, inputs={"config.x": 4}, untimed_operations=1, plan_key="r")),
        ({"config.x": 5, "device.y": "2"}, row(error="too, large\nby far", inputs={"config.x": 5})),
        ({"config.x": 1, "device.y": "2"}, row(layer="down", inputs={"config.x": 1})),
    ),
)


def test_the_best_of_each_layer():
    up, down = RESULT.best()
    assert (up.layer, up.row.cycles, up.labels["config.x"], up.nanoseconds) == ("up", 200, None, 400.0)
    assert (up.fitting, up.points, up.slowest_cycles) == (4, 5, 300)
    assert (up.reason, down.reason) == ("too, large", "")
    assert (down.layer, down.row, down.labels, down.fitting, down.slowest_cycles) == ("down", None, None, 0, None)


def test_counts():
    assert RESULT.verdicts == {"fits": 4, "does not fit": 2}
    assert RESULT.plans == 3


def test_records_are_flat_and_alike():
    records = RESULT.records()
    assert len({tuple(one) for one in records}) == 1
    assert list(records[0])[:4] == ["layer", "device", "device.y", "config.x"]
    assert records[1]["config.x"] is None
    assert (records[0]["cycles"], records[0]["nanoseconds"], records[0]["verdict"]) == (300, 600.0, "fits")
    assert records[4]["nanoseconds"] is None
    assert json.loads(RESULT.to_json())["points"] == records


def test_csv_has_a_line_for_each_point():
    lines = list(csv.DictReader(StringIO(RESULT.to_csv(), newline="")))
    assert [one["cycles"] for one in lines] == ["300", "200", "200", "100", "", ""]
    assert lines[4]["error"] == "too, large\nby far"


def test_pandas_reads_it():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(RESULT.records())
    assert frame.loc[0, "cycles"] == 300
