"""Figures of pages by hand: the halo and the convolution of conftest, at 1 GHz, and a move that no model knows."""

from dataclasses import replace

import pytest

from device.spec.device_spec import load_spec
from tests.ttsim.report.ran_operations import runs_of, timed, untimed
from ttsim.report.cycle_report import cycle_report
from ttsim.report.cycles import CallRun
from ttsim.report.memory import CIRCULAR, Occupant, l1_map
from ttsim.report.network import LivingBuffer, Runs, network_report
from ttsim.report.pages import grid_of, page_of_network, roof_chart, steps, times
from ttsim.report.writers.html.document import page_html

UNIT = {"": 1, "ns": 1, "ms": 1e6}
FLOPS = 32 * 50 * 65536  # issued by the convolution, in 4000 cycles, with 100,000 bytes of DRAM


@pytest.fixture
def runs(halo, conv, spec):
    return runs_of(spec, halo, untimed(), conv, facts=[{"l1": (60, 40)}, {"l1": (0, 50)}, {"l1": (150, 50)}])


def test_a_network_is_one_part(report_with_a_move, runs, spec) -> None:
    network = network_report(runs, spec)
    (part,) = page_of_network(network, report_with_a_move, spec).parts
    assert part.stages == ["start", "reader", "math", "network", "dram"]
    assert [op.number for op in part.roofs] == [2, 0] == [op.number for op in part.excesses]
    roof = report_with_a_move.operations[1].roofline
    assert (roof.limits["math"], part.excesses[0].time.cycles_above_roof) == (800, 4000 - roof.cycles)
    (of_network,) = page_of_network(network).parts
    assert [len(found) for found in (of_network.stages, of_network.roofs, of_network.excesses)] == [0, 0, 0]
    assert of_network.chart is None


def test_a_page_shows_the_longest_operations_alone(conv, spec) -> None:
    calls = [CallRun(name="f", ran=(conv,) * 20, spec=spec)]
    network = network_report(runs_of(spec, *calls[0].ran), spec)
    (part,) = page_of_network(network, cycle_report(calls, spec), spec).parts
    assert (len(part.roofs), len(part.excesses)) == (16, 8)


def test_nothing_ran(spec) -> None:
    network = network_report(Runs(spec.clock_hz, spec), spec)
    assert str(network) == "No device operation ran on wormhole_n150."
    assert page_html(page_of_network(network, cycle_report([], spec), spec))


def test_every_core_has_its_time_and_its_circular_buffers(report, spec) -> None:
    first = Occupant(name="a", kind=CIRCULAR, address=0, size_bytes=64, ranges=((0, 0, 1, 0),))
    second = replace(first, name="b", ranges=((1, 0, 1, 0),))
    grid = grid_of(report.total.cores, spec, l1_map([(first, second), (second,)], spec))
    assert (grid.columns, grid.rows, len(grid.cores)) == (8, 8, 64)
    assert [(core.cycles, core.circular_bytes) for core in (*grid.cores[:2], grid.cores[63])] == [
        (5000, 64), (4400, 128), (0, 0),
    ]  # fmt: skip
    maps = {one.name: one for one in grid.maps}
    assert list(maps) == [
        "at work", "busiest stage", "waiting", "circular buffers", "from and to DRAM", "over the networks",
    ]  # fmt: skip
    work, circular, sent = maps["at work"], maps["circular buffers"], maps["over the networks"]
    assert (work.figures[1], work.shares[1], work.unit, work.whole) == (4400, 0.88, "cycles", "of all cycles")
    assert circular.shares[1] == 128 / spec.l1.usable_bytes
    assert (max(sent.figures), sent.figures[8], sent.shares[8]) == (4500, 1500, 1500 / 4500)


@pytest.mark.parametrize(
    ("axis", "length", "marks"),
    [
        (steps, 0, ""), (steps, 1, "#0"), (steps, 3, "#0 #1 #2"), (steps, 13, "#0 #2 #4 #6 #8 #10 #12"),
        (times, 0.0, ""), (times, 3.0, "0_ns 1_ns 2_ns 3_ns"), (times, 1500.0, "0_ns 500_ns 1000_ns 1500_ns"),
        (times, 4_778_570.0, "0_ms 1_ms 2_ms 3_ms 4_ms"),
    ],
)  # fmt: skip
def test_an_axis_has_few_round_marks(axis, length, marks) -> None:
    found = axis(length)
    assert [tick.text.replace(" ", "_") for tick in found] == marks.split()
    for tick in found:
        number, _, unit = tick.text.removeprefix("#").partition(" ")
        assert tick.share == pytest.approx(int(number) * UNIT[unit] / length)
    assert len(steps(12_345)) <= 12


def test_what_multiplies_and_moves_bytes_of_dram_is_a_point_below_its_roofs(runs, report) -> None:
    chart = roof_chart(runs)
    ((op, (left, top)),) = chart.points  # the halo has no place
    time, roof = op.time, report.operations[1].roofline
    assert time.issued_flops_per_second == pytest.approx(FLOPS / 4e-6)  # 26.2 T
    assert 0 <= left <= 1
    (dram, *_, ridge), (math, begins, ends) = chart.lines
    assert ridge == begins
    assert begins[1] == ends[1] < top <= 1
    assert dram == f"DRAM {100_000 / roof.dram_cycles:.3g} GB/s"
    assert math == f"HiFi2 {FLOPS / roof.math_cycles / 1e3:.3g} TFLOP/s"
    assert [chart.across[at].share for at in (0, -1)] == [0, 1]
    assert {tick.text for tick in chart.across} >= {"1 kFLOP/B", "10 kFLOP/B"}
    assert [tick.text for tick in chart.upward] == ["10 TFLOP/s", "100 TFLOP/s", "1 PFLOP/s"]
    assert roof_chart(runs[:2]) is None
    assert roof_chart([replace(op, taken=None) for op in runs]) is None


SPEC = load_spec("wormhole_n150")
HELD = LivingBuffer(name="output", memory="L1", bank_bytes=500, address=1000, function="ttnn.f", where="net.py:1")


LONG = "very_long_folder/with\x1b[31m/" * 400 + "net.py:77"


def test_tables_of_any_width_have_whole_rows() -> None:
    """Whatever the names: columns go, and no figure is cut."""
    name = "InterleavedToShardedDeviceOperation"
    facts = [{"where": LONG, "l1": (0, 500), "buffers": (HELD,)}, {"where": "net.py:1", "call": 1}]
    runs = runs_of(SPEC, timed(name, 123_456_789), timed("B\n[red]" * 2000, 7), facts=facts)
    for width in (80, 120):
        text = network_report(runs, SPEC).table(width)
        lines = text.split("\n")
        assert max(map(len, lines)) <= width
        assert "\x1b" not in text
        first = next(line for line in lines if line.startswith("0 "))
        assert all(shown in first for shown in (name, "123,456,789", "100.0 %"))
        assert sum("net.py:77" in line for line in lines) >= 1
