"""The program that sums images over rows and columns (tt-metal 0.81.1, integral_image): eight cores, a fixed plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType
from device.numbers.formats import Array, DataFormat, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.time.network import shared_cycles
from device.time.stages import Stage
from ops.op_model import Description, Ends, ValuesContext, given
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import tile_buffer
from ops.programs.data_movement.movement import Composed, DataMovement
from ops.programs.reduction.reduce import described, packed

BLOCK: Final = 48  # tiles along the second axis that are summed together
COLUMNS, ROWS = 2, 4  # of cores, of which each sums one tile of channels
BUFFERS: Final = {
    "zeros": 2, "tiles": BLOCK, "total": 2, "summed": BLOCK, "joined": BLOCK, "columns": BLOCK, "sums": BLOCK,
    "last": 2, "above": BLOCK,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegralImage(DataMovement):
    """Every element of [1, W, H, C] is the sum of all up to it along the second and the third axis."""

    data_format: DataFormat

    @property
    def fp32_dest(self) -> bool:
        """Whether Dst has 32 bits."""
        return self.data_format.element_bytes == 4

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """Tiles added along the second axis in blocks, then within tiles along the third, then across tiles."""
        source: Array = given(inputs[0])[0]
        sums, last = np.empty_like(source), None
        for start in range(0, len(source), BLOCK):
            total = np.zeros_like(source[0])
            for index in range(start, min(start + BLOCK, len(source))):
                total = self._added(source[index], total, context)
                sums[index] = total if last is None else self._added(last, total, context)
            last = sums[index]
        result: Array = np.empty_like(source)
        above = None
        for row in range(0, source.shape[1], TILE):
            columns = np.cumsum(sums[:, row : row + TILE].astype(np.float32), axis=1, dtype=np.float32)
            tiles = packed(columns, self.data_format, context.arithmetic, fp32_dest=self.fp32_dest)
            if above is not None:
                tiles = self._added(tiles, np.broadcast_to(above, tiles.shape), context)
            result[:, row : row + TILE] = tiles
            above = tiles[:, -1:]
        return result.reshape(1, *result.shape)

    def _added(self, first: Array, second: Array, context: ValuesContext) -> Array:
        """The sum of two operands by the matrix unit, in storage of the format."""
        arithmetic = context.arithmetic
        left, right = (
            arithmetic.unpack(np.ascontiguousarray(side, np.float32), self.data_format, fp32_dest=self.fp32_dest)
            for side in (first, second)
        )
        total = arithmetic.add_bias(left, right, fp32_dest=self.fp32_dest)
        return packed(total, self.data_format, arithmetic, fp32_dest=self.fp32_dest)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed:
        """A core's tiles; each passes through Dst three to five times, and is awaited on both sides."""
        _, width, height, _ = ends.read.padded_shape
        rows, size = height // TILE, ends.read.data_format.tile_bytes
        tiles, below, later = width * rows, width * (rows - 1), max(0, width - BLOCK) * rows
        in_dram = [tensor.memory_config.buffer_type is BufferType.DRAM for tensor in (ends.read, ends.written)]
        read = [kernel_costs.waited_read_cycles(spec, size, in_dram=there) for there in in_dram]
        write = kernel_costs.waited_write_cycles(spec, size, in_dram=in_dram[1])
        costs = spec.costs_of(kernel_costs.ComputeCosts)
        unpack, pack = kernel_costs.unpack_tile_cycles(spec, size), kernel_costs.pack_tile_cycles(spec, size)
        alone = 2 * (unpack + pack) + costs.add_tile_cycles  # the total is packed and unpacked before the next sum
        adding = tiles * alone + (later + below) * max(unpack, costs.add_tile_cycles, pack)
        computing = adding + tiles * max(unpack, costs.vector_tile_cycles, pack)
        reading, writing = tiles * read[0], tiles * write + below * read[1]
        moved = COLUMNS * ROWS * size
        from_dram = moved * (in_dram[0] * tiles + in_dram[1] * below)
        to_dram = moved * in_dram[1] * tiles
        shared = shared_cycles(spec, from_dram + to_dram)
        return Composed(
            cores=integral_cores(),
            body_cycles=max(read[0] + max(reading, computing, writing) + write, shared),
            stages={
                Stage.READER: (reading, "tiles are read, each waited for"),
                Stage.MATH: (computing, "tiles are added along both axes and packed after each addition"),
                Stage.WRITER: (writing, "sums above are read and sums are written, each waited for"),
                Stage.DRAM: (shared, "DRAM delivers or takes the pages of all cores"),
            },
            steps="reading, adding, packing and writing of tiles",
            dram_read_bytes=from_dram,
            dram_written_bytes=to_dram,
        )

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """A scan, whose numbers were never compared with recordings."""
        return described(DataMovement.describe(self, ends, spec))


def integral_cores() -> CoreRangeSet:
    """The cores that every call takes."""
    return CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(COLUMNS - 1, ROWS - 1)))


def channels_summed(tensor: TensorSpec) -> bool:
    """Whether each core has a tile of channels; fewer make cores write others' sums, and more are left out."""
    return div_up(tensor.shape[-1], TILE) == COLUMNS * ROWS


def integral_buffers(tensor: TensorSpec) -> tuple[CircularBuffer, ...]:
    """Blocks of tiles between the steps, and single tiles that steps keep."""
    cores = integral_cores()
    return tuple(tile_buffer(name, count, tensor.data_format, cores) for name, count in BUFFERS.items())
