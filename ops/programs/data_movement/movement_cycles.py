"""What moving a tensor takes: pages read, tiles reordered, pages written, block by block.

Programs differ in how they wait. Most readers wait for each page, or for a group of pages or sticks, so that a page
costs its part of a round trip; most writers of tiles wait for each. Shards are written one page after the other, and
all cores share the bandwidth of the banks. Writers of sticks are bound by working out addresses. Stages hand
blocks on to each other: the slowest works all the time, the others add their first block or their last.
Constants by `tools.calibrate` from profiler rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import DataFormat, div_up
from device.spec.device_spec import DeviceSpec
from device.time.network import shared_cycles
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles, binding_stage
from ops.op_model import CyclesContext, Description, Detail, Ends, ModeledOp
from ops.programs.data_movement.movement import Access, Movement, Pages, copy_movement
from ops.programs.kernel_costs import (
    StickCosts,
    TransferCosts,
    convert_tile_cycles,
    read_page_cycles,
    read_stick_cycles,
    tilize_tile_cycles,
    untilize_row_cycles,
    waited_read_cycles,
    waited_write_cycles,
    write_latency_cycles,
    write_page_cycles,
    write_stick_cycles,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovementCosts(StickCosts):
    """Constants of the model of data movement programs, in cycles: those of pages and sticks, and besides them others.

    Attributes:
        box_stick_cycles: Between two sticks written into a box of an image.
        local_stick_cycles: Between two sticks copied within a core.
        store_cycles: For each word that a processor fills, and for each byte that it copies by itself.
        integer_tile_cycles: For each tile whose numbers become integers.
        reshard_cycles: Setting up the copies of a reshard.
        segment_cycles: For each piece that a reshape moves between pages.
    """

    box_stick_cycles: float
    local_stick_cycles: float
    store_cycles: float
    integer_tile_cycles: float
    reshard_cycles: float
    segment_cycles: float


STREAMS = (Access.STREAM, Access.STICKS, Access.BOX)  # accesses whose round trip comes once
INSIDE = (Access.LOCAL, Access.LOCAL_STICKS)  # accesses that leave no core


def movement_cycles(movement: Movement, spec: DeviceSpec, *, contention: bool = True) -> OperationCycles:
    """Cycles of a data movement program; without ``contention``, no core shares the bandwidth of DRAM."""
    alone, stages = (_stages(movement, spec, contention=shared) for shared in (False, contention))
    start, body = _start_cycles(movement, spec), _overlapped(stages, movement, spec)
    listed = (
        StageCycles(Stage.START, start),
        *(StageCycles(stage, cycles) for stage, cycles in stages.items() if cycles),
    )
    reads, writes = movement.reads, movement.writes
    return OperationCycles(
        cycles=start + body,
        groups=(CoreGroupCycles(cores=movement.cores, cycles=start + body, stages=listed),),
        bound_by=binding_stage(listed),
        dram_read_bytes=reads.all_bytes if reads is not None and reads.in_dram else 0,
        dram_written_bytes=writes.all_bytes if writes is not None and writes.in_dram else 0,
        network_bytes=sum(pages.all_bytes for pages in movement.sides if pages.access not in INSIDE),
        contention_cycles=body - _overlapped(alone, movement, spec),
    )


def _start_cycles(movement: Movement, spec: DeviceSpec) -> float:
    """Cycles until kernels run, and after the last page is written, where pages are not waited for one by one."""
    costs, writes = spec.costs_of(MovementCosts), movement.writes
    start = costs.start_cycles + (costs.reshard_cycles if movement.reshards else 0.0)
    if writes is not None and writes.in_dram and writes.access in STREAMS:
        start += write_latency_cycles(spec, in_dram=True)
    return start


def _overlapped(stages: dict[Stage, float], movement: Movement, spec: DeviceSpec) -> float:
    """The slowest stage, plus a block of every other stage; DRAM works for all stages at any time.

    Reading and writing are one stage where one data movement processor does both.
    """
    moving = [stages[Stage.READER], stages[Stage.WRITER]]
    working = [sum(moving)] if spec.data_movement.processors == 1 else moving
    working += [stages[stage] for stage in (Stage.TILIZE, Stage.MATH, Stage.UNTILIZE)]
    slowest = max(working)
    return max(stages[Stage.DRAM], slowest + (sum(working) - slowest) / movement.blocks)


def _stages(movement: Movement, spec: DeviceSpec, *, contention: bool) -> dict[Stage, float]:
    costs, reads, writes = spec.costs_of(MovementCosts), movement.reads, movement.writes
    others = movement.cores.num_cores() if contention else 0
    stages = dict.fromkeys((Stage.READER, Stage.TILIZE, Stage.MATH, Stage.UNTILIZE, Stage.WRITER, Stage.DRAM), 0.0)
    if reads is not None:
        stages[Stage.READER] = reads.core_pages * _read_cycles(reads, spec, others)
        if reads.in_dram and contention:
            share = costs.dram_stick_share if reads.access is Access.STICKS else 1.0
            stages[Stage.DRAM] += shared_cycles(spec, reads.all_bytes, share)
    if writes is not None:
        stages[Stage.WRITER] = _write_cycles(writes, spec, others)
        if writes.in_dram and contention:
            alone = shared_cycles(spec, writes.all_bytes, costs.dram_write_share)
            stages[Stage.DRAM] = max(alone, stages[Stage.DRAM] + shared_cycles(spec, writes.all_bytes))
    if movement.tilized_tiles:
        stages[Stage.TILIZE] = movement.tilized_tiles * tilize_tile_cycles(spec, *movement.formats)
    if movement.cast_tiles:
        stages[Stage.MATH] = movement.cast_tiles * _cast_cycles(spec, *movement.formats)
    if movement.untilized_rows:
        stages[Stage.UNTILIZE] = movement.untilized_rows * untilize_row_cycles(spec, movement.width_tiles)
    stages[Stage.READER] += movement.segments * costs.segment_cycles + movement.stores * costs.store_cycles
    return stages


def _cast_cycles(spec: DeviceSpec, before: DataFormat, after: DataFormat) -> float:
    """A tile is unpacked and packed in another format; numbers become integers on the vector unit."""
    rounded = before.is_float and not after.is_float
    return convert_tile_cycles(spec, before, after) + (
        spec.costs_of(MovementCosts).integer_tile_cycles if rounded else 0.0
    )


def _read_cycles(pages: Pages, spec: DeviceSpec, others: int) -> float:
    """Cycles of a page on the reading side of a core, while the given number of other cores read."""
    wire = pages.page_bytes / spec.noc.link_bytes_per_cycle
    match pages.access:
        case Access.LOCAL:
            return wire
        case Access.WAIT:
            issued = max(spec.costs_of(MovementCosts).stick_cycles, wire)
            waited = waited_read_cycles(spec, pages.page_bytes, in_dram=pages.in_dram)
            behind = waited_read_cycles(spec, pages.page_bytes, in_dram=pages.in_dram, readers=others) - waited
            return (waited + (pages.in_flight - 1) * issued) / pages.in_flight + behind
        case Access.BOUNCE:
            waited = waited_read_cycles(spec, pages.page_bytes, in_dram=pages.in_dram, readers=others)
            copied = 2 * spec.costs_of(MovementCosts).local_stick_cycles
            issue = spec.costs_of(TransferCosts).read_issue_cycles
            return max((waited + copied) / pages.in_flight, 2 * issue, 2 * wire)
        case Access.STICKS if pages.in_dram:
            return read_stick_cycles(spec, pages.page_bytes, readers=others)
        case Access.STICKS:
            return max(spec.costs_of(MovementCosts).stick_cycles, wire)
        case _:
            return read_page_cycles(spec, pages.page_bytes)


def _write_cycles(pages: Pages, spec: DeviceSpec, others: int) -> float:
    """Cycles of all pages on the writing side of a core, while the given number of other cores write."""
    costs, wire = spec.costs_of(MovementCosts), pages.page_bytes / spec.noc.link_bytes_per_cycle
    match pages.access:
        case Access.WAIT:
            page = waited_write_cycles(spec, pages.page_bytes, in_dram=pages.in_dram)
        case Access.STICKS:
            page = write_stick_cycles(spec, pages.page_bytes)
        case Access.ROWS:
            rows = div_up(pages.core_pages, TILE)
            waited = rows * write_latency_cycles(spec, in_dram=pages.in_dram)
            return waited + pages.core_pages * max(costs.stick_cycles, wire)
        case Access.BOX:
            behind = shared_cycles(spec, others * pages.page_bytes, costs.dram_write_share)
            page = max(costs.box_stick_cycles, wire) + behind
        case Access.LOCAL_STICKS:
            page = max(costs.local_stick_cycles, wire)
        case _:
            page = write_page_cycles(spec, pages.page_bytes)
    return pages.core_pages * page


HOW: Final = {
    Access.STREAM: "one request after the other",
    Access.STICKS: "one request after the other",
    Access.ROWS: "row of tiles by row of tiles, each waited for",
    Access.BOX: "with an address worked out for each",
    Access.WAIT: "each waited for",
    Access.BOUNCE: "each waited for and copied once more within L1",
    Access.LOCAL: "within the core, in one piece",
    Access.LOCAL_STICKS: "within the core, stick by stick",
}


def describe_movement(
    movement: Callable[[], Movement], *, measured_as: str = "", details: tuple[Detail, ...] = ()
) -> Description:
    """How a data movement was planned; `movement` is computed when the description is read.

    `measured_as` is the name under which such programs were measured; `details` follow the pages of both sides.
    """
    return Description(
        facts=lambda: (*_details(movement()), *details),
        stages=lambda: _stage_texts(movement()),
        measured_as=measured_as,
        composed_of="pages that are read and written as in other movements",
    )


def _details(movement: Movement) -> Iterator[Detail]:
    count = movement.cores.num_cores()
    yield Detail(name="cores", value=count, text="one core" if count == 1 else f"{count} cores")
    for side, pages in (("read", movement.reads), ("written", movement.writes)):
        if pages is not None:
            moved = f"{pages.all_pages:,} {_kind(pages)} of {pages.page_bytes:,} B {side} {_place(movement, pages)}"
            yield Detail(name=f"pages_{side}", value=pages.all_pages, text=f"{moved}, {pages.core_pages:,} by one core")


def _stage_texts(movement: Movement) -> dict[Stage, str]:
    reads, writes, segments = movement.reads, movement.writes, "pieces of rows"
    stages = {
        Stage.TILIZE: "rows become tiles",
        Stage.UNTILIZE: "tiles become rows",
        Stage.DRAM: "DRAM delivers or takes the pages of all cores",
    }
    if reads is not None and movement.reshards:
        stages[Stage.READER] = f"pieces of shards are read {_place(movement, reads)}"
    elif reads is not None:
        together = "" if reads.in_flight == 1 else f"{reads.in_flight} at a time, "
        stages[Stage.READER] = f"{_kind(reads)} are read {_place(movement, reads)}, {together}{HOW[reads.access]}"
        if movement.segments:
            stages[Stage.READER] += f", and {segments} moved between tiles"
    elif movement.segments:
        stages[Stage.READER] = f"{segments} are moved between tiles"
    if writes is not None:
        together = "" if writes.in_flight == 1 else f"{writes.in_flight} at a time, "
        stages[Stage.WRITER] = f"{_kind(writes)} are written {_place(movement, writes)}, {together}{HOW[writes.access]}"
    return stages


def _kind(pages: Pages) -> str:
    return "tiles" if pages.tiles else "sticks"


def _place(movement: Movement, pages: Pages) -> str:
    """The memory that the pages of one side come from, or go to."""
    preposition = "from" if pages is movement.reads else "to"
    if not pages.in_dram and movement.reshards:
        return "from the L1 of other cores"
    if not pages.in_dram and pages.access in INSIDE:
        return "in L1"
    return f"{preposition} {'DRAM' if pages.in_dram else 'L1'}"


class DataMovement(ModeledOp):
    """The base of operations whose cycles follow from the pages that they read and write."""

    __slots__ = ()
    MEASURED: ClassVar[bool] = False  # There are public measurements of such programs, under the name of the class

    @property
    def measured_as(self) -> str:
        """The name under which such programs were measured; empty if there are no public measurements."""
        return type(self).__name__ if self.MEASURED else ""

    @property
    def details(self) -> tuple[Detail, ...]:
        """What was decided besides the pages of both sides."""
        return ()

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """The pages of the program: by default all of the source are waited for and all of the result are written."""
        return copy_movement(read, written, spec)

    def cycles(self, ends: Ends, context: CyclesContext) -> OperationCycles:
        """Cycles of the movement."""
        movement = self.movement(ends.read, ends.written, context.spec)
        return movement_cycles(movement, context.spec, contention=context.contention)

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """The pages of both sides, and what the stages do."""
        movement = partial(self.movement, ends.read, ends.written, spec)
        return describe_movement(movement, measured_as=self.measured_as, details=self.details)
