"""Programs that move channels of shards last or first: operations, buffers, cycles and values.

Cycles are composed of measured steps: sticks are gathered, tilized, transposed while they are untilized, and copied
within the core. The whole is not measured. Source: tt-metal 0.81.1 (experimental/cnn), compared with recorded plans.
"""

from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from device.matrix_unit.packer import typecast
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import BFLOAT16, Array, DataFormat, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.time.stages import Stage
from ops.builder import PlanTensor
from ops.op_model import Detail, Ends
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import buffer, in_dram, pipelined_cycles, row_bytes, sized_buffers
from ops.programs.data_movement.movement import Composed, DataMovement

HWC_BLOCK = 1024  # minimum of pixels that are transposed at once, if shards are wider
WRITERS: Final = 2  # processors that share the transposed tiles
CHW_TILES = 16  # tiles on their way through a core that puts channels first
CHW_BATCH: Final = CHW_TILES // 2  # tiles that are transposed at once for channels first


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelsLast(DataMovement):
    """[1, B, C, H*W] becomes [1, 1, B*H*W, channels] in another format, with zeros after the channels."""

    shape: tuple[int, ...]
    channels: int
    source_format: DataFormat
    data_format: DataFormat

    def moved(self, values: Array) -> Array:
        """Pixels of all images, channels last."""
        _, batch, channels, pixels = self.shape
        rows = values.reshape(batch, channels, pixels).transpose(0, 2, 1).reshape(1, 1, batch * pixels, channels)
        filled = np.pad(rows, ((0, 0), (0, 0), (0, 0), (0, self.channels - channels)))
        return typecast(filled, self.source_format, self.data_format)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """Block by block: a row of pixels of each channel is read, tilized, transposed, and copied."""
        shards, data_format = ends.written.shards, ends.read.data_format
        element_bytes, (pixels, channels) = data_format.element_bytes or 0, shards.shape
        block = hwc_block(pixels)
        tiles, blocks, line_bytes = div_up(block, TILE), div_up(pixels, block), block * element_bytes
        read = kernel_costs.waited_read_cycles(spec, line_bytes, in_dram=in_dram(ends.read))
        issue = spec.costs_of(kernel_costs.TransferCosts).read_issue_cycles
        read += (self.shape[2] - 1) * max(issue, line_bytes / spec.noc.link_bytes_per_cycle)
        tilized = kernel_costs.tilize_block_cycles(spec, tiles, data_format, BFLOAT16)
        turned = kernel_costs.untilize_tile_cycles(spec, 1)
        copied = div_up(tiles, WRITERS) * kernel_costs.local_sticks_cycles(spec, TILE, channels * element_bytes)
        text = f"{pixels:,} pixels of a core in blocks of {block:,}"
        return Composed(
            cores=shards.grid,
            body_cycles=blocks * (read + tilized + turned + max((tiles - 1) * turned, copied)),
            stages={
                Stage.READER: (blocks * read, "a block of pixels is read channel by channel"),
                Stage.TILIZE: (blocks * tilized, "channels become tiles"),
                Stage.UNTILIZE: (blocks * tiles * turned, "tiles are turned and become rows"),
                Stage.WRITER: (blocks * copied, "two processors copy pixels out of the tiles, stick by stick"),
            },
            steps="reading, tilizing, untilizing and copying sticks",
            dram_read_bytes=row_bytes(ends.read, prod(self.shape)) if in_dram(ends.read) else 0,
            details=(Detail(name="block_pixels", value=block, text=text),),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelsFirst(DataMovement):
    """[1, 1, H*W, C] becomes [1, 1, C, H*W] in another format."""

    shape: tuple[int, ...]
    source_format: DataFormat
    data_format: DataFormat

    def moved(self, values: Array) -> Array:
        """Pixels last."""
        turned = np.ascontiguousarray(values.reshape(self.shape).swapaxes(-1, -2))
        return typecast(turned, self.source_format, self.data_format)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """A few tiles at a time: transposed, while channels of earlier tiles are copied to their rows."""
        shards = ends.read.shards
        batches = div_up(div_up(shards.shape[0], TILE) * div_up(shards.shape[1], TILE), CHW_BATCH)
        turned = CHW_BATCH * kernel_costs.untilize_tile_cycles(spec, 1)
        stick_bytes = TILE * (BFLOAT16.element_bytes or 0)
        copied = kernel_costs.local_sticks_cycles(spec, CHW_BATCH * self.shape[-1], stick_bytes)
        return Composed(
            cores=shards.grid,
            body_cycles=pipelined_cycles((turned, copied), batches),
            stages={
                Stage.UNTILIZE: (batches * turned, "tiles are turned and become rows"),
                Stage.WRITER: (batches * copied, "rows of channels are copied where they belong, stick by stick"),
            },
            steps="untilizing and copying sticks",
        )


def hwc_block(pixels: int) -> int:
    """Number of pixels that a core transposes at once, out of its ``pixels``."""
    return next((n for n in range(HWC_BLOCK, pixels + 1, TILE) if pixels % n == 0), pixels)


def hwc_buffers(source: PlanTensor, target: PlanTensor) -> tuple[CircularBuffer, ...]:
    """Circular buffers of a program that puts channels last: shards, gathered pixels, tiles in three stages, result."""
    data_format, cores, channels = source.spec.data_format, target.spec.shards.grid, source.spec.shape[2]
    (rows, columns), block, reads_dram = (
        source.spec.shards.shape,
        hwc_block(target.spec.shards.shape[0]),
        in_dram(source.spec),
    )
    in_bytes = row_bytes(source.spec, (channels if reads_dram else rows) * columns)
    tiles = div_up(block, TILE) * BFLOAT16.tile_bytes
    return (
        buffer("input", in_bytes, data_format, cores, None if reads_dram else source.name),
        buffer("gathered", row_bytes(source.spec, channels * block), data_format, cores),
        *sized_buffers(dict.fromkeys(("tiled", "turned_0", "turned_1"), tiles), BFLOAT16, cores),
        buffer("output", output_bytes(source.spec, target.spec), data_format, cores, target.name),
    )


def output_bytes(source: TensorSpec, target: TensorSpec) -> int:
    """Bytes of the buffer on a channels-last shard; the library uses the element size of the source."""
    return row_bytes(source, prod(target.shards.shape))


def chw_buffers(source: PlanTensor, target: PlanTensor) -> tuple[CircularBuffer, ...]:
    """Circular buffers of a program that puts channels first: both shards, and tiles on their way."""
    cores = source.spec.shards.grid
    in_bytes = prod(source.spec.shards.shape) // TILE**2 * source.spec.data_format.tile_bytes
    out_bytes = row_bytes(target.spec, prod(target.spec.shards.shape))
    return (
        buffer("input", in_bytes, source.spec.data_format, cores, source.name),
        buffer("output", out_bytes, target.spec.data_format, cores, target.name),
        buffer("turned", CHW_TILES * BFLOAT16.tile_bytes, BFLOAT16, cores),
    )
