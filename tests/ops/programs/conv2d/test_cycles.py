"""What a convolution takes: sanity rules that hold for every layer."""

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings, strategies as st

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from ops.planners.conv.lower_bounds import ConvTimes, LowerBounds
from ops.programs.conv2d.block_costs import ConvCosts, gathering_cores
from ops.programs.conv2d.cycles import conv_cycles, least_cycles, time_conv
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH
from ops.programs.kernel_costs import TransferCosts
from tests.ops.programs.conv2d.convolutions import SPECS, conv, total
from tests.ttsim.study.tune.tuned_calls import question


@st.composite
def convolutions(draw, spec=None):
    spec = spec or draw(st.sampled_from(SPECS))
    return spec, {
        "scheme": draw(st.sampled_from([HEIGHT, BLOCK, WIDTH])),
        "channels": (32 * draw(st.integers(1, 16)), 32 * draw(st.integers(1, 16))),
        "side": draw(st.integers(8, 40)),
        "kernel": draw(st.sampled_from([1, 3, 4])),
        "stride": draw(st.sampled_from([None, 2])),
        "fidelity_phases": draw(st.integers(1, 4)),
        "bias": draw(st.booleans()),
        "untilize_out": draw(st.booleans()),
        "packer_l1_acc": draw(st.booleans()),
        "weight_format": draw(st.sampled_from([BFLOAT16, BFLOAT8_B])),
    }


@settings(max_examples=25, deadline=None)
@given(convolutions(), st.data())
def test_less_to_work_with_is_never_faster(drawn, data):
    spec, facts = drawn
    op = conv(spec, **facts)
    cycles = conv_cycles(op, spec)
    name = data.draw(st.sampled_from([field.name for field in fields(spec.costs_of(ConvCosts))]))
    for worse in (
        spec.replace(**{f"conv_costs_{name}": 2.0 * getattr(spec.costs_of(ConvCosts), name)}),
        spec.replace(noc_link_share=0.5 * spec.noc.link_share),
    ):
        assert total(worse, facts) >= cycles.cycles
    assert 0 <= cycles.contention_cycles <= cycles.cycles
    for option in ("act_double_buffer", "weights_double_buffer"):
        assert total(spec, facts, **{option: True}) <= cycles.cycles * (1 + 1e-12)
    on_rows = facts | {"scheme": HEIGHT}
    fewer = spec.replace(grid_rows=data.draw(st.integers(1, spec.grid.rows - 1)))
    saved = spec.costs_of(TransferCosts).multicast_receiver_cycles * spec.grid.cores * (facts["kernel"] + 1)
    assert total(fewer, on_rows) >= total(spec, on_rows) - saved
    # The report is consistent.
    stages = cycles.slowest.stages
    assert all(stage.busy_cycles >= 0 and stage.stall_cycles >= 0 for stage in stages)
    assert 0 < cycles.useful_flops <= cycles.issued_flops
    assert cycles.cores == op.layout.config.cores.union(op.layout.out_config.cores).num_cores()
    assert cycles.bound_by in {stage.stage for stage in stages}
    working = {stage.stage for group in cycles.groups for stage in group.stages if stage.busy_cycles > 0}
    assert cycles.working == working
    assert sum(stage.critical_cycles for stage in stages) == pytest.approx(cycles.cycles)
    for group in cycles.groups:
        assert sum(stage.critical_cycles for stage in group.stages) == pytest.approx(group.cycles)
    assert sum(moved.dram_bytes for moved in cycles.moved) == cycles.dram_read_bytes
    assert sum(moved.network_bytes for moved in cycles.moved) == cycles.network_bytes


@pytest.mark.parametrize("scheme", ["HEIGHT_SHARDED", "BLOCK_SHARDED", "WIDTH_SHARDED"])
@pytest.mark.parametrize("rows", [0, 32])
def test_the_bound_is_below_the_walk_and_near(scheme, rows):
    """The bound of a program is that of its busiest processor."""
    asked = question("l1")
    spec, config = asked.snapshot.machine.spec, asked.call.conv_config
    layout = type(asked.call.input.spec.memory_config.memory_layout)[scheme]
    call = replace(asked.call, conv_config=replace(config, shard_layout=layout, act_block_h_override=rows))
    ((op, steps, count),) = LowerBounds(ConvTimes(spec), 1_300_000).of(call).programs
    assert count == 1
    walked = time_conv(op, spec).end.cycles
    assert 0.3 * walked < least_cycles(op, steps) <= walked


def test_cores_away_from_the_origin_gather_as_those_at_it():
    """The last of four rows of cores has outputs in a part of its slice, wherever the rows begin."""
    op = conv(SPECS[0], scheme=BLOCK, channels=(64, 64), side=9, kernel=3)
    config = op.layout.config
    moved = CoreRangeSet([CoreRange(*(CoreCoord(core.x, core.y + 1) for core in (each.start, each.end)))
                          for each in config.cores.ranges])  # fmt: skip
    away = replace(op, layout=replace(op.layout, config=config._replace(cores=moved)))
    shares = {share: cores.num_cores() for share, cores in gathering_cores(op).items()}
    assert len(shares) > 1
    assert {share: cores.num_cores() for share, cores in gathering_cores(away).items()} == shares
