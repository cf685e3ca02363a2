"""Concatenation: the operation, its buffers, its cycles and its values."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import Final

import numpy as np

from device.cores import CoreRange, CoreRangeSet, first_cores
from device.host.threads import parts_of
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT16, Array, bit_patterns, div_up, round_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.time.links import spread_transfer
from device.time.network import hands
from device.time.stages import OperationCycles, Stage
from ops.builder import PlanTensor
from ops.op_model import Ends, ValuesContext, given
from ops.programs.buffer_shapes import (
    BUFFERING,
    in_dram,
    page_alignment_bytes,
    page_cores,
    paged_buffer,
    row_bytes,
    shard_view,
    spread_evenly,
    tile_buffer,
    volume_tiles,
)
from ops.programs.data_movement.movement import (
    Access,
    Composed,
    DataMovement,
    Movement,
    copy_movement,
    format_of_rows,
    pages_of,
    tile_writes,
)
from ops.programs.kernel_costs import ComputeCosts, convert_tile_cycles, local_sticks_cycles

COPIED_TOGETHER: Final = 1 << 20  # numbers that one thread copies at a time
RESULT_NUMBER: Final = 16  # of the circular buffer on the result's shards


@dataclass(frozen=True, slots=True, kw_only=True)
class Concatenate(DataMovement):
    """Tensors joined along an axis."""

    axis: int
    shapes: tuple[tuple[int, ...], ...]
    # Parts that each is cut into along the axis: first the first parts of all, then the second, and so on
    groups: int = 1
    cores: CoreRangeSet | None = None  # That may be used where pages are joined; None for all

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
        """A copy of the result from the first tensor's memory; from the result's own memory if that is sharded.

        The parts of a row come from all tensors and are awaited together.
        """
        place = written.memory_config if read.memory_config.is_sharded() else read.memory_config
        copied = copy_movement(written.changed(memory_config=place), written, spec, within=self.cores)
        reads, writes = copied.sides
        if written.layout is Layout.TILE or place.is_sharded() or written.memory_config.is_sharded():
            return copied
        parts = len(self.shapes) if self.axis == len(written.shape) - 1 else 1
        together = replace(
            reads,
            access=Access.BATCH,
            in_flight=parts,
            core_pages=reads.core_pages * parts,
            all_pages=reads.all_pages * parts,
            page_bytes=div_up(reads.page_bytes, parts),
        )
        return replace(copied, reads=together, writes=replace(writes, access=tile_writes(spec)))

    def cycles(self, ends: Ends, spec: DeviceSpec) -> OperationCycles:
        """Cycles of a copy, with the bytes read from the memory of each tensor."""
        timed = super(Concatenate, self).cycles(ends, spec)
        inputs, cores = (ends.read, *ends.others), timed.slowest.cores
        size = {place: sum(_bytes(each) for each in inputs if in_dram(each) is place) for place in (True, False)}
        if timed.transfers is None or size[True] == timed.dram_read_bytes:
            return timed
        reads = (
            spread_transfer(spec, cores, size[place], in_dram=place, writes=False) for place in size if size[place]
        )
        writes = spread_transfer(spec, cores, _bytes(ends.written), in_dram=in_dram(ends.written), writes=True)
        return replace(timed, dram_read_bytes=size[True], transfers=(*reads, writes))

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed | None:
        """The steps that join shards, by memory and layout of the tensors."""
        if not (ends.read.memory_config.is_sharded() and ends.written.memory_config.is_sharded()):
            return None
        return (_turned if is_turned(self, ends) else _copied)(self, ends, spec)


def _bytes(tensor: TensorSpec) -> int:
    """Bytes of all pages of a tensor."""
    return pages_of(tensor, 1).all_bytes


def shard_views(
    inputs: Sequence[PlanTensor], result: PlanTensor, spec: DeviceSpec, *, pair: bool = False
) -> tuple[CircularBuffer, ...]:
    """Views of the shards of all inputs and of the result; the programs for a pair of tensors have whole rows as pages.

    The pages of other programs are elements of rows in blocks, or parts that fill the rows of all tensors.
    """
    tensors = [*inputs, result]
    views = [shard_view(f"shards_{place}", tensor, spec) for place, tensor in enumerate(tensors)]
    if result.spec.layout is Layout.TILE:
        views = [view._replace(page_bytes=view.data_format.tile_bytes) for view in views]
    elif pair:
        rows = [tensor.spec.shards.shape[0] for tensor in tensors]
        views = [view._replace(page_bytes=view.size_bytes // row) for view, row in zip(views, rows, strict=True)]
    else:
        views = [view._replace(page_bytes=_part_bytes(inputs, result, spec)) for view in views]
    return (*views[:-1], views[-1]._replace(number=None if pair else RESULT_NUMBER))


def _part_bytes(inputs: Sequence[PlanTensor], result: PlanTensor, spec: DeviceSpec) -> int:
    """Bytes of an element of rows in blocks, or of a part that fills all rows.

    The library counts the result's row in elements where it takes it for bytes.
    """
    if result.spec.memory_config.memory_layout is TensorMemoryLayout.BLOCK_SHARDED:
        return row_bytes(result.spec, 1)
    rows = [row_bytes(tensor.spec, tensor.spec.shards.shape[1]) for tensor in inputs]
    return gcd(*(round_up(row, spec.l1.alignment_bytes) for row in (result.spec.shards.shape[1], *rows)))


def turned_buffers(inputs: Sequence[PlanTensor], result: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Buffers for two HEIGHT-sharded tensors in tiles: views, and rows of tiles that are transposed, joined, put back.

    bfloat8_b is bfloat16 while it is transposed.
    """
    views, data_format = shard_views(inputs, result, spec, pair=True), result.spec.data_format
    turned, cores = format_of_rows(data_format), views[0].cores
    widths = [tensor.spec.shards.shape[1] // TILE for tensor in (*inputs, result)]
    rows = [tile_buffer(f"turned_{number}", tiles, turned, cores) for number, tiles in enumerate(widths)]
    return (*views, *rows, tile_buffer("turned_back", widths[-1], data_format, cores))


def page_buffers(
    inputs: Sequence[TensorSpec], result: TensorSpec, spec: DeviceSpec, *, within: CoreRangeSet | None = None
) -> tuple[CircularBuffer, ...]:
    """Two pages in transit through each core, on as many cores as there are pages, column by column.

    Pages are aligned as in DRAM if the first tensor or the result lies in DRAM.
    """
    page_bytes, pages = row_bytes(result), result.matrix[0]
    if result.layout is Layout.TILE:
        page_bytes, pages = result.data_format.tile_bytes, volume_tiles(result)
    place = next((tensor.memory_config for tensor in (inputs[0], result) if in_dram(tensor)), result.memory_config)
    aligned = round_up(page_bytes, page_alignment_bytes(place, spec))
    return (paged_buffer("pages", BUFFERING, aligned, result.data_format, page_cores(pages, spec.grid, within=within)),)


def ragged_buffers(
    inputs: Sequence[TensorSpec], result: TensorSpec, spec: DeviceSpec, *, within: CoreRangeSet | None = None
) -> tuple[CircularBuffer, ...]:
    """Buffers for columns that end within tiles: a row of tiles is untilized, joined stick by stick and tilized."""
    read, (rows, written) = sum(tensor.matrix[1] // TILE for tensor in inputs), (side // TILE for side in result.matrix)
    used, _ = spread_evenly(rows, spec.grid.cores if within is None else within.num_cores())
    chosen = first_cores(used, spec.grid.cols, spec.grid.rows, row_wise=False)
    if within is not None:
        chosen = page_cores(used, spec.grid, within=within)
    cores = CoreRangeSet([CoreRange(core, core) for core in chosen.cores(row_major=False)])
    sizes = {"tiles": BUFFERING * read, "sticks": read, "joined": written, "result": BUFFERING * written}
    return tuple(tile_buffer(name, tiles, result.data_format, cores) for name, tiles in sizes.items())


def is_turned(op: Concatenate, ends: Ends) -> bool:
    """Whether tiles are transposed: tiles of two HEIGHT-sharded tensors that are joined side by side."""
    by_height = ends.written.memory_config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    side_by_side = len(op.shapes) == 2 and op.axis == len(op.shapes[0]) - 1
    return by_height and side_by_side and ends.written.layout is Layout.TILE


def _copied(op: Concatenate, ends: Ends, spec: DeviceSpec) -> Composed:
    """Sticks or tiles of every tensor in turn, half of them by each of two kernels, or all by the only processor."""
    (rows, columns), data_format = ends.written.shards.shape, ends.written.data_format
    element_bytes, copying, kernels = data_format.element_bytes or 0, 0.0, hands(spec, 2)
    together = sum(shape[op.axis] for shape in op.shapes)
    for shape in op.shapes:
        part = shape[op.axis] / together
        if ends.written.layout is Layout.TILE:
            pages, page_bytes = round(rows * columns * part / TILE**2), float(data_format.tile_bytes)
        elif op.axis == len(shape) - 1:
            pages, page_bytes = rows * op.groups, columns * part / op.groups * element_bytes
        else:
            pages, page_bytes = round(rows * part), columns * element_bytes
        copying += local_sticks_cycles(spec, div_up(pages, kernels), page_bytes)
    stages = {
        Stage.READER: (copying, "one processor copies half of the sticks within the core"),
        Stage.SECOND_READER: (copying * (kernels > 1), "the other copies the other half"),
    }
    cores, steps = ends.written.shards.grid, "copying sticks within a core"
    return Composed(cores=cores, body_cycles=copying, stages=stages, steps=steps)


def _turned(op: Concatenate, ends: Ends, spec: DeviceSpec) -> Composed:
    """Each row of tiles is transposed, joined by a reader and transposed back, in sequence."""
    shards, data_format = ends.written.shards, ends.written.data_format
    tile_rows, tiles = (div_up(side, TILE) for side in shards.shape)
    between = BFLOAT16 if data_format.is_block else data_format
    transposing, transposing_back = (
        convert_tile_cycles(spec, *formats) for formats in ((data_format, between), (between, data_format))
    )
    computed = 2 * spec.costs_of(ComputeCosts).block_cycles + tiles * (transposing + transposing_back)
    together = sum(shape[op.axis] for shape in op.shapes)
    widths = [tiles * shape[op.axis] / together * between.tile_bytes / op.groups for shape in op.shapes]
    copied = sum(local_sticks_cycles(spec, op.groups, width) for width in widths)
    stages = {
        Stage.READER: (tile_rows * copied, "rows of turned tiles are copied side by side within the core"),
        Stage.MATH: (tile_rows * computed, "tiles are turned before that, and turned back after it"),
    }
    body, steps = tile_rows * (computed + copied), "unpacking, packing and copying tiles"
    return Composed(cores=shards.grid, body_cycles=body, stages=stages, steps=steps)
