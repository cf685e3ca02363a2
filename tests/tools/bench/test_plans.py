"""The planning benchmark: how calls are grouped, and what it measures."""

from dataclasses import replace

import pytest

from ops.planners.conv.arguments import SliceConfig, SliceType
from tools.bench.plans import LIMIT_MS, bench_plans, blocks_kept, group_of, plan_ms, recorded_calls
from tools.recorded.arguments import planner_arguments

CASE = {"name": "one", "H": 8, "W": 8, "in_channels": 32, "out_channels": 32, "kernel": 3, "stride": 2}


@pytest.fixture(scope="module")
def calls():
    return list(recorded_calls())[:20]


@pytest.mark.parametrize(
    ("changes", "group"),
    [
        ({}, "automatic slices"),
        ({"slice": ["H", 0]}, "automatic slices"),
        ({"slice": ["W", 2]}, "given slices"),
        ({"slice": ["H", 1]}, "one piece"),
        ({"slice": "l1_full"}, "one piece"),
        ({"input_memory": "l1"}, "one piece"),
        ({"kernel": 1, "stride": 1}, "1x1"),
    ],
)
def test_groups(changes, group):
    assert group_of(planner_arguments(CASE | changes)) == group


def test_figures(calls, monkeypatch):
    monkeypatch.setattr("tools.bench.plans.recorded_calls", lambda: iter(calls))
    figures = list(bench_plans(1))
    assert [figure.limit for figure in figures if (figure.case, figure.name) == ("20 calls, all", "mean")] == [LIMIT_MS]
    assert all(figure.value > 0 for figure in figures if figure.unit == "ms")


@pytest.mark.slow
def test_planning_keeps_nothing(calls):
    blocks_kept(calls, 10)  # until the interpreter has settled
    assert blocks_kept(calls, 10) < 10 * len(calls) / 2


def test_a_refused_call_is_timed(calls):
    too_many = SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=10_000)
    refused = replace(calls[0], arguments=replace(planner_arguments(CASE), slice_config=too_many))
    assert plan_ms(refused, 1) > 0
