"""Reasons are figures and facts of the reports on both calls."""

from dataclasses import replace

from device.memory.memory_config import TensorMemoryLayout
from tests.ttsim.study.tune.tuned_calls import question
from ttsim.study.tune.search import evaluate
from ttsim.study.tune.tune import reasons, report_on


def made(scheme):
    asked = question("l1")
    config = replace(asked.call.conv_config, shard_layout=TensorMemoryLayout[scheme])
    return evaluate(replace(asked.call, conv_config=config), asked.ground)


def test_the_greatest_gain_comes_first_with_what_was_planned_apart():
    best, before = made("HEIGHT_SHARDED"), made("BLOCK_SHARDED")
    spec = question("l1").ground.machine.spec
    first, *_, last = reasons(best, before, spec)
    after = report_on(best, spec)
    (conv,) = [one for one in after.operations if one.name == "Conv2dDeviceOperation"]
    assert first.startswith("Conv2dDeviceOperation: ")
    assert f"-> {conv.cycles:,} cycles; HEIGHT_SHARDED instead of BLOCK_SHARDED" in first
    assert f"takes {after.total.roofline.cycles:,} cycles (its roofline)" in last
    assert after.cycles == best.cycles


def test_a_call_beside_itself_differs_in_nothing():
    one = made("HEIGHT_SHARDED")
    assert len(reasons(one, one, question("l1").ground.machine.spec)) == 1
