"""What a concatenation takes, and what it tells of it.

Shards are joined where they lie: both data movement processors of a core copy sticks (or tiles) within its L1. Two
tensors in tiles side by side are turned first and turned back afterwards, row of tiles by row of tiles. Interleaved
ones are copied page by page. Composed of measured actions; the whole is not measured.
Source of the order of work: tt-metal 0.81.1 (data_movement/concat).
"""

from functools import partial

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout, TensorMemoryLayout
from device.memory.tiles import TILE
from device.numbers.formats import BFLOAT16
from device.numbers.integers import div_up
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles, Stage
from ops.meaning import Account, CyclesReading, Ends
from ops.programs.actions.alike import alike_cycles
from ops.programs.actions.compute import pack_tile_cycles, unpack_tile_cycles
from ops.programs.actions.costs import ComputeCosts
from ops.programs.actions.transfers import local_sticks_cycles
from ops.programs.concat.work import Concatenate
from ops.programs.movement.account import movement_account
from ops.programs.movement.cycles import movement_cycles
from ops.programs.movement.movement import Movement
from ops.programs.movement.movements import copy_movement


def concat_cycles(work: Concatenate, ends: Ends, reading: CyclesReading) -> OperationCycles:
    """By where the tensors lie, and in which layout."""
    spec = reading.spec
    if not _joins_shards(ends):
        return movement_cycles(_page_by_page(ends, spec), spec, contention=reading.contention)
    body, busy = _turned(work, ends, spec) if is_turned(work, ends) else _copied(work, ends, spec)
    return alike_cycles(ends.written.shards.grid, body, busy, spec)


def is_turned(work: Concatenate, ends: Ends) -> bool:
    """Whether tiles are turned: those of two tensors of HEIGHT shards, side by side."""
    by_height = ends.written.memory_config.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    side_by_side = len(work.shapes) == 2 and work.axis == len(work.shapes[0]) - 1
    return by_height and side_by_side and ends.written.layout is Layout.TILE


def _copied(work: Concatenate, ends: Ends, spec: DeviceSpec) -> tuple[float, dict[Stage, float]]:
    """Sticks or tiles of every tensor in turn, half of them by each of two kernels, or all by the only processor."""
    kernels = (Stage.READER, Stage.SECOND_READER)[: spec.data_movement.processors]
    made, (rows, columns) = ends.written, ends.written.shards.shape
    copying = 0.0
    together = sum(shape[work.axis] for shape in work.shapes)
    for shape in work.shapes:
        part = shape[work.axis] / together
        if made.layout is Layout.TILE:
            pages, page_bytes = round(rows * columns * part / TILE**2), float(made.data_format.tile_bytes)
        elif work.axis == len(shape) - 1:
            pages, page_bytes = rows * work.groups, columns * part / work.groups * (made.data_format.element_bytes or 0)
        else:
            pages, page_bytes = round(rows * part), columns * (made.data_format.element_bytes or 0)
        copying += local_sticks_cycles(spec, div_up(pages, len(kernels)), page_bytes)
    return copying, dict.fromkeys(kernels, copying)


def _turned(work: Concatenate, ends: Ends, spec: DeviceSpec) -> tuple[float, dict[Stage, float]]:
    """For each row of tiles: turned, put side by side by a reader, turned back; one after the other."""
    rows, columns = ends.written.shards.shape
    tile_rows, tiles = div_up(rows, TILE), div_up(columns, TILE)
    data_format = ends.written.data_format
    between = BFLOAT16 if data_format.is_block else data_format
    turning = unpack_tile_cycles(spec, data_format.tile_bytes) + pack_tile_cycles(spec, between.tile_bytes)
    turning_back = unpack_tile_cycles(spec, between.tile_bytes) + pack_tile_cycles(spec, data_format.tile_bytes)
    computed = 2 * spec.costs_of(ComputeCosts).block_cycles + tiles * (turning + turning_back)
    together = sum(shape[work.axis] for shape in work.shapes)
    widths = [tiles * shape[work.axis] / together * between.tile_bytes / work.groups for shape in work.shapes]
    copied = sum(local_sticks_cycles(spec, work.groups, width) for width in widths)
    return tile_rows * (computed + copied), {Stage.READER: tile_rows * copied, Stage.MATH: tile_rows * computed}


def concat_account(work: Concatenate, ends: Ends, spec: DeviceSpec) -> Account:
    """What its stages do."""
    if not _joins_shards(ends):
        return movement_account(partial(_page_by_page, ends, spec))
    if is_turned(work, ends):
        return Account(
            stages={
                Stage.READER: "rows of turned tiles are copied side by side within the core",
                Stage.MATH: "tiles are turned before that, and turned back after it",
            },
            composed_of="unpacking, packing and copying tiles as in other programs",
        )
    return Account(
        stages={
            Stage.READER: "one processor copies half of the sticks within the core",
            Stage.SECOND_READER: "the other copies the other half",
        },
        composed_of="copying sticks within a core as in other programs",
    )


def _page_by_page(ends: Ends, spec: DeviceSpec) -> Movement:
    """A copy of the result from where the first tensor lies; of one that lies in shards, from the result's place."""
    read, written = ends.read.memory_config, ends.written
    place = written.memory_config if read.is_sharded() else read
    return copy_movement(TensorSpec(written.shape, written.data_format, written.layout, place), written, spec)


def _joins_shards(ends: Ends) -> bool:
    return ends.read.memory_config.is_sharded() and ends.written.memory_config.is_sharded()
