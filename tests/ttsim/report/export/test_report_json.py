"""Both reports in one file."""

import json

from ttsim.report.writers.json import report_json


def test_both_reports_are_in_it(record, hostile):
    read = json.loads(report_json(record))
    assert read["name"] == "net"
    assert read["cycles"] == json.loads(record.cycles.to_json())
    assert read["network"] == json.loads(record.network.to_json())
    assert json.loads(report_json(hostile))["cycles"]["device"] == hostile.cycles.device
    assert report_json(hostile).isascii()
