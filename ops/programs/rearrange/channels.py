"""What programs take that put channels last or first, in shards, and what their works mean.

Composed of measured actions: sticks are gathered, tilized, turned while they are untilized, and copied within the core.
The whole is not measured. Source of the order of work: tt-metal 0.81.1 (experimental/cnn).
"""

from typing import Final

from device.memory.memory_config import TILE, BufferType
from device.numbers.block_floats import div_up
from device.numbers.formats import BFLOAT16
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles, Stage
from ops.op_model import CyclesContext, Description, Detail, Ends, OpModel, values_of_first
from ops.programs.buffer_shapes import alike_cycles, pipelined_cycles
from ops.programs.kernel_costs import (
    ComputeCosts,
    TransferCosts,
    local_sticks_cycles,
    tilize_tile_cycles,
    untilize_tile_cycles,
    waited_read_cycles,
)
from ops.programs.rearrange.buffers import CHW_TILES, hwc_block
from ops.programs.rearrange.work import ChannelsFirst, ChannelsLast, channels_first, channels_last

WRITERS: Final = 2  # processors that share the tiles that were turned
CHW_BATCH: Final = CHW_TILES // 2  # tiles that are turned at once when channels are put first


def channels_last_cycles(work: ChannelsLast, ends: Ends, reading: CyclesContext) -> OperationCycles:
    """Block by block, each in one piece: a row of pixels of each channel is read, tilized, turned, and copied."""
    spec = reading.spec
    shards = ends.written.shards
    pixels, channels = shards.shape
    block = hwc_block(pixels)
    tiles, blocks = div_up(block, TILE), div_up(pixels, block)
    data_format = ends.read.data_format
    row_bytes = block * (data_format.element_bytes or 0)
    in_dram = ends.read.memory_config.buffer_type is BufferType.DRAM
    read = waited_read_cycles(spec, row_bytes, in_dram=in_dram)
    issue = spec.costs_of(TransferCosts).read_issue_cycles
    read += (work.shape[2] - 1) * max(issue, row_bytes / spec.noc.link_bytes_per_cycle)
    tilized = spec.costs_of(ComputeCosts).tilize_call_cycles + tiles * tilize_tile_cycles(spec, data_format, BFLOAT16)
    turned = untilize_tile_cycles(spec, 1)
    stick_bytes = channels * (data_format.element_bytes or 0)
    copied = local_sticks_cycles(spec, TILE, stick_bytes)
    of_block = read + tilized + turned + max((tiles - 1) * turned, div_up(tiles, WRITERS) * copied)
    busy = {
        Stage.READER: blocks * read,
        Stage.TILIZE: blocks * tilized,
        Stage.UNTILIZE: blocks * tiles * turned,
        Stage.WRITER: blocks * div_up(tiles, WRITERS) * copied,
    }
    return alike_cycles(shards.grid, blocks * of_block, busy, spec)


def channels_first_cycles(work: ChannelsFirst, ends: Ends, reading: CyclesContext) -> OperationCycles:
    """A few tiles after the others: turned, and their channels copied to their rows meanwhile."""
    spec = reading.spec
    shards = ends.read.shards
    tiles = div_up(shards.shape[0], TILE) * div_up(shards.shape[1], TILE)
    batches = div_up(tiles, CHW_BATCH)
    turned = CHW_BATCH * untilize_tile_cycles(spec, 1)
    stick_bytes = TILE * (BFLOAT16.element_bytes or 0)
    copied = local_sticks_cycles(spec, CHW_BATCH * work.shape[-1], stick_bytes)
    body = pipelined_cycles((turned, copied), batches)
    busy = {Stage.UNTILIZE: batches * turned, Stage.WRITER: batches * copied}
    return alike_cycles(shards.grid, body, busy, spec)


def _describe_last(work: ChannelsLast, ends: Ends, spec: DeviceSpec) -> Description:
    pixels = ends.written.shards.shape[0]
    block = hwc_block(pixels)
    told = f"{pixels:,} pixels of a core in blocks of {block:,}"
    return Description(
        facts=(Detail(name="block_pixels", value=block, text=told),),
        stages={
            Stage.READER: "a block of pixels is read channel by channel",
            Stage.TILIZE: "channels become tiles",
            Stage.UNTILIZE: "tiles are turned and become rows",
            Stage.WRITER: "two processors copy pixels out of the tiles, stick by stick",
        },
        composed_of="reading, tilizing, untilizing and copying sticks as in other programs",
    )


def _describe_first(work: ChannelsFirst, ends: Ends, spec: DeviceSpec) -> Description:
    return Description(
        stages={
            Stage.UNTILIZE: "tiles are turned and become rows",
            Stage.WRITER: "rows of channels are copied where they belong, stick by stick",
        },
        composed_of="untilizing and copying sticks as in other programs",
    )


OP_MODELS: Final = (
    OpModel(
        work=ChannelsLast,
        values=values_of_first(channels_last),
        cycles=channels_last_cycles,
        account=_describe_last,
    ),
    OpModel(
        work=ChannelsFirst,
        values=values_of_first(channels_first),
        cycles=channels_first_cycles,
        account=_describe_first,
    ),
)
