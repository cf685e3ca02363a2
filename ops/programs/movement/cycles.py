"""What moving a tensor takes: pages read, tiles reordered, pages written, side by side; the slowest decides.

Programs differ in how they wait. Tiles stream: a core asks for one after the other, and all cores share the bandwidth
of the banks. Some programs wait for every page before they ask for the next (block conversions, padding, sticks that
must be shifted within L1), so that a page costs a round trip. Writers of sticks are bound by working out addresses.
Constants by `tools.calibrate` from profiler rows.
"""

from device.numbers.integers import div_up
from device.spec.device_spec import DeviceSpec
from device.time.data_movement import side_by_side_cycles
from device.time.dram import page_round_trip_cycles, read_latency_cycles, shared_cycles
from device.time.network import torus_of
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles, binding_stage
from ops.programs.actions.compute import tilize_tile_cycles, untilize_row_cycles
from ops.programs.actions.costs import TransferCosts
from ops.programs.movement.costs import MovementCosts
from ops.programs.movement.movement import Access, Movement, Pages


def movement_cycles(movement: Movement, spec: DeviceSpec, *, contention: bool = True) -> OperationCycles:
    """Cycles of a data movement program.

    Args:
        movement: The program.
        spec: The machine.
        contention: Whether cores share the bandwidth of DRAM.
    """
    costs = spec.costs_of(MovementCosts)
    free = _stages(movement, spec, contention=False)
    stages = _stages(movement, spec, contention=contention)
    sides = [pages for pages in (movement.reads, movement.writes) if pages is not None]
    start: float = costs.start_cycles + read_latency_cycles(spec) * sum(pages.in_dram for pages in sides)
    start += costs.reshard_cycles if movement.reshards else 0
    body = _overlapped(stages, movement, spec)
    cycles = start + body
    shown = (
        StageCycles(Stage.START, start),
        *(StageCycles(stage, spent) for stage, spent in stages.items() if spent),
    )
    reads, writes = movement.reads, movement.writes
    return OperationCycles(
        cycles=cycles,
        groups=(CoreGroupCycles(cores=movement.cores, cycles=cycles, stages=shown),),
        bound_by=binding_stage(shown),
        dram_read_bytes=reads.all_bytes if reads is not None and reads.in_dram else 0,
        dram_written_bytes=writes.all_bytes if writes is not None and writes.in_dram else 0,
        network_bytes=sum(pages.all_bytes for pages in sides if pages.access is not Access.LOCAL),
        contention_cycles=body - _overlapped(free, movement, spec),
    )


def _overlapped(stages: dict[Stage, float], movement: Movement, spec: DeviceSpec) -> float:
    """The slowest stage, and the first row of tiles in the others."""
    moving = side_by_side_cycles(spec, stages[Stage.READER], stages[Stage.WRITER])
    slowest = max(moving, *stages.values())
    working = sum(cycles for stage, cycles in stages.items() if stage is not Stage.DRAM)
    tile_rows = movement.untilized_rows or div_up(movement.tilized_tiles, movement.width_tiles)
    return slowest + (max(working - slowest, 0.0) / tile_rows if tile_rows else 0.0)


def _stages(movement: Movement, spec: DeviceSpec, *, contention: bool) -> dict[Stage, float]:
    """Cycles of a core's stages."""
    costs = spec.costs_of(MovementCosts)
    made = dict.fromkeys((Stage.READER, Stage.TILIZE, Stage.UNTILIZE, Stage.WRITER, Stage.DRAM), 0.0)
    if movement.reads is not None:
        made[Stage.READER] = _read_cycles(movement, movement.reads, spec)
        share = costs.dram_stick_share if movement.reads.access is Access.STICKS else costs.dram_read_share
        made[Stage.DRAM] += _shared(movement.reads, spec, share) if contention else 0.0
    if movement.writes is not None:
        made[Stage.WRITER] = _write_cycles(movement.writes, spec)
        made[Stage.DRAM] += _shared(movement.writes, spec, costs.dram_write_share) if contention else 0.0
    before, after = movement.tilize_formats
    if movement.tilized_tiles:
        made[Stage.TILIZE] = movement.tilized_tiles * tilize_tile_cycles(spec, before, after)
    made[Stage.UNTILIZE] = movement.untilized_rows * untilize_row_cycles(spec, movement.width_tiles)
    made[Stage.READER] += movement.segments * costs.segment_cycles
    return made


def _read_cycles(movement: Movement, pages: Pages, spec: DeviceSpec) -> float:
    """Cycles of the reading side of a core."""
    costs, issue, noc = spec.costs_of(MovementCosts), spec.costs_of(TransferCosts), spec.noc
    if movement.reshards:
        both_networks = 2 * noc.link_bytes_per_cycle
        return pages.core_pages * pages.page_bytes / min(costs.reshard_bytes_per_cycle, both_networks)
    wire = pages.page_bytes / noc.link_bytes_per_cycle
    match pages.access:
        case Access.LOCAL:
            page = wire
        case Access.WAIT:
            page = _round_trip_cycles(pages, spec) + costs.waited_page_cycles
        case Access.BOUNCE:
            waited = _round_trip_cycles(pages, spec) + costs.waited_page_cycles + costs.bounce_cycles
            page = max(waited / pages.in_flight, 2 * issue.read_issue_cycles, 2 * wire)
        case Access.STICKS if pages.in_dram:
            page = costs.stick_read_cycles + pages.page_bytes / costs.stick_read_bytes_per_cycle
        case Access.STICKS:
            page = max(costs.stick_read_cycles, wire)
        case _:
            page = max(issue.page_issue_cycles, wire)
    return pages.core_pages * page


def _write_cycles(pages: Pages, spec: DeviceSpec) -> float:
    """Cycles of the writing side of a core."""
    costs, issue, noc = spec.costs_of(MovementCosts), spec.costs_of(TransferCosts), spec.noc
    wire = pages.page_bytes / noc.link_bytes_per_cycle
    match pages.access:
        case Access.WAIT:
            page = costs.write_round_trip_cycles + wire
        case Access.STICKS:
            page = max(costs.stick_write_cycles, wire)
        case Access.BOX:
            page = max(costs.box_tile_cycles if pages.tiles else costs.box_stick_cycles, wire)
        case Access.LOCAL_STICKS:
            page = max(costs.local_stick_cycles, wire)
        case _:
            page = max(issue.write_issue_cycles, wire)
    return pages.core_pages * page


def _round_trip_cycles(pages: Pages, spec: DeviceSpec) -> float:
    """A page asked for and waited for."""
    if pages.in_dram:
        return page_round_trip_cycles(spec, pages.page_bytes)
    return torus_of(spec).round_trip_cycles + pages.page_bytes / spec.noc.link_bytes_per_cycle


def _shared(pages: Pages, spec: DeviceSpec, share: float) -> float:
    return shared_cycles(spec, pages.all_bytes, share) if pages.in_dram else 0.0
