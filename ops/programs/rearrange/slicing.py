"""A box cut out of a tensor: what it computes, its buffers, and what it takes.

Source: tt-metal 0.81.1 (data_movement/slice), compared with recorded plans. Cycles are composed: as many pages as the
result has are waited for, and written as in measured copies; a box with steps reads whole rows. Nothing was fitted:
against public profiler rows on Blackhole tiles come out 4 to 11 % too fast, and unaligned rows 38 to 48 %.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, MemoryConfig, TensorMemoryLayout
from device.numbers.block_floats import div_up, round_up
from device.numbers.formats import Array
from device.plan import CircularBuffer, DeviceOp
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.op_model import Ends
from ops.programs.buffer_shapes import (
    BUFFERING,
    buffer,
    page_alignment_bytes,
    page_cores,
    row_bytes,
    scratchpad,
    shard_view,
    volume_tiles,
)
from ops.programs.movement.ends import got_at
from ops.programs.movement.movement import Access, Movement
from ops.programs.movement.movements import copy_movement
from ops.programs.rearrange.composed import composed

READ_BYTES = 4096  # of rows that are asked for by one read
ROW_GROUP = 32  # rows of a core are counted in groups of this many
INDEX_BYTES = 4  # of the scratchpad, for each axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(DeviceOp):
    """A box of a tensor."""

    shape: tuple[int, ...]
    begins: tuple[int, ...]  # First index on each axis
    ends: tuple[int, ...]  # One past the last index on each axis
    steps: tuple[int, ...]  # From index to index

    @property
    def has_steps(self) -> bool:
        """Whether elements between those that are kept are left out."""
        return any(step != 1 for step in self.steps)


def slice_buffers(work: Cut, source: PlanTensor, made: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Dataflow buffers of the program: shards as they lie, rows or tiles on their way, and the place of each axis."""
    if source.spec.layout is Layout.TILE:
        cores = page_cores(volume_tiles(made.spec), spec.grid)
        tiles = buffer("tiles", BUFFERING * source.spec.data_format.tile_bytes, source.spec.data_format, cores)
        return tiles, _places(work, tiles)
    if cuts_shards(work, source.spec, made.spec, spec):
        shards = made.spec.memory_config.shard_spec
        grid = None if shards is None else shards.grid
        return shard_view("shards", source, spec, grid), shard_view("kept", made, spec)
    if work.has_steps:
        aligned = round_up(row_bytes(source.spec), _alignment(source.spec, made.spec, spec))
        cores = page_cores(made.spec.matrix[0], spec.grid)
        return (buffer("rows", BUFFERING * aligned, source.spec.data_format, cores),)
    rows = _row_buffer(work, source.spec, made.spec, spec)
    return rows, _places(work, rows)


def cuts_shards(work: Cut, source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> bool:
    """Whether rows are cut out of HEIGHT shards into HEIGHT shards where they lie."""
    places = {source.memory_config.memory_layout, made.memory_config.memory_layout}
    skipped = work.begins[-1] * (source.data_format.element_bytes or 0)
    by_height = places == {TensorMemoryLayout.HEIGHT_SHARDED}
    return by_height and not work.has_steps and skipped % spec.l1.alignment_bytes == 0


def row_buffer_bytes(work: Cut, source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> int:
    """Bytes that one row takes on its way; rows that begin between aligned addresses take more."""
    alignment = _alignment(source, made, spec)
    skipped = work.begins[-1] * (source.data_format.element_bytes or 0)
    apart = skipped % page_alignment_bytes(source.memory_config, spec) != 0
    return round_up(row_bytes(made), BUFFERING * alignment if apart else alignment)


def _row_buffer(work: Cut, source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> CircularBuffer:
    """Rows that are waited for together, twice."""
    size = BUFFERING * rows_together(source, made, spec) * row_buffer_bytes(work, source, made, spec)
    return buffer("rows", size, source.data_format, page_cores(made.matrix[0], spec.grid))


def rows_together(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> int:
    """Rows that a core waits for together: as many as there are of the largest reads that divide all of its rows."""
    core_rows = round_up(div_up(made.matrix[0], spec.grid.cores), ROW_GROUP)
    step = round_up(row_bytes(made), _alignment(source, made, spec))
    largest = max((rows for rows in range(1, READ_BYTES // step + 1) if core_rows % rows == 0), default=0)
    return max(1, largest)


def _places(work: Cut, beside: CircularBuffer) -> CircularBuffer:
    return scratchpad("places", len(work.begins) * INDEX_BYTES, beside.data_format, beside.cores)


def _alignment(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> int:
    return max(page_alignment_bytes(one.memory_config, spec) for one in (source, made))


def cut(work: Cut, values: Array) -> Array:
    """The elements of the box."""
    box = tuple(slice(*one) for one in zip(work.begins, work.ends, work.steps, strict=True))
    return np.ascontiguousarray(values.reshape(work.shape)[box])


def _movement(work: Cut, ends: Ends, spec: DeviceSpec) -> Movement:
    """Pages are read as those of a tensor of the result's shape that lies interleaved in the source's memory.

    Tiles, and whole rows of a box with steps, are waited for one by one; other rows in groups, and shards in one go.
    """
    source, made = ends.read, ends.written
    place = MemoryConfig(TensorMemoryLayout.INTERLEAVED, source.memory_config.buffer_type)
    shape = (*made.shape[:-1], source.shape[-1]) if work.has_steps else made.shape
    copied = copy_movement(TensorSpec(shape, source.data_format, source.layout, place), made, spec)
    reads, writes = copied.reads, copied.writes
    if source.layout is Layout.TILE or work.has_steps or reads is None or writes is None:
        return copied
    if cuts_shards(work, source, made, spec):
        return replace(copied, reads=got_at(writes, Access.STREAM), writes=None)
    group = rows_together(source, made, spec)
    return replace(
        copied,
        reads=replace(reads, in_flight=group),
        writes=got_at(writes, Access.STICKS),
        blocks=div_up(reads.core_pages, group),
    )


OP_MODELS: Final = (composed(Cut, cut, _movement),)
