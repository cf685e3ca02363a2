"""Channels last and first in time, by hand."""

import pytest

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout as Scheme
from device.numbers.formats import BFLOAT8_B, BFLOAT16
from device.time.stages import Stage
from ops.op_model import CyclesContext, Ends
from ops.programs.data_movement.channels import (
    ChannelsFirst,
    ChannelsLast,
    hwc_block,
)
from ops.programs.kernel_costs import waited_read_cycles
from tests.ops.programs.data_movement.round_figures import ROUND as SPEC

WIRE = SPEC.noc.link_bytes_per_cycle  # 32
CORES = first_cores(4, 8, 8)
READING = CyclesContext(spec=SPEC, contention=True)


def tensor(shape, scheme, shard, *, layout=Layout.ROW_MAJOR, fmt=BFLOAT16):
    return TensorSpec(shape, fmt, layout, MemoryConfig(scheme, BufferType.L1, ShardSpec(CORES, shard)))


@pytest.mark.parametrize(("pixels", "block"), [(1200, 1200), (4800, 1600), (2048, 1024), (64, 64)])
def test_blocks_divide_the_pixels_of_a_core(pixels, block):
    assert hwc_block(pixels) == block


def test_channels_last_takes_block_by_block():
    ends = Ends(
        read=tensor((1, 1, 3, 8192), Scheme.WIDTH_SHARDED, (3, 2048)),
        written=tensor((1, 1, 8192, 8), Scheme.HEIGHT_SHARDED, (2048, 8)),
    )
    op = ChannelsLast(shape=(1, 1, 3, 8192), channels=8, source_format=BFLOAT16, data_format=BFLOAT16)
    cycles = op.cycles(ends, READING)
    read = waited_read_cycles(SPEC, 2048, in_dram=False) + 2 * 2048 / WIRE  # three rows of 1024 pixels
    tilized = 50 + 32 * (3 + 32 + 32)
    copied = 31 * 20 + 200 + 16 / WIRE  # the pixels of a tile, 8 channels each
    assert cycles.cycles == pytest.approx(500 + 2 * (read + tilized + 70 + 16 * copied))
    assert cycles.bound_by is Stage.WRITER


def test_channels_first_turns_while_it_copies():
    ends = Ends(
        read=tensor((1, 1, 2048, 32), Scheme.HEIGHT_SHARDED, (512, 32), layout=Layout.TILE, fmt=BFLOAT8_B),
        written=tensor((1, 1, 1, 2048), Scheme.WIDTH_SHARDED, (1, 512)),
    )
    op = ChannelsFirst(shape=(1, 1, 2048, 1), source_format=BFLOAT8_B, data_format=BFLOAT16)
    cycles = op.cycles(ends, READING)
    copied = 7 * 20 + 200 + 64 / WIRE  # a channel of eight tiles
    assert cycles.cycles == pytest.approx(500 + 2 * 8 * 70 + copied)  # two batches of eight tiles
    assert cycles.bound_by is Stage.UNTILIZE


def test_both_say_what_they_are_composed_of():
    ends = Ends(
        read=tensor((1, 1, 3, 256), Scheme.WIDTH_SHARDED, (3, 64)),
        written=tensor((1, 1, 256, 8), Scheme.HEIGHT_SHARDED, (64, 8)),
    )
    for op in (
        ChannelsLast(shape=(1, 1, 3, 256), channels=8, source_format=BFLOAT16, data_format=BFLOAT16),
        ChannelsFirst(shape=(1, 1, 256, 1), source_format=BFLOAT16, data_format=BFLOAT16),
    ):
        description = op.describe(ends, SPEC)
        assert (description.measured_as, bool(description.composed_of)) == ("", True)
