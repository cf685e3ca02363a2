"""Channels last and first in time, by hand."""

import pytest

from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.time.stages import Stage
from ops.op_model import Ends
from ops.programs.data_movement.channels import ChannelsFirst, ChannelsLast, hwc_block
from ops.programs.kernel_costs import waited_read_cycles
from tests.build import busy, op_cycles, tensor_spec
from tests.ops.programs.data_movement.round_figures import ROUND as SPEC

WIRE = SPEC.noc.link_bytes_per_cycle  # 32


@pytest.mark.parametrize(("pixels", "block"), [(1200, 1200), (4800, 1600), (2048, 1024), (64, 64)])
def test_blocks_divide_the_pixels_of_a_core(pixels, block):
    assert hwc_block(pixels) == block


# three rows of 1024 pixels, and the pixels of a tile, 8 channels each
READ = waited_read_cycles(SPEC, 2048, in_dram=False) + 2 * 2048 / WIRE
COPIED = 31 * 20 + 200 + 16 / WIRE


@pytest.mark.parametrize(
    ("op", "read", "written", "cycles", "bound_by"),
    [
        (
            ChannelsLast(shape=(1, 1, 3, 8192), channels=8, source_format=BFLOAT16, data_format=BFLOAT16),
            "1x1x3x8192 width/3x2048/4",
            "1x1x8192x8 height/2048x8/4",
            2 * (READ + 50 + 32 * (3 + 32 + 32) + 70 + 16 * COPIED),
            Stage.WRITER,
        ),
        (  # two batches of eight tiles are turned; a channel of eight tiles is copied meanwhile
            ChannelsFirst(shape=(1, 1, 2048, 1), source_format=BFLOAT8_B, data_format=BFLOAT16),
            "1x1x2048x32 bfloat8_b tile height/512x32/4",
            "1x1x1x2048 width/1x512/4",
            2 * 8 * 70 + 7 * 20 + 200 + 64 / WIRE,
            Stage.UNTILIZE,
        ),
    ],
)
def test_channels_by_hand(op, read, written, cycles, bound_by):
    result = op_cycles(op, read, written, SPEC)
    assert result.cycles == pytest.approx(500 + cycles)
    assert result.bound_by is bound_by
    description = op.describe(Ends(read=tensor_spec(read), written=tensor_spec(written)), SPEC)
    assert set(busy(result)) == {Stage.START, *description.stages}
    assert (description.measured_as, bool(description.composed_of)) == ("", True)
