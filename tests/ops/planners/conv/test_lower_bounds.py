"""Bounds hold: nothing of a space takes less than they say, and what they call alike has one plan."""

from dataclasses import replace

import pytest

from device.errors import DeviceError
from ops.planners.conv.lower_bounds import UNKNOWN, ConvTimes, Extent, LowerBounds, l1_path_calls
from ops.programs.conv2d.walk import time_conv
from tests.ttsim.study.tune.tuned_calls import placements, question
from ttsim.study.evaluate import plan_key
from ttsim.study.tune.search import evaluate, l1_bytes_before
from ttsim.study.tune.space import Space

FREE = 1_300_000


def space(kind):
    asked = question(kind)
    return Space(call=asked.call, spec=asked.snapshot.machine.spec, free_l1_bytes=FREE), asked.snapshot


@pytest.mark.parametrize(("kind", "every"), [("l1", 5), ("dram", 19), ("conv2d", 5)])
def test_no_call_takes_less_than_its_bounds(kind, every):
    searched, snapshot = space(kind)

    bounds = LowerBounds(ConvTimes(searched.spec), FREE)
    around, plans, ran = {}, {}, 0
    for placed, largest in placements(searched, every):
        on_cores = bounds.of_all(placed, Extent.BLOCKS if searched.keeps_cores(placed) else Extent.CORES)
        of_scheme = UNKNOWN if largest is None else bounds.of_all(largest, Extent.CORES)
        for first in list(searched.families(placed))[::11]:
            for call in list(searched.members(first))[::7]:
                try:
                    result = evaluate(call, snapshot)
                except DeviceError:
                    continue
                ran += 1
                least = bounds.of(call)
                walked = sum(count * time_conv(op, searched.spec).end.cycles for op, _, count in least.programs)
                assert of_scheme.cycles <= least.cycles
                assert on_cores.cycles <= least.cycles
                assert 0 < least.cycles <= walked <= result.cycles
                assert of_scheme.rest_cycles <= on_cores.rest_cycles <= least.rest_cycles <= result.around_cycles
                assert on_cores.l1_bytes <= least.l1_bytes
                assert l1_bytes_before(snapshot) + least.l1_bytes <= result.l1_peak_bytes
                assert around.setdefault(least.rest_key, result.around_cycles) == result.around_cycles
                assert walked + result.around_cycles <= result.cycles + 1
                assert plans.setdefault(least.plan_key, plan_key(result.plan)) == plan_key(result.plan)
    assert ran > 8


def test_nothing_is_known_of_a_matmul():
    searched, _ = space("l1")
    pointwise = replace(searched.call, kernel_size=(1, 1), stride=(1, 1))
    assert LowerBounds(ConvTimes(searched.spec), FREE).of(pointwise) is UNKNOWN
    assert l1_path_calls(pointwise, searched.spec, free_l1_bytes=FREE) == ()
