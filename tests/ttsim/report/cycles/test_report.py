import dataclasses
import io
import json

import pytest
from rich.console import Console

from tests.ttsim.report.ran_operations import untimed
from ttsim.report.cycle_report import cycle_report
from ttsim.report.cycles import CallRun
from ttsim.report.writers.table import cycles_line, print_call


def drawn(report):
    out = io.StringIO()
    for call in report.calls:
        print_call(Console(file=out, width=200), call, details=True)
    return out.getvalue()


def test_a_report_is_frozen(report):
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.device = "another"


def test_totals_at_hand(report):
    assert (report.cycles, report.nanoseconds, report.worker_cores) == (5000, 5000, 64)
    assert [operation.name for operation in report.operations] == ["HaloDeviceOperation", "Conv2dDeviceOperation"]


def test_dram_bytes_a_cycle(report):
    """The halo moves none; the convolution reads 80,000 B and writes 20,000 B in 4,000 cycles."""
    assert [operation.dram_bytes_per_cycle for operation in report.operations] == [0, 25]


def test_printed(report):
    head, headings, halo, conv, total, counted = str(report).splitlines()
    assert head == "wormhole_n150: 5,000 cycles, 5.00 us at 1 GHz"
    assert headings.split()[:4] == ["operation", "cycles", "time", "of"]
    assert halo.split()[:7] == ["HaloDeviceOperation", "1,000", "1.00", "us", "20.0", "%", "network"]
    assert conv.split()[:8] == ["Conv2dDeviceOperation", "4,000", "4.00", "us", "80.0", "%", "math", "32"]
    assert total.split()[:4] == ["ttnn.conv_transpose2d", "5,000", "5.00", "us"]
    assert counted.startswith("Cycles count ")
    assert len({len(line) for line in (halo, conv, total)}) == 1


def test_several_calls_are_told_apart(halo, conv, spec):
    calls = [
        CallRun(name="onednn.ConvTranspose", spec=spec, ran=(halo, conv)),
        CallRun(name="ttnn.add", spec=spec, ran=(halo,)),
    ]
    lines = cycle_report(calls, spec).table().splitlines()[2:-1]
    moved = ["HaloDeviceOperation", "1,000"]
    multiplied, both = ["Conv2dDeviceOperation", "4,000"], ["onednn.ConvTranspose", "5,000"]
    assert [line.split()[:2] for line in lines] == [moved, multiplied, both, moved, ["ttnn.add", "1,000"]]


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_table_of_any_width_has_whole_rows(report, width):
    lines = report.table(width).splitlines()
    assert max(map(len, lines)) <= width
    conv = next(line for line in lines if line.startswith("Conv2d"))
    assert conv.startswith("Conv2dDeviceOperation   4,000  4.00 us   80.0 %  math ")
    assert ("25 GB/s" in conv, "20.0 %" in conv) == (width >= 100, width >= 120)


def test_a_terminal_gets_what_fits_it_and_a_file_everything(report, monkeypatch):
    assert str(report) == report.table()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    assert str(report) == report.table(80) != report.table()


def test_drawn(report):
    text = drawn(report)
    for shown in (
        "uncontended",
        "750",
        "25 GB/s",
        "reader",
        "37.5 %",
    ):
        assert shown in text
    assert drawn(report) == text


def test_a_call_in_one_line(report):
    (call,) = report.calls
    assert cycles_line(report, call) == (
        "5,000 in 5.00 us at 1 GHz, 80.0 % of it Conv2dDeviceOperation, bound by math; matrix units of the device "
        "16.0 % busy"
    )


def test_the_line_of_a_call_says_what_is_missing(report, spec):
    halo, conv = (one.timed for one in report.operations)
    sort = untimed("Sort", "no model")
    some = cycle_report([CallRun(name="f", spec=spec, ran=(halo, sort, conv))], spec)
    line = cycles_line(some, some.calls[0])
    assert line.startswith("5,000 in 5.00 us at 1 GHz, not counting Sort, 80.0 % of it Conv2dDeviceOperation")
    none = cycle_report([CallRun(name="f", spec=spec, ran=(sort,))], spec)
    assert cycles_line(none, none.calls[0]) == "no operation that takes cycles, not counting Sort"


def test_json_holds_every_figure(report, call, spec):
    document = json.loads(report.to_json())
    assert document["format"] == 2
    assert document["device"] == "wormhole_n150"
    assert document["total"]["cycles"] == 5000
    (held,) = document["calls"]
    assert [one["bound_by"] for one in held["operations"]] == ["network", "math"]
    assert held["operations"][0]["groups"][1]["ranges"] == [[1, 0, 3, 0]]
    assert held["operations"][1]["stages"][1]["critical_share"] == 0.625
    assert held["total"]["roofline"]["bound"] == "math"
    assert any("dispatch" in text for text in document["leaves_out"])
    assert cycle_report([call], spec).to_json() == report.to_json()


def test_a_report_on_nothing(spec):
    report = cycle_report([], spec)
    assert report.cycles == 0
    assert str(report) == "No call that takes cycles was made on wormhole_n150."
    assert json.loads(report.to_json())["calls"] == []
