"""The convolution of conftest in a roofline chart, at 1 GHz."""

from dataclasses import replace

import pytest

from tests.ttsim.report.ran_operations import runs_of
from ttsim.report.page_parts import roof_chart

FLOPS = 32 * 50 * 65536  # issued, in 4000 cycles, with 100,000 bytes of DRAM


@pytest.fixture
def found(halo, conv, spec):
    return runs_of(spec, halo, conv)


def test_what_multiplies_and_moves_bytes_of_dram_is_a_point(found) -> None:
    chart = roof_chart(found)
    assert chart is not None
    (point,) = chart.points  # the halo has no place
    assert point.op.name == "Conv2dDeviceOperation"
    assert point.flops_per_byte == FLOPS / 100_000  # 1049
    assert point.flops_per_second == pytest.approx(FLOPS / 4e-6)  # 26.2 T
    assert 0 <= point.left_share <= 1
    assert 0 <= point.top_share <= 1


def test_roofs_meet_above_the_points(found, report) -> None:
    chart = roof_chart(found)
    assert chart is not None
    dram, math = chart.lines
    roof = report.operations[1].roofline
    assert dram.end == math.start  # the ridge
    assert math.start[1] == math.end[1] < chart.points[0].top_share
    assert dram.name == f"DRAM {100_000 / roof.dram_cycles:.3g} GB/s"
    assert math.name == f"HiFi2 {FLOPS / roof.math_cycles / 1e3:.3g} TFLOP/s"


def test_axes_are_powers_of_ten_that_hold_everything(found) -> None:
    chart = roof_chart(found)
    assert chart is not None
    assert [one.share for one in (chart.across[0], chart.across[-1])] == [0, 1]
    assert {one.text for one in chart.across} >= {"1 kFLOP/B", "10 kFLOP/B"}
    assert [one.text for one in chart.upward] == ["10 TFLOP/s", "100 TFLOP/s", "1 PFLOP/s"]


def test_without_such_an_operation_there_is_no_chart(found) -> None:
    assert roof_chart([one for one in found if one.name == "HaloDeviceOperation"]) is None
    assert roof_chart([replace(one, taken=None) for one in found]) is None
