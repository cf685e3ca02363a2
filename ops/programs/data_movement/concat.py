"""Concatenation: the operation, its buffers, its cycles and its values."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from device.cores import CoreRange, CoreRangeSet, first_cores
from device.host.threads import parts_of
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, Array, bit_patterns, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles, Stage
from ops.builder import PlanTensor
from ops.op_model import CyclesContext, Description, Ends, ValuesContext, given
from ops.programs.buffer_shapes import (
    BUFFERING,
    page_cores,
    paged_buffer,
    row_bytes,
    shard_view,
    spread_evenly,
    tile_buffer,
    uniform_cycles,
    volume_tiles,
)
from ops.programs.data_movement.movement import DataMovement, Movement, copy_movement
from ops.programs.kernel_costs import ComputeCosts, convert_tile_cycles, local_sticks_cycles

COPIED_TOGETHER: Final = 1 << 20  # numbers that one thread copies at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Concatenate(DataMovement):
    """Tensors joined along an axis."""

    axis: int
    shapes: tuple[tuple[int, ...], ...]
    # Parts that each is cut into along the axis: first the first parts of all, then the second, and so on
    groups: int = 1

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The tensors, or their parts in turn, along the axis."""
        lead, total = prod(self.shapes[0][: self.axis]), sum(shape[self.axis] for shape in self.shapes)
        dtype = np.result_type(*(given(tensor).dtype for tensor in inputs))
        rows = [bit_patterns(given(tensor).astype(dtype, copy=False)).reshape(lead, -1) for tensor in inputs]
        shape = (*self.shapes[0][: self.axis], total, *self.shapes[0][self.axis + 1 :])
        result = np.empty(shape, dtype)
        target = bit_patterns(result).reshape(lead, -1)

        def copy(part: slice) -> None:
            end = 0
            for group in range(self.groups):
                for tensor in rows:
                    width = tensor.shape[1] // self.groups
                    target[part, end : end + width] = tensor[part, group * width : (group + 1) * width]
                    end += width

        context.arithmetic.each(copy, parts_of(lead, target.shape[1], COPIED_TOGETHER))
        return result

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """A copy of the result from where the first tensor lies; from the result's own place if that is in shards."""
        place = written.memory_config if read.memory_config.is_sharded() else read.memory_config
        return copy_movement(TensorSpec(written.shape, written.data_format, written.layout, place), written, spec)

    def cycles(self, ends: Ends, context: CyclesContext) -> OperationCycles:
        """By where the tensors lie, and in which layout."""
        if not _joins_shards(ends):
            return DataMovement.cycles(self, ends, context)
        copying = _turned if is_turned(self, ends) else _copied
        return uniform_cycles(ends.written.shards.grid, *copying(self, ends, context.spec), context.spec)

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """What its stages do."""
        if not _joins_shards(ends):
            return DataMovement.describe(self, ends, spec)
        return TURNED if is_turned(self, ends) else COPIED


TURNED: Final = Description(
    stages={
        Stage.READER: "rows of turned tiles are copied side by side within the core",
        Stage.MATH: "tiles are turned before that, and turned back after it",
    },
    composed_of="unpacking, packing and copying tiles as in other programs",
)
COPIED: Final = Description(
    stages={
        Stage.READER: "one processor copies half of the sticks within the core",
        Stage.SECOND_READER: "the other copies the other half",
    },
    composed_of="copying sticks within a core as in other programs",
)


def shard_views(inputs: Sequence[PlanTensor], result: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Views of the shards of all inputs and of the result."""
    return tuple(shard_view(f"shards_{number}", tensor, spec) for number, tensor in enumerate([*inputs, result]))


def turned_buffers(inputs: Sequence[PlanTensor], result: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Buffers for two HEIGHT-sharded tensors in tiles: views, and rows of tiles that are transposed, joined, put back.

    bfloat8_b is bfloat16 while it is transposed.
    """
    views, data_format = shard_views(inputs, result, spec), result.spec.data_format
    turned, cores = BFLOAT16 if data_format == BFLOAT8_B else data_format, views[0].cores
    widths = [tensor.spec.shards.shape[1] // TILE for tensor in (*inputs, result)]
    rows = [tile_buffer(f"turned_{number}", tiles, turned, cores) for number, tiles in enumerate(widths)]
    return (*views, *rows, tile_buffer("turned_back", widths[-1], data_format, cores))


def page_buffers(inputs: Sequence[TensorSpec], result: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Two pages in transit through each core, on as many cores as there are pages, column by column.

    Pages are aligned as in DRAM if the first tensor or the result lies in DRAM.
    """
    page_bytes, pages = row_bytes(result), result.matrix[0]
    if result.layout is Layout.TILE:
        page_bytes, pages = result.data_format.tile_bytes, volume_tiles(result)
    in_dram = any(tensor.memory_config.buffer_type is BufferType.DRAM for tensor in (inputs[0], result))
    aligned = round_up(page_bytes, (spec.dram if in_dram else spec.l1).alignment_bytes)
    return (paged_buffer("pages", BUFFERING, aligned, result.data_format, page_cores(pages, spec.grid)),)


def ragged_buffers(inputs: Sequence[TensorSpec], result: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Buffers for columns that end within tiles: a row of tiles is untilized, joined stick by stick and tilized."""
    read, (rows, written) = sum(tensor.matrix[1] // TILE for tensor in inputs), (side // TILE for side in result.matrix)
    used, _ = spread_evenly(rows, spec.grid.cores)
    chosen = first_cores(used, spec.grid.cols, spec.grid.rows, row_wise=False)
    cores = CoreRangeSet([CoreRange(core, core) for core in chosen.cores(row_major=False)])
    sizes = {"tiles": BUFFERING * read, "sticks": read, "joined": written, "result": BUFFERING * written}
    return tuple(tile_buffer(name, tiles, result.data_format, cores) for name, tiles in sizes.items())


def is_turned(op: Concatenate, ends: Ends) -> bool:
    """Whether tiles are transposed: tiles of two HEIGHT-sharded tensors that are joined side by side."""
    by_height = ends.written.memory_config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    side_by_side = len(op.shapes) == 2 and op.axis == len(op.shapes[0]) - 1
    return by_height and side_by_side and ends.written.layout is Layout.TILE


def _copied(op: Concatenate, ends: Ends, spec: DeviceSpec) -> tuple[float, dict[Stage, float]]:
    """Sticks or tiles of every tensor in turn, half of them by each of two kernels, or all by the only processor."""
    kernels = (Stage.READER, Stage.SECOND_READER)[: spec.data_movement.processors]
    (rows, columns), data_format = ends.written.shards.shape, ends.written.data_format
    element_bytes, copying = data_format.element_bytes or 0, 0.0
    together = sum(shape[op.axis] for shape in op.shapes)
    for shape in op.shapes:
        part = shape[op.axis] / together
        if ends.written.layout is Layout.TILE:
            pages, page_bytes = round(rows * columns * part / TILE**2), float(data_format.tile_bytes)
        elif op.axis == len(shape) - 1:
            pages, page_bytes = rows * op.groups, columns * part / op.groups * element_bytes
        else:
            pages, page_bytes = round(rows * part), columns * element_bytes
        copying += local_sticks_cycles(spec, div_up(pages, len(kernels)), page_bytes)
    return copying, dict.fromkeys(kernels, copying)


def _turned(op: Concatenate, ends: Ends, spec: DeviceSpec) -> tuple[float, dict[Stage, float]]:
    """Each row of tiles is transposed, joined by a reader and transposed back, in sequence."""
    rows, columns = ends.written.shards.shape
    tile_rows, tiles = div_up(rows, TILE), div_up(columns, TILE)
    data_format = ends.written.data_format
    between = BFLOAT16 if data_format.is_block else data_format
    transposing, transposing_back = (
        convert_tile_cycles(spec, *formats) for formats in ((data_format, between), (between, data_format))
    )
    computed = 2 * spec.costs_of(ComputeCosts).block_cycles + tiles * (transposing + transposing_back)
    together = sum(shape[op.axis] for shape in op.shapes)
    widths = [tiles * shape[op.axis] / together * between.tile_bytes / op.groups for shape in op.shapes]
    copied = sum(local_sticks_cycles(spec, op.groups, width) for width in widths)
    return tile_rows * (computed + copied), {Stage.READER: tile_rows * copied, Stage.MATH: tile_rows * computed}


def _joins_shards(ends: Ends) -> bool:
    return ends.read.memory_config.is_sharded() and ends.written.memory_config.is_sharded()
