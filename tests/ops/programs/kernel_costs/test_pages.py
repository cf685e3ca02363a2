"""Pages that are waited for, by hand; figures of the p150."""

import pytest

from device.spec.device_spec import load_spec
from ops.programs.kernel_costs import (
    read_stick_cycles,
    waited_read_cycles,
    waited_write_cycles,
    write_latency_cycles,
    write_stick_cycles,
)

SPEC = load_spec("blackhole_p150").replace(
    movement_costs_page_rate_share=0.5,
    movement_costs_wait_share=0.25,
    movement_costs_group_wait_share=0.5,
    movement_costs_stick_cycles=70.0,
    movement_costs_stick_write_cycles=50.0,
    movement_costs_write_access_ns=10.0,
)
ROUND_TRIP = 119 + 9 * (17 + 12)
CORES = 119 + 9 * (17 * 12 / 13 + 12 * 9 / 10)  # of 13 x 10, some share a row or a column
BANKS = 0.742 * 8 * 64e9 / 1.35e9
LINK = 0.952 * 64


def test_a_page_comes_at_half_a_banks_rate_and_behind_a_quarter_of_the_others():
    alone = waited_read_cycles(SPEC, 2048, in_dram=True)
    assert alone == pytest.approx(ROUND_TRIP + 78 * 1.35 + 2048 / (0.5 * 64 / 1.35))
    among = waited_read_cycles(SPEC, 2048, in_dram=True, readers=20)
    assert among - alone == pytest.approx(0.25 * 20 * 2048 / BANKS)
    assert waited_read_cycles(SPEC, 2048, in_dram=False, readers=20) == pytest.approx(CORES + 2048 / LINK)


def test_a_slow_link_bounds_the_rate_of_a_page():
    narrow = SPEC.replace(noc_flit_bytes=16)
    assert read_stick_cycles(narrow, 2048) == pytest.approx(70 + 2048 / (0.952 * 16))


def test_writes():
    assert write_latency_cycles(SPEC, in_dram=True) == pytest.approx(ROUND_TRIP + 13.5)
    assert waited_write_cycles(SPEC, 2048, in_dram=False) == pytest.approx(CORES + 2048 / LINK)
    assert write_stick_cycles(SPEC, 64) == 50.0
    assert write_stick_cycles(SPEC, 6400) == pytest.approx(6400 / LINK)


def test_sticks_are_asked_for_one_after_the_other():
    alone = read_stick_cycles(SPEC, 512)
    assert alone == pytest.approx(70 + 512 / (0.5 * 64 / 1.35))
    assert read_stick_cycles(SPEC, 512, readers=20) - alone == pytest.approx(0.5 * 20 * 512 / BANKS)
