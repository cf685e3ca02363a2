"""Axes in another order: the operation, its values, and what its programs take.

Composed of measured actions. Rows that move to or from the last axis are read, tilized, turned while they are
untilized, and written, a tile at a time; two such configurations were measured, of 7 and 9 channels on a Blackhole:
the model is 11 % above and 10 % below. Sticks of shards are fetched by both data movement processors; the last two axes
of shards are turned where they lie. Whole tiles and rows are copied; otherwise tiles are waited for as in copies, and
pieces of rows are asked for and written one behind the other as the sticks of other movements are. Nothing was fitted:
against public profiler rows on Blackhole (transposes and permutes of interleaved tensors, 20 and 110 cores) whole tiles
come out 1 to 9 % too fast, and pieces between 46 % too fast and 8 % too slow. Source of the order of work: tt-metal
0.81.1 (data_movement/permute, transpose).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Final

import numpy as np

from device.cores import CoreRangeSet, first_cores
from device.matrix_unit.packer import pack
from device.memory.layouts import TensorSpec
from device.memory.memory_config import FACE, TILE, BufferType, Layout
from device.numbers.formats import GROUP, Array, DataFormat, div_up, round_up
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles, Stage
from ops.op_model import CyclesContext, Description, Ends
from ops.programs.buffer_shapes import alike_cycles, dealt_evenly, pipelined_cycles, row_bytes
from ops.programs.data_movement.movement import Access, DataMovement, Movement, Pages, Sides, copy_movement, sides_of
from ops.programs.data_movement.permute_buffers import keeps_tiles
from ops.programs.kernel_costs import (
    ComputeCosts,
    StickCosts,
    TransferCosts,
    burst_cycles,
    core_round_trip_cycles,
    local_sticks_cycles,
    tilize_tile_cycles,
    untilize_tile_cycles,
    waited_read_cycles,
    write_latency_cycles,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Permute(DataMovement):
    """Axes in another order."""

    shape: tuple[int, ...]
    axes: tuple[int, ...]  # The axis of the source that each axis of the result is
    # The block float whose groups are packed again, since they lie along other axes; None of other formats
    packed: DataFormat | None = None

    def moved(self, values: Array) -> Array:
        """The axes in order; groups of a block float that ends between them are filled up with zeros."""
        turned = np.ascontiguousarray(values.reshape(self.shape).transpose(self.axes))
        if self.packed is None:
            return turned
        columns = turned.shape[-1]
        filled = np.zeros((*turned.shape[:-1], round_up(columns, GROUP)), np.float32)
        filled[..., :columns] = turned
        return pack(filled, self.packed, fp32_dest=False)[..., :columns].astype(self.packed.storage)

    def cycles(self, ends: Ends, context: CyclesContext) -> OperationCycles:
        """By where the tensors lie, and which axes move."""
        spec, model = context.spec, _model(self, ends)
        if model is None:
            return DataMovement.cycles(self, ends, context)
        cores, body, busy = model(self, ends, spec)
        read, written = (
            prod(tensor.shape) * (tensor.data_format.element_bytes or 0) if _in_dram(tensor) else 0
            for tensor in (ends.read, ends.written)
        )
        return alike_cycles(cores, body, busy, spec, dram_read_bytes=read, dram_written_bytes=written)

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """By the model of its cycles."""
        model = _model(self, ends)
        if model is None:
            return DataMovement.describe(self, ends, spec)
        stages, composed_of = FETCHED if model is _fetched else TURNED
        return Description(stages=stages, composed_of=composed_of)

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """The pages of a program that tilizes no rows: whole ones are copied, others moved in pieces."""
        in_tiles, last_stays = read.layout is Layout.TILE, self.axes[-1] == len(self.axes) - 1
        if keeps_tiles(self.axes) if in_tiles else last_stays:
            return copy_movement(read, written, spec)
        sides = sides_of(read, written, spec)
        if in_tiles and self.axes[-1] >= len(self.axes) - 2:
            return _rows_of_tiles(sides)
        return _blocks(sides, self.axes, spec)


FETCHED: Final = (
    {
        Stage.READER: "one processor fetches half of the sticks from where they lie",
        Stage.SECOND_READER: "the other fetches the other half",
    },
    "reading sticks of other cores as in other programs",
)
TURNED: Final = (
    {
        Stage.READER: "rows are read, as far as tiles reach",
        Stage.TILIZE: "rows become tiles",
        Stage.UNTILIZE: "tiles are turned and become rows",
        Stage.WRITER: "rows are written where they belong",
    },
    "reading, tilizing, untilizing and writing rows as in other programs",
)


def _rows_of_tiles(sides: Sides) -> Movement:
    """Each tile is waited for, and its rows are written face by face."""
    source = sides.source
    lines = prod(source.shape[:-1]) * div_up(source.shape[-1], FACE)
    reads = replace(sides.read, access=Access.WAIT)
    writes = _pieces(sides.written, lines, FACE * _element_bytes(source), sides.cores.num_cores())
    return Movement(cores=sides.cores, reads=reads, writes=writes, blocks=reads.core_pages)


def _blocks(sides: Sides, axes: tuple[int, ...], spec: DeviceSpec) -> Movement:
    """Blocks of both axes that are last, before and behind, read and written in pieces; of tiles, face by face.

    What is written of a tile is whole: the padding of a ragged one, too. Axes before the source's own have one element.
    """
    source = sides.source
    shape = (1,) * (len(axes) - len(source.shape)) + source.shape
    moved, columns = shape[axes[-1]], shape[-1]
    others = prod(source.shape[:-1]) // moved
    high, wide = div_up(moved, TILE), div_up(columns, TILE)
    used, core_blocks = dealt_evenly(others * high * wide, spec.grid.cores)
    cores = first_cores(used, spec.grid.cols, spec.grid.rows)
    faces = TILE // FACE if source.layout is Layout.TILE else 1
    longest, size = TILE // faces, _element_bytes(source)
    reads = _pieces(sides.read, others * moved * wide * faces, min(longest, columns) * size, cores.num_cores())
    writes = _pieces(sides.written, others * columns * high * faces, min(longest, moved) * size, cores.num_cores())
    return Movement(cores=cores, reads=reads, writes=writes, blocks=core_blocks)


def _pieces(pages: Pages, count: int, piece_bytes: int, cores: int) -> Pages:
    """A side whose pages are accessed in pieces, one after the other."""
    return replace(
        pages,
        access=Access.STICKS,
        core_pages=div_up(count, cores),
        page_bytes=piece_bytes,
        all_pages=count,
        tiles=False,
    )


def _element_bytes(tensor: TensorSpec) -> int:
    return tensor.data_format.element_bytes or 1


DIRECT_TILES: Final = 8  # tiles of a column whose rows the packer writes straight into the result

Stages = dict[Stage, float]
Model = Callable[[Permute, Ends, DeviceSpec], tuple[CoreRangeSet, float, Stages]]


def _model(op: Permute, ends: Ends) -> Model | None:
    """The movement of rows; None for tiles, for rows that stay whole, and for shards whose axes move otherwise."""
    rank = len(op.axes)
    sharded = [tensor.memory_config.is_sharded() for tensor in (ends.read, ends.written)]
    if ends.read.layout is not Layout.ROW_MAJOR or rank < 3:
        return None
    if not any(sharded):
        return _by_tiles if op.axes[-1] != rank - 1 else None
    moved = tuple(axis - rank for place, axis in enumerate(op.axes) if axis != place)
    return MODELS.get(moved) if all(sharded) else None


def _by_tiles(op: Permute, ends: Ends, spec: DeviceSpec) -> tuple[CoreRangeSet, float, Stages]:
    """One part of a tile after the other: rows along the axis that becomes the last, up to the end of a tile."""
    last, moved = op.shape[-1], op.shape[op.axes[-1]]
    count = prod(op.shape) // (last * moved) * div_up(last, TILE) * div_up(moved, TILE)
    used = min(count, spec.grid.cores)
    rows, width = min(TILE, moved), min(TILE, last)
    element_bytes, link = ends.read.data_format.element_bytes or 0, spec.noc.link_bytes_per_cycle
    read_latency = waited_read_cycles(spec, 0, in_dram=_in_dram(ends.read))
    read = burst_cycles(spec.costs_of(TransferCosts).page_issue_cycles, rows, width * element_bytes, read_latency, link)
    answered = write_latency_cycles(spec, in_dram=_in_dram(ends.written))
    written = burst_cycles(spec.costs_of(StickCosts).stick_cycles, width, rows * element_bytes, answered, link)
    turned = _tilized(1, ends.read, spec), untilize_tile_cycles(spec, 1)
    body, busy = _in_stages(read, *turned, written, div_up(count, used))
    return first_cores(used, spec.grid.cols, spec.grid.rows), body, busy


def _in_stages(read: float, tilized: float, turned: float, written: float, blocks: int) -> tuple[float, Stages]:
    """Cycles of blocks that are read, tilized and turned by one unit, and written; and of each stage."""
    stages = {Stage.READER: read, Stage.TILIZE: tilized, Stage.UNTILIZE: turned, Stage.WRITER: written}
    body = pipelined_cycles((read, tilized + turned, written), blocks)
    return body, {stage: blocks * cycles for stage, cycles in stages.items()}


def _fetched(op: Permute, ends: Ends, spec: DeviceSpec) -> tuple[CoreRangeSet, float, Stages]:
    """Two kernels fetch half of a core's sticks each, one stick after the other; or one kernel fetches all."""
    kernels = (Stage.READER, Stage.SECOND_READER)[: spec.data_movement.processors]
    shards = ends.written.shards
    rows, columns = shards.shape
    issue, link = spec.costs_of(TransferCosts).read_issue_cycles, spec.noc.link_bytes_per_cycle
    stick_bytes, round_trip = row_bytes(ends.read, columns), core_round_trip_cycles(spec)
    share = burst_cycles(issue, div_up(rows, len(kernels)), stick_bytes, round_trip, link)
    return shards.grid, share, dict.fromkeys(kernels, share)


def _turned_in_place(op: Permute, ends: Ends, spec: DeviceSpec) -> tuple[CoreRangeSet, float, Stages]:
    """Image by image of a core's shard: sticks are copied to where they are tilized, and turned."""
    shards = ends.read.shards
    height, width = op.shape[-2:]
    down, across = div_up(height, TILE), div_up(width, TILE)
    read = down * local_sticks_cycles(spec, min(TILE, height), row_bytes(ends.read, width))
    tilized = _tilized(down * across, ends.read, spec)
    turned = down * across * untilize_tile_cycles(spec, down)
    apart = down > DIRECT_TILES
    written = local_sticks_cycles(spec, width, row_bytes(ends.read, height)) if apart else 0.0
    return shards.grid, *_in_stages(read, tilized, turned, written, div_up(shards.shape[0], height))


MODELS: Final[dict[tuple[int, ...], Model]] = {(-1, -2): _turned_in_place, (-2, -3): _fetched}  # by the axes that move


def _tilized(tiles: int, tensor: TensorSpec, spec: DeviceSpec) -> float:
    tile_cycles = tilize_tile_cycles(spec, tensor.data_format, tensor.data_format)
    return spec.costs_of(ComputeCosts).tilize_call_cycles + tiles * tile_cycles


def _in_dram(tensor: TensorSpec) -> bool:
    return tensor.memory_config.buffer_type is BufferType.DRAM
