"""Cycles of output phases: the micro-op's steps in an order of their own, added up by hand."""

from dataclasses import replace

import pytest

from device.time.stages import Stage
from ops.programs.conv2d.block_costs import conv_steps
from ops.programs.phase_conv2d.cycles import phase_cycles, time_phases

SCHEMES = ["HEIGHT_SHARDED", "BLOCK_SHARDED", "WIDTH_SHARDED"]


def test_two_groups_one_after_the_other(planned):
    """8 x 8 pixels, single buffers: weights of the second group wait for the products of the first."""
    result = planned()
    first, second = (conv_steps(part.conv, result.spec) for part in result.op.parts)
    finish = 2 * conv_steps(replace(result.op.parts[0].conv, layout=replace(
        result.op.parts[0].conv.layout, shards=replace(result.op.parts[0].conv.layout.shards, out_width=32)
    )), result.spec).finish.cycles  # fmt: skip
    timing = time_phases(result.op, result.spec)
    writes = timing.cores[0].second.busy_cycles()[Stage.WRITER] / 2
    (read, shipment), start = first.weights, first.start.cycles
    notice, send, arrive = shipment.notice.cycles, shipment.send.cycles, shipment.arrive.cycles
    tilized = start + first.read.cycles + first.tilize.cycles
    sent = start + max(read.cycles, notice) + send
    own, others = (max(tilized, there) + first.matmul.cycles for there in (sent, sent + arrive))
    sent_again = max(own + read.cycles, others + notice) + send
    there = sent_again + arrive
    placed = max(there, others + finish) + writes
    again = max(others + finish, tilized + second.read.cycles) + second.tilize.cycles
    products = max(again, there) + second.matmul.cycles
    assert timing.end.cycles == pytest.approx(max(products, placed) + finish + writes)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_bias_is_read_once(planned, scheme):
    plain, biased = (planned((16, 16), channels=(64, 64), scheme=scheme, bias=one) for one in (False, True))
    readers = 1 if scheme == "HEIGHT_SHARDED" else biased.op.layout.out_config.channel_cores
    more = phase_cycles(biased.op, biased.spec).dram_read_bytes - phase_cycles(plain.op, plain.spec).dram_read_bytes
    assert more == readers * biased.op.layout.shards.out_col_tiles * 2048


def test_outputs_without_taps_are_finished_too(planned):
    result = planned(kernel=(1, 1), stride=(2, 2), bias=True)
    stages = {stage.stage: stage.busy_cycles for stage in phase_cycles(result.op, result.spec).groups[0].stages}
    alone = planned(kernel=(2, 2), stride=(2, 2), bias=True)
    whole = {stage.stage: stage.busy_cycles for stage in phase_cycles(alone.op, alone.spec).groups[0].stages}
    assert stages[Stage.UNTILIZE] == whole[Stage.UNTILIZE]
    assert stages[Stage.MATH] < whole[Stage.MATH]
