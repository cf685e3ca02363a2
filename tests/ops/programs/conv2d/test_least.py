"""The bound of a program is that of its busiest processor: exact where nobody waits, never above the walk."""

from dataclasses import replace

import pytest

from ops.planners.conv.lower_bounds import lower_bound_of
from ops.programs.conv2d.cycles import least_cycles, time_conv
from tests.ttsim.study.tune.tuned_calls import question


@pytest.mark.parametrize("scheme", ["HEIGHT_SHARDED", "BLOCK_SHARDED", "WIDTH_SHARDED"])
@pytest.mark.parametrize("rows", [0, 32])
def test_the_bound_is_below_the_walk_and_near(scheme, rows):
    asked = question("l1")
    spec, config = asked.ground.machine.spec, asked.call.conv_config
    layout = type(asked.call.input.spec.memory_config.memory_layout)[scheme]
    call = replace(asked.call, conv_config=replace(config, shard_layout=layout, act_block_h_override=rows))
    ((op, count),) = lower_bound_of(call, spec, free_l1_bytes=1_300_000).ops
    assert count == 1
    walked = time_conv(op, spec).end.cycles
    assert 0.3 * walked < least_cycles(op, spec) <= walked
