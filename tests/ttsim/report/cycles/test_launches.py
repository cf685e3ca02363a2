"""The line between operations."""

import json

import pytest

from device.spec.device_spec import load_spec
from ops.launch import Launch, LaunchedProgram
from ttsim.report.cycle_report import cycle_report, launch_lines, launch_times
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.run import Settings, call, make_inputs, place

SPEC = load_spec("wormhole_n150").replace(
    dispatch_costs_fetch_cycles=2000,
    dispatch_costs_write_cycles=100,
    dispatch_costs_write_core_cycles=1,
    dispatch_costs_binary_bytes_per_cycle=16,
    dispatch_costs_start_cycles=800,
    dispatch_costs_host_launch_nanoseconds=5000,
    dispatch_costs_host_bytes_per_second=1_000_000_000,
)
PROGRAM = LaunchedProgram(name="One", cores=1, processors=1, binaries=1, binary_bytes=1600, key="one")


def test_three_readings_by_hand():
    """Fetching takes 2000 + 100 cycles of a nanosecond; the second program is fetched and written behind a kernel."""
    times = launch_times([Launch(PROGRAM, 4000.0)] * 2, 8000.0, SPEC)
    assert [one.reading for one in times.readings] == ["trace replay", "warm program cache", "first call"]
    trace, warm, first = times.readings
    assert trace.between_nanoseconds == 2100 + 2 * 800
    assert trace.total_nanoseconds == 8000 + 2100 + 2 * 800
    assert warm.between_nanoseconds == 2 * 5000 + 2100 + 800 - 4000  # the host is slower than the kernels
    assert first.between_nanoseconds == warm.between_nanoseconds + 1600
    assert times.programs == 2


def test_in_words():
    (line,) = launch_lines(launch_times([Launch(PROGRAM, 4000.0)], 4000.0, SPEC))
    assert line == (
        "Between operations, in no figure above: trace replay 2.90 us, warm program cache 7.90 us, first call 9.50 us "
        "(not counting compiling). Trace replays of a public benchmark are off by 4.0 % in the mean; the others "
        "are not validated."
    )
    assert launch_lines(launch_times([], 0.0, SPEC)) == []


@pytest.mark.parametrize("name", ["wormhole_n150", "blackhole_p150"])
def test_a_call_has_its_line_and_keeps_its_cycles(name):
    spec = load_spec(name)
    layer = Layer(in_channels=32, out_channels=16, input_height=8, input_width=8, stride=(2, 2))
    placed = place(layer, make_inputs(layer), Settings(spec=spec, values="off"))
    with placed.device:
        profile = call(placed).profile
        report = profile.report()
    assert report.launches.programs == len(profile.calls[0].ran)
    trace, warm, first = report.launches.readings
    assert 0 < trace.between_nanoseconds <= warm.between_nanoseconds < first.between_nanoseconds
    assert trace.total_nanoseconds == pytest.approx(report.nanoseconds + trace.between_nanoseconds, abs=1)
    assert sum(line.startswith("Between operations") for line in str(report).splitlines()) == 1
    assert "Between operations" in report.explain()
    held = json.loads(report.to_json())["launches"]
    assert held["readings"][0]["between_nanoseconds"] == trace.between_nanoseconds
    assert held["error_share"] == 0.04


def test_a_report_on_nothing_has_no_line():
    assert cycle_report([], SPEC).launches.readings == ()
