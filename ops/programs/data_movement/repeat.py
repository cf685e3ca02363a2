"""Programs that repeat a tensor along an axis, whole or element by element: the operation, its buffers and pages.

Generated code repeats tensors of up to four axes page by page, an older program all others. Source: tt-metal 0.81.1
(data_movement/repeat), compared with recorded plans.
"""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from device.cores import first_cores
from device.memory.layouts import TensorSpec, aligned_page_bytes
from device.memory.memory_config import (
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import Array, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from device.spec.parts import GridSpec
from ops.programs.buffer_shapes import paged_buffer, row_bytes, scratchpad, volume_tiles
from ops.programs.data_movement.movement import Access, DataMovement, Movement, copy_movement
from ops.programs.data_movement.permute import even_shards

BATCH = 4  # pages that are waited for, and written, together
PAGES_IN_FLIGHT = 2 * BATCH
SCRATCH_ROOM_BYTES = 128  # in which the older program aligns a page
ALIGNED_BYTES = 16  # rows that are no whole multiple are repeated in a scratchpad until they are


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatTensor(DataMovement):
    """A tensor several times along an axis, or every element of the axis several times."""

    shape: tuple[int, ...]
    axis: int
    count: int
    each: bool = False  # Every element, not the whole axis

    def moved(self, values: Array) -> Array:
        """The axis, or each of its elements, again and again."""
        whole = values.reshape(self.shape)
        if self.each:
            return np.repeat(whole, self.count, self.axis)
        return np.concatenate([whole] * self.count, self.axis)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """Every page of the result is read from its source, unless a page is read once and written repeatedly.

        Rows that become longer are copied within the core, by the processor itself if they are not aligned.
        """
        copied = replace(copy_movement(read, written, spec), compiled=True)
        if copied.reads is None or copied.writes is None:
            return copied
        writes = replace(copied.writes, access=Access.BATCH)
        if reads_once(self, written):
            return replace(copied, writes=writes)
        count = min(BATCH, writes.core_pages)
        last = self.axis == len(self.shape) - 1 and written.layout is Layout.ROW_MAJOR
        pages = replace(
            copied.reads,
            access=Access.BATCH,
            in_flight=count,
            copies=1 if last else self.count,
            core_pages=writes.core_pages,
            all_pages=writes.all_pages,
        )
        moved = replace(copied, reads=pages, writes=writes, blocks=div_up(writes.core_pages, count))
        if not last:
            return moved
        size, repeats = row_bytes(read, self.shape[-1]), pages.core_pages * (self.count - 1)
        if size % ALIGNED_BYTES:
            return replace(moved, stores=repeats * size)
        return replace(moved, local_copies=repeats)


def reads_once(op: RepeatTensor, written: TensorSpec) -> bool:
    """Whether a tile that was read is written several times: images of tiles that are repeated in L1, not in blocks."""
    place = written.memory_config
    apart = place.buffer_type is BufferType.DRAM or place.memory_layout is TensorMemoryLayout.BLOCK_SHARDED
    return written.layout is Layout.TILE and not apart and op.axis < len(op.shape) - 2 and not op.each


def lies_in_parts(op: RepeatTensor, read: TensorSpec, written: TensorSpec) -> bool:
    """Whether generated code cannot read the shards: they have parts of rows, or rows that become longer."""
    if read.layout is Layout.TILE or not read.memory_config.is_sharded():
        return False
    whole_rows = read.shards.shape[1] >= read.shape[-1]
    return not whole_rows or (op.axis == len(op.shape) - 1 and written.memory_config.is_sharded())


def row_page_bytes(read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> int:
    """Bytes of a page that holds a row of either tensor as its memory aligns it; interleaved rows with padding."""
    return max(
        aligned_page_bytes(
            row_bytes(rows, rows.shape[-1] if rows.memory_config.is_sharded() else None),
            rows.memory_config.buffer_type,
            spec,
        )
        for rows in (read, written)
    )


def generated_buffers(
    op: RepeatTensor, read: TensorSpec, written: TensorSpec, spec: DeviceSpec, free_l1_bytes: int
) -> tuple[CircularBuffer, ...]:
    """A circular buffer of pages in transit, on one core per page of the result, column by column.

    Rows use two batches of pages; batches shrink to fit the L1 that is free besides the result.
    """
    if written.layout is Layout.TILE:
        page_bytes, pages = written.data_format.tile_bytes, volume_tiles(written)
        depth = PAGES_IN_FLIGHT
        if reads_once(op, written):
            pages, depth = volume_tiles(read), 1
    else:
        seen = read.changed() if op.each else read  # a program of its own leaves out the padding
        page_bytes, pages = row_page_bytes(seen, written, spec), written.matrix[0]
        depth = max(1, 2 * min(BATCH, free_l1_bytes // page_bytes // 2))
        if op.each:
            depth = next(count for count in (PAGES_IN_FLIGHT, BATCH, 2, 1) if count <= depth)
    cores = first_cores(min(pages, spec.grid.cores), spec.grid.cols, spec.grid.rows, row_wise=False)
    return (paged_buffer("pages", depth, page_bytes, written.data_format, cores),)


def older_buffers(
    op: RepeatTensor, read: TensorSpec, written: TensorSpec, spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Scratchpads of the older program, on all cores: two with room for a row; one for a tile, or a row of shards."""
    cores = first_cores(spec.grid.cores, spec.grid.cols, spec.grid.rows)
    size, tiled = row_bytes(read, read.shape[-1]), read.layout is Layout.TILE
    if tiled or read.memory_config.is_sharded():
        page_bytes = read.data_format.tile_bytes if tiled else size
        return (scratchpad("page", SCRATCH_ROOM_BYTES + page_bytes, read.data_format, cores),)
    if op.axis == len(op.shape) - 1:  # as many rows as end at an aligned address
        size *= next(count for count in (1, 2, 4, 8, 16) if size * count % ALIGNED_BYTES == 0)
    return tuple(scratchpad(name, SCRATCH_ROOM_BYTES + size, read.data_format, cores) for name in ("read", "aligned"))


def stays_on_cores(source: TensorSpec, counts: tuple[int, ...]) -> bool:
    """Whether each core repeats its own shard: along one axis that is whole in shards, in tensors without padding."""
    axes = [axis for axis, count in enumerate(counts) if count > 1]
    if len(axes) > 1 or (source.layout is Layout.TILE and source.shape != source.padded_shape):
        return False
    scheme, rows = source.memory_config.memory_layout, source.shards.shape[0]
    if scheme is TensorMemoryLayout.WIDTH_SHARDED:
        return True
    sides = (*(1,) * (len(counts) - len(source.shape)), *source.padded_shape)
    filled = scheme is TensorMemoryLayout.BLOCK_SHARDED or source.matrix[0] % rows == 0
    return filled and all(rows % prod(sides[axis:-1]) == 0 for axis in axes if axis < len(sides) - 1)


def repeated_place(
    source: TensorSpec, counts: tuple[int, ...], shape: tuple[int, ...], spec: DeviceSpec, *, direct: bool
) -> MemoryConfig:
    """The shards of a repeated tensor: larger ones if each core repeats its own; otherwise all cores share the tensor.

    Rows that do not fill the shards of all cores are interleaved.
    """
    place, shards = source.memory_config, source.shards
    scheme, (rows, columns) = place.memory_layout, shards.shape
    if direct and stays_on_cores(source, counts):
        grown = rows * prod(counts[:-1]), columns * counts[-1]
        return replace(place, shard_spec=shards.changed(shape=grown))
    tiled = source.layout is Layout.TILE
    sides = TensorSpec((1, *shape), source.data_format, source.layout).padded_shape
    for unit in (TILE,) if tiled else (1, TILE):
        even = even_shards(sides, scheme, shards.orientation, spec.grid, unit)
        if not tiled and scheme is TensorMemoryLayout.WIDTH_SHARDED and not _divides(even.shape[1], source, sides[-1]):
            even = _narrowed(even, source, sides[-1], spec.grid)
        if tiled or _divides(even.shape[1], source, sides[-1]):
            return replace(place, shard_spec=even)
    return MemoryConfig(buffer_type=place.buffer_type)


def _divides(columns: int, tensor: TensorSpec, width: int) -> bool:
    """Whether shards of this many columns split rows of a width into equal aligned parts."""
    return width % columns == 0 and columns * (tensor.data_format.element_bytes or 1) % ALIGNED_BYTES == 0


def _narrowed(even: ShardSpec, tensor: TensorSpec, width: int, grid: GridSpec) -> ShardSpec:
    """Shards on a number of cores that splits rows into equal aligned parts; the given shards if there is none."""
    counts = range(min(grid.cores, width), 0, -1)
    fitting = (count for count in counts if width % count == 0 and _divides(width // count, tensor, width))
    if (count := next(fitting, None)) is None:
        return even
    by_rows = even.orientation is ShardOrientation.ROW_MAJOR
    cores = first_cores(count, grid.cols, grid.rows, row_wise=by_rows)
    return even.changed(grid=cores, shape=(even.shape[0], width // count))
