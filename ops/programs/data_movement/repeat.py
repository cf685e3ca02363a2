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
    ragged_tiles,
)
from device.numbers.formats import BFLOAT16, Array, div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.programs.buffer_shapes import paged_buffer, row_bytes, scratchpad, shard_counts, volume_tiles
from ops.programs.data_movement.movement import Access, DataMovement, Movement, copy_movement
from ops.programs.data_movement.permute import aligned_shards, cuts_evenly, even_shards

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
    tiled = read.layout is Layout.TILE
    size = read.data_format.tile_bytes if tiled else row_bytes(read, read.shape[-1])
    if not tiled and op.axis == len(op.shape) - 1:  # as many rows as end at an aligned address
        size *= next(count for count in (1, 2, 4, 8, 16) if size * count % ALIGNED_BYTES == 0)
    names = ("page",) if tiled or read.memory_config.is_sharded() else ("read", "aligned")
    return tuple(scratchpad(name, SCRATCH_ROOM_BYTES + size, read.data_format, cores) for name in names)


def pages_are_whole(shape: tuple[int, ...], layout: Layout, place: MemoryConfig) -> bool:
    """Whether generated code reads or writes a tensor where it is: interleaved, or in full shards of whole rows.

    Blocks fill all of their cores. Tiles are cut between any columns of tiles.
    """
    shards, scheme = place.shard_spec, place.memory_layout
    if not place.is_sharded():
        return True
    if shards is None or len(shape) < 2:
        return False
    rows, columns = TensorSpec(shape, BFLOAT16, layout).matrix
    (high, over), (wide, beyond) = divmod(rows, shards.shape[0]), divmod(columns, shards.shape[1])
    ragged = layout is Layout.TILE and ragged_tiles(shards) is not None
    if over or beyond or ragged or (layout is Layout.ROW_MAJOR and wide != 1):
        return False
    if scheme is TensorMemoryLayout.BLOCK_SHARDED:
        return shards.grid.bounding_box().num_cores() == shards.num_cores() and shard_counts(scheme, shards) == (
            high,
            wide,
        )
    along = wide if scheme is TensorMemoryLayout.HEIGHT_SHARDED else high
    return along == 1 and high * wide <= shards.num_cores()


def stays_on_cores(source: TensorSpec, axis: int, place: MemoryConfig) -> bool:
    """Whether each core repeats its own full shard in L1: along an axis that is whole in it, into the same scheme."""
    current, rank = source.memory_config, len(source.shape)
    places = [where for where in (current, place) if where.is_sharded()]
    if not current.is_sharded() or rank < 2 or any(where.buffer_type is BufferType.DRAM for where in places):
        return False
    rows, columns = source.shards.shape
    by_tiles, scheme = source.layout is Layout.TILE, current.memory_layout
    ragged = by_tiles and any(side % TILE for side in source.shape[-2:])
    if source.matrix[0] % rows or source.matrix[1] % columns or ragged:
        return False
    if axis == rank - 1 and not by_tiles and scheme is not TensorMemoryLayout.HEIGHT_SHARDED:
        return False
    if place.is_sharded():
        other_cores = place.shard_spec is not None and place.shard_spec.grid != source.shards.grid
        if place.memory_layout is not scheme or other_cores:
            return False
    return axis == rank - 1 or rows % prod(source.padded_shape[axis:-1]) == 0


def grown_shards(shards: ShardSpec, axis: int, rank: int, count: int) -> ShardSpec:
    """Shards whose cores repeat what they have."""
    rows, columns = shards.shape
    return shards.changed(shape=(rows, columns * count) if axis == rank - 1 else (rows * count, columns))


def chosen_place(
    place: MemoryConfig, tensor: TensorSpec, shape: tuple[int, ...], orientation: ShardOrientation, spec: DeviceSpec
) -> MemoryConfig:
    """A scheme with the library's shards for a padded shape in the tensor's layout: even ones on all cores.

    Rows that would not be cut into equal aligned parts are interleaved.
    """
    scheme, tiled = place.memory_layout, tensor.layout is Layout.TILE
    sides, element_bytes = (1, *shape), tensor.data_format.element_bytes or 1
    for unit in (TILE,) if tiled else (1, TILE):
        even = even_shards(sides, scheme, orientation, spec.grid, unit)
        if not tiled and scheme is TensorMemoryLayout.WIDTH_SHARDED:
            even = aligned_shards(even, sides[-1], element_bytes, spec.grid) or even
        if tiled or cuts_evenly(even.shape[1], sides[-1], element_bytes):
            return replace(place, shard_spec=even)
    return MemoryConfig(buffer_type=place.buffer_type)
