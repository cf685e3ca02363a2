"""A model of data movement programs: the pages that each side reads and writes, and the resulting cycles.

Programs differ in how they wait. Most readers wait for each page, or for a group of pages or sticks, so that a page
costs its part of a round trip; most writers of tiles wait for each page. Shards are written page by page, and all cores
share the bandwidth of the banks. Writers of sticks are limited by address computation. Stages form a pipeline: the
slowest stage works all the time, the other stages add their first or last block. Constants by `tools.calibrate` from
profiler rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar, Final

from device.cores import CoreRangeSet
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, DataFormat, div_up
from device.spec.device_spec import DeviceSpec
from device.spec.releases import release_of
from device.time.links import crossing_cycles, spread_transfer
from device.time.network import (
    answer_cycles,
    page_round_trip_cycles,
    read_latency_cycles,
    shared_cycles,
    shared_read_cycles,
)
from device.time.stages import (
    CoreGroupCycles,
    OperationCycles,
    Stage,
    StageCycles,
    TileWork,
    Transfer,
    binding_stage,
)
from ops.op_model import Description, Detail, Ends, ModeledOp
from ops.programs import kernel_costs
from ops.programs.buffer_shapes import page_cores, row_bytes, spread_evenly, uniform_cycles


class Access(Enum):
    """How a core accesses pages, as descriptions say it; `STICKS` that are read from DRAM are waited for in groups."""

    STREAM = "pages", "one request after the other"
    STICKS = "rows of a row-major tensor", "one request after the other"
    ROWS = "sticks out of a row of tiles", "row of tiles by row of tiles, each waited for"
    GENERATED = "sticks out of a row of tiles", "by generated code, row of tiles by row of tiles, each waited for"
    PIECES = "pieces of sticks out of tiles", "by generated code, each row of tiles waited for"
    BOX = "sticks of a part of an image", "with an address worked out for each"
    FLUSH = "pages", "each gone before the next"
    WAIT = "pages or groups of pages", "each waited for"
    BATCH = "pages", "in batches, each waited for, by all cores in step"
    EACH = "sticks out of a row of tiles", "each waited for"
    BOUNCE = "pages or groups that are copied twice", "each waited for and copied once more within L1"
    LOCAL = "pieces of a shard", "within the core, each waited for"
    LOCAL_STICKS = "sticks of a shard", "within the core, stick by stick"


STREAMS: Final = (Access.STREAM, Access.STICKS, Access.BOX)  # accesses whose round trip comes once
STAGES: Final = (
    Stage.READER, Stage.TILIZE, Stage.MATH, Stage.UNTILIZE, Stage.WRITER, Stage.NETWORK, Stage.DRAM,
)  # fmt: skip
INSIDE: Final = (Access.LOCAL, Access.LOCAL_STICKS)  # accesses that leave no core


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """Pages that one side of a movement reads or writes."""

    access: Access = Access.STREAM
    core_pages: int  # Pages of the core with most of them
    page_bytes: int
    all_pages: int
    tiles: bool  # They are tiles; otherwise sticks
    in_dram: bool  # They are in DRAM; otherwise in L1
    by_number: bool = False  # Pages of shards, which are waited for and whose core is found by divisions
    counted: bool = False  # Their places among the axes are counted up one after the other
    copies: int = 1  # Cores that ask for the same page at a time
    axes: int = 0  # Axes by which a processor divides to find each page
    in_flight: int = 1  # Pages requested before the first is awaited, if pages are awaited
    # Bytes of all cores if page sizes differ, as in the last rows of shards; None if all pages are equal
    uneven_bytes: int | None = None

    @property
    def all_bytes(self) -> int:
        """Bytes of all cores, assuming equal pages, as the cycle model does."""
        return self.all_pages * self.page_bytes

    @property
    def moved_bytes(self) -> int:
        """Bytes of all cores."""
        return self.all_bytes if self.uneven_bytes is None else self.uneven_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """One data movement program."""

    cores: CoreRangeSet  # Cores that take part
    reads: Pages | None = None  # What they read; None if their input is in place already
    writes: Pages | None = None  # What they write; None if their output is in place already
    blocks: int = 1  # Blocks that a core's stages hand on to each other; 1 if each begins when the one before has ended
    tilized_tiles: int = 0  # Tiles a core makes of sticks
    # The formats before and after that, or before and after a cast
    formats: tuple[DataFormat, DataFormat] = (BFLOAT16, BFLOAT16)
    untilized_rows: int = 0  # Rows of tiles a core makes sticks of
    width_tiles: int = 1  # Tiles of such a row
    cast_tiles: int = 0  # Tiles a core casts to another format
    segments: int = 0  # Pieces of rows a core moves between pages
    stores: int = 0  # Words that a processor fills, or bytes that it copies by itself
    local_copies: int = 0  # Sticks that a core copies within its L1 between reading and writing
    filled_bytes: int = 0  # Bytes that the writing processor fills one by one before it begins
    reshards: bool = False  # Shards are redistributed
    whole: bool = False  # The compute threads begin when a core has read all, and write all before any leaves the core
    compiled: bool = False  # Its kernels are generated for what they move, and move it without compute threads
    locates: bool = False  # A processor works out by divisions where it begins among the axes

    @property
    def sides(self) -> tuple[Pages, ...]:
        """The read pages and the written pages, if there are any."""
        return tuple(pages for pages in (self.reads, self.writes) if pages is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Both tensors of a movement, and the cores between them."""

    source: TensorSpec
    target: TensorSpec
    cores: CoreRangeSet  # Cores that take part
    read: Pages  # All pages of the source
    written: Pages  # All pages of the target
    width_tiles: int  # Tiles across a core's part
    tile_rows: int  # Rows of tiles of a core, if there are tiles

    @property
    def from_shards(self) -> bool:
        """Whether the source is sharded."""
        return self.source.memory_config.is_sharded()

    @property
    def to_shards(self) -> bool:
        """Whether the target is sharded."""
        return self.target.memory_config.is_sharded()


def sides_of(
    source: TensorSpec,
    target: TensorSpec,
    spec: DeviceSpec,
    *,
    on_one_core: bool = False,
    within: CoreRangeSet | None = None,
) -> Sides:
    """Both sides of a movement; interleaved tensors may be limited to the cores ``within``.

    The cores are the cores of the shards; for interleaved tensors, one core, or a core per page of the target or per
    row of tiles if the layout changes.
    """
    sharded = next((tensor for tensor in (target, source) if tensor.memory_config.shard_spec is not None), None)
    if sharded is not None:
        cores = sharded.data_cores
    else:
        changes = source.layout is not target.layout
        items = div_up(source.matrix[0], TILE) if changes else pages_of(target, 1).all_pages
        most = spec.grid.cores if within is None else within.num_cores()
        used = 1 if on_one_core else spread_evenly(items, most)[0]
        cores = page_cores(used, spec.grid, row_wise=True, within=within)
    count, width = cores.num_cores(), (target if target.layout is Layout.TILE else source).matrix[1]
    read, written = pages_of(source, count), pages_of(target, count)
    width_tiles = div_up(shard_width(width, source, target), TILE)
    tile_rows = div_up((read if read.tiles else written).all_pages, width_tiles * count)
    return Sides(
        source=source, target=target, cores=cores, read=read, written=written, width_tiles=width_tiles,
        tile_rows=tile_rows,
    )  # fmt: skip


def pages_of(tensor: TensorSpec, cores: int) -> Pages:
    """All pages of a tensor that cores share."""
    (rows, cols), shards, tiled = tensor.matrix, tensor.memory_config.shard_spec, tensor.layout is Layout.TILE
    width = shard_width(cols, tensor)
    if tiled:
        page_bytes, pages = tensor.data_format.tile_bytes, div_up(rows, TILE) * div_up(cols, TILE)
    else:
        page_bytes, pages = row_bytes(tensor, width), rows * div_up(cols, width)
    core_pages = div_up(pages, cores)
    if shards is not None:
        high, wide = shards.shape
        core_pages = div_up(high, TILE) * div_up(wide, TILE) if tiled else high
    return Pages(
        core_pages=core_pages,
        page_bytes=page_bytes,
        all_pages=pages,
        tiles=tiled,
        in_dram=tensor.memory_config.buffer_type is BufferType.DRAM,
    )


def format_of_rows(data_format: DataFormat) -> DataFormat:
    """The format of tiles once they are rows: bfloat16 for bfloat8_b, otherwise their own."""
    return BFLOAT16 if data_format == BFLOAT8_B else data_format


def shard_width(width: int, *tensors: TensorSpec) -> int:
    """Columns of a core's part of a tensor `width` wide: the shard width of the first sharded tensor, if any."""
    shards = (tensor.memory_config.shard_spec for tensor in tensors)
    return next((min(width, shard_spec.shape[1]) for shard_spec in shards if shard_spec is not None), width)


def copy_movement(
    source: TensorSpec, target: TensorSpec, spec: DeviceSpec, *, within: CoreRangeSet | None = None
) -> Movement:
    """A program that reads page by page and writes zeros into or around the copied pages."""
    return copy_pages(sides_of(source, target, spec, within=within))


def copy_pages(sides: Sides) -> Movement:
    """Every page is waited for, and written while the next page arrives."""
    reads, writes = replace(sides.read, access=Access.WAIT), replace(sides.written, access=Access.WAIT)
    return Movement(cores=sides.cores, reads=reads, writes=writes, blocks=reads.core_pages)


def tile_writes(spec: DeviceSpec) -> Access:
    """How the common writer of interleaved pages waits, by release."""
    return Access.WAIT if release_of(spec.release).waits_for_tiles else Access.FLUSH


@dataclass(frozen=True, slots=True, kw_only=True)
class MovementCosts(kernel_costs.StickCosts):
    """Constants of the model of data movement programs besides those of pages and sticks, in cycles."""

    box_stick_cycles: float  # Between two sticks written into a box of an image
    local_stick_cycles: float  # Between two sticks copied within a core
    store_cycles: float  # For each word that a processor fills, and for each byte that it copies by itself
    compiled_start_cycles: float  # Kernel start of generated programs that do nothing but move pages
    flush_cycles: float  # Until a page that was written has left the core, besides its bytes
    fill_byte_cycles: float  # For each byte of a page that a processor fills with a number, byte by byte
    integer_tile_cycles: float  # For each tile whose numbers become integers
    local_start_cycles: float  # Kernel start and skew between cores of a program of one kernel that leaves no core
    local_bytes_per_cycle: float  # Rate at which a core reads from its own L1 over its network
    reshard_cycles: float  # Setting up the copies of a reshard
    segment_cycles: float  # For each piece that a reshape moves between pages


def movement_cycles(movement: Movement, spec: DeviceSpec) -> OperationCycles:
    """Cycles of a data movement program."""
    costs, reads, writes = spec.costs_of(MovementCosts), movement.reads, movement.writes
    local = reads is not None and reads.access is Access.LOCAL
    start = costs.compiled_start_cycles if movement.compiled else costs.start_cycles
    start = costs.local_start_cycles if local else start
    start += costs.reshard_cycles if movement.reshards else 0.0
    if movement.locates:
        start += spec.costs_of(kernel_costs.TransferCosts).locate_cycles
    if writes is not None and writes.in_dram and writes.access in STREAMS:
        start += kernel_costs.write_latency_cycles(spec, in_dram=True)
    stages = _stages(movement, spec, contention=True)
    body = _overlapped(stages, movement, spec)
    listed = (
        StageCycles(Stage.START, start),
        *(StageCycles(stage, cycles) for stage, cycles in stages.items() if cycles),
    )
    return OperationCycles(
        cycles=start + body,
        groups=(CoreGroupCycles(cores=movement.cores, cycles=start + body, stages=listed),),
        bound_by=binding_stage(listed),
        dram_read_bytes=reads.moved_bytes if reads is not None and reads.in_dram else 0,
        dram_written_bytes=writes.moved_bytes if writes is not None and writes.in_dram else 0,
        contention_cycles=lambda: body - _overlapped(_stages(movement, spec, contention=False), movement, spec),
        transfers=lambda: _transfers(movement, spec),
        tile_work=lambda: _tile_work(movement),
    )


def _transfers(movement: Movement, spec: DeviceSpec) -> tuple[Transfer, ...]:
    """The transfers of the pages of both sides; pages of shards count as spread over all worker cores."""
    return tuple(
        spread_transfer(spec, movement.cores, pages.moved_bytes, in_dram=pages.in_dram, writes=pages is movement.writes)
        for pages in movement.sides
        if pages.access not in INSIDE
    )


def _tile_work(movement: Movement) -> TileWork:
    """The tiles that all cores unpack and pack, and the bytes that processors copy within cores."""
    before, after = movement.formats
    cores, most = movement.cores.num_cores(), max((side.all_pages for side in movement.sides if side.tiles), default=0)
    untilized = movement.untilized_rows * movement.width_tiles
    converted = (cores * tiles for tiles in (movement.tilized_tiles, movement.cast_tiles, untilized))
    tiles = sum(min(count, most or count) for count in converted)
    inside = sum(pages.all_bytes for pages in movement.sides if pages.access in INSIDE)
    inside += cores * movement.local_copies * (0 if movement.reads is None else movement.reads.page_bytes)
    return kernel_costs.converted_work(tiles, before, after)._replace(copied_bytes=inside)


def _overlapped(stages: dict[Stage, float], movement: Movement, spec: DeviceSpec) -> float:
    """The slowest stage, plus a block of every other stage; DRAM serves all stages in parallel.

    Reading and writing are one stage if one data movement processor does both.
    """
    moving = [stages[Stage.READER], stages[Stage.WRITER]]
    working = [sum(moving)] if spec.data_movement.processors == 1 else moving
    together = max(stages[Stage.DRAM], stages[Stage.NETWORK]) + _edge_cycles(movement, spec)
    computing = [stages[stage] for stage in (Stage.TILIZE, Stage.MATH, Stage.UNTILIZE)]
    if movement.whole:
        return max(together, sum(moving)) + sum(computing)
    working += computing
    slowest = max(working)
    return max(together, slowest + (sum(working) - slowest) / movement.blocks)


def _edge_cycles(movement: Movement, spec: DeviceSpec) -> float:
    """Cycles in which the banks have nothing to deliver yet: until the first page that is waited for."""
    reads, writes = movement.reads, movement.writes
    if reads is None or writes is None or reads.access in STREAMS or writes.access in STREAMS or not reads.in_dram:
        return 0.0
    return read_latency_cycles(spec)


def _stages(movement: Movement, spec: DeviceSpec, *, contention: bool) -> dict[Stage, float]:
    costs, reads, writes = spec.costs_of(MovementCosts), movement.reads, movement.writes
    others, (before, after) = movement.cores.num_cores() if contention else 0, movement.formats
    stages = dict.fromkeys(
        (Stage.READER, Stage.TILIZE, Stage.MATH, Stage.UNTILIZE, Stage.WRITER, Stage.NETWORK, Stage.DRAM), 0.0
    )
    if reads is not None:
        passed = _later_page_cycles(movement, reads, spec) if contention else 0.0
        stages[Stage.READER] = reads.core_pages * _read_cycles(reads, spec, others, passed)
        if reads.in_dram and contention:
            share = costs.dram_stick_share if reads.access is Access.STICKS else 1.0
            stages[Stage.DRAM] += shared_read_cycles(spec, reads.all_bytes, reads.page_bytes, share)
    if writes is not None:
        passed = _later_page_cycles(movement, writes, spec) if contention else 0.0
        stages[Stage.WRITER] = _write_cycles(writes, spec, others, passed)
        if writes.in_dram and contention:
            alone = shared_cycles(spec, writes.all_bytes, costs.dram_write_share)
            read, share = stages[Stage.DRAM], costs.dram_turn_share if stages[Stage.DRAM] else 1.0
            stages[Stage.DRAM] = max(alone, (read + shared_cycles(spec, writes.all_bytes)) / share)
    if contention:
        stages[Stage.NETWORK] = _network_cycles(movement, spec)
    if movement.tilized_tiles:
        singly = 0.0 if before == BFLOAT16 else spec.costs_of(kernel_costs.ComputeCosts).tilize_single_cycles
        tile = singly + kernel_costs.tilize_tile_cycles(spec, before, after)
        stages[Stage.TILIZE] = movement.tilized_tiles * tile
    if movement.cast_tiles:  # each takes Dst by itself; numbers become integers on the vector unit
        rounded = costs.integer_tile_cycles if before.is_float and not after.is_float else 0.0
        tile = kernel_costs.convert_tile_cycles(spec, before, after) + rounded
        stages[Stage.MATH] = movement.cast_tiles * (tile + spec.costs_of(kernel_costs.ComputeCosts).subblock_cycles)
    if movement.untilized_rows:
        stages[Stage.UNTILIZE] = movement.untilized_rows * kernel_costs.untilize_row_cycles(spec, movement.width_tiles)
    stages[Stage.WRITER] += movement.filled_bytes * costs.fill_byte_cycles
    stages[Stage.READER] += movement.segments * costs.segment_cycles + movement.stores * costs.store_cycles
    if reads is not None:
        stages[Stage.READER] += kernel_costs.local_sticks_cycles(spec, movement.local_copies, reads.page_bytes)
    return stages


def _network_cycles(movement: Movement, spec: DeviceSpec) -> float:
    """Cycles of the busiest link of either network, over which all cores read or write pages of interleaved buffers."""
    return max((_links_cycles(movement, pages, spec) for pages in movement.sides), default=0.0)


def _links_cycles(movement: Movement, pages: Pages, spec: DeviceSpec) -> float:
    """Cycles in which the busiest link transfers the pages of one side of all cores."""
    if movement.reshards or pages.access in INSIDE:
        return 0.0
    count, writes = pages.all_bytes / pages.page_bytes, pages is movement.writes
    return crossing_cycles(spec, movement.cores, count, pages.page_bytes, in_dram=pages.in_dram, writes=writes)


def _later_page_cycles(movement: Movement, pages: Pages, spec: DeviceSpec) -> float:
    """Cycles in which the busiest link transfers a page of every core, from or to the L1 of all cores; 0 for one core.

    Cores that wait for pages request them in step, except for the first pages: cores do not start in step.
    """
    if pages.in_dram or not pages.core_pages or movement.cores.num_cores() == 1:
        return 0.0
    return _links_cycles(movement, pages, spec) * (pages.core_pages - 1) / pages.core_pages**2


def _read_cycles(pages: Pages, spec: DeviceSpec, others: int, passed: float) -> float:
    """Cycles of a page on the reading side of a core, while the given number of other cores read.

    ``passed`` are the cycles in which the busiest link passes a page of every core; 0 leaves the other cores out.
    """
    costs, size, wire = spec.costs_of(MovementCosts), pages.page_bytes, pages.page_bytes / spec.noc.link_bytes_per_cycle
    match pages.access:
        case Access.LOCAL:
            rate = min(costs.local_bytes_per_cycle, spec.noc.link_bytes_per_cycle)
            return answer_cycles(spec.noc, 0) + size / rate
        case Access.WAIT:
            waited = kernel_costs.waited_read_cycles(spec, size, in_dram=pages.in_dram)
            behind = kernel_costs.waited_read_cycles(spec, size, in_dram=pages.in_dram, readers=others) - waited
            asked = kernel_costs.read_page_cycles(spec, size) if pages.tiles else max(costs.stick_cycles, wire)
            arriving = max((wire + (pages.in_flight - 1) * asked) / pages.in_flight, passed)
            together = (waited - wire) / pages.in_flight + arriving
            counted = costs.stick_cycles + costs.segment_cycles if pages.counted else 0.0
            return max(counted, together + behind + _found_cycles(pages, spec))
        case Access.BOUNCE:
            waited = kernel_costs.waited_read_cycles(spec, size, in_dram=pages.in_dram, readers=others)
            issue = spec.costs_of(kernel_costs.TransferCosts).read_issue_cycles
            return max((waited + 2 * costs.local_stick_cycles) / pages.in_flight, 2 * issue, 2 * wire)
        case Access.BATCH:
            return _batch_cycles(pages, spec, others)
        case Access.STICKS if pages.in_dram:
            return kernel_costs.read_stick_cycles(spec, size, readers=others)
        case Access.STICKS:
            return max(costs.stick_cycles, wire)
        case _:
            return kernel_costs.read_page_cycles(spec, size)


def _batch_cycles(pages: Pages, spec: DeviceSpec, others: int) -> float:
    """Cycles of a page where a core waits for the last page of each batch, for which it makes room first.

    All cores ask in step, so that the banks have to answer all of them. Pages that several cores ask for are in no more
    banks than there are different pages.
    """
    size, count = pages.page_bytes, pages.core_pages
    transfers, batches = spec.costs_of(kernel_costs.TransferCosts), div_up(count, pages.in_flight)
    step = max(transfers.batch_issue_cycles, size / spec.noc.link_bytes_per_cycle)
    trip = kernel_costs.waited_read_cycles(spec, size, in_dram=False)
    if pages.in_dram:
        trip = page_round_trip_cycles(spec, size)
    waited = count * step + batches * (transfers.page_issue_cycles + trip - step)
    if not pages.in_dram:
        return waited / count
    banks = min(1.0, max(1, pages.all_pages // pages.copies) / spec.dram.banks)
    answered = shared_read_cycles(spec, max(0, others - 1) * count * size, size) / banks
    return (waited + max(0.0, answered - (count - batches) * step)) / count


def _found_cycles(pages: Pages, spec: DeviceSpec) -> float:
    costs = spec.costs_of(kernel_costs.TransferCosts)
    return pages.axes * costs.axis_cycles + (costs.shard_page_cycles if pages.by_number else 0.0)


def _write_cycles(pages: Pages, spec: DeviceSpec, others: int, passed: float) -> float:
    """Cycles of all pages on the writing side of a core, while other cores write; arguments as in `_read_cycles`."""
    costs, wire = spec.costs_of(MovementCosts), pages.page_bytes / spec.noc.link_bytes_per_cycle
    match pages.access:
        case Access.WAIT:
            waited = kernel_costs.waited_write_cycles(spec, pages.page_bytes, in_dram=pages.in_dram)
            issued = (pages.in_flight - 1) * kernel_costs.read_page_cycles(spec, pages.page_bytes)
            leaving = max((wire + issued) / pages.in_flight, passed)
            page = _found_cycles(pages, spec) + (waited - wire) / pages.in_flight + leaving
        case Access.BATCH:
            sent = pages.core_pages * kernel_costs.write_page_cycles(spec, pages.page_bytes)
            return sent + kernel_costs.write_latency_cycles(spec, in_dram=pages.in_dram)
        case Access.FLUSH:
            page = spec.costs_of(kernel_costs.TransferCosts).page_issue_cycles + wire + costs.flush_cycles
            if pages.in_dram:
                page = max(page, shared_cycles(spec, others * pages.page_bytes))
            return pages.core_pages * page + kernel_costs.write_latency_cycles(spec, in_dram=pages.in_dram)
        case Access.EACH:
            page = kernel_costs.mean_write_latency_cycles(spec, in_dram=pages.in_dram) + wire
        case Access.STICKS:
            page = kernel_costs.write_stick_cycles(spec, pages.page_bytes)
        case Access.ROWS | Access.GENERATED | Access.PIECES:
            transfers = spec.costs_of(kernel_costs.TransferCosts)
            stick = {
                Access.ROWS: costs.stick_cycles,
                Access.GENERATED: transfers.write_issue_cycles,
                Access.PIECES: transfers.batch_issue_cycles,
            }[pages.access]
            waited = div_up(pages.core_pages, TILE) * kernel_costs.write_latency_cycles(spec, in_dram=pages.in_dram)
            return waited + pages.core_pages * max(stick, wire)
        case Access.BOX:
            behind = shared_cycles(spec, others * pages.page_bytes, costs.dram_write_share)
            page = max(costs.box_stick_cycles, wire) + behind
        case Access.LOCAL_STICKS:
            page = max(costs.local_stick_cycles, wire)
        case _:
            page = kernel_costs.write_page_cycles(spec, pages.page_bytes)
    return pages.core_pages * page


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """The cycles of a program whose cores all do the same, composed of steps that other programs were measured with."""

    cores: CoreRangeSet
    body_cycles: float  # After the start of a core
    stages: Mapping[Stage, tuple[float, str]]  # How long each stage works in that time, and what it does
    steps: str  # That it is composed of, in words
    details: tuple[Detail, ...] = ()  # What was decided when the program was planned
    dram_read_bytes: int = 0
    dram_written_bytes: int = 0


class DataMovement(ModeledOp):
    """The base of operations whose cycles follow from the pages that they read and write, or from their steps."""

    __slots__ = ()

    LOCATES: ClassVar[bool] = False  # Its kernels work out by divisions where they begin among the axes

    @property
    def measured_as(self) -> str:
        """The class of the program for evidence of its cycles, if it is not the operation's name."""
        return ""

    @property
    def details(self) -> tuple[Detail, ...]:
        """The decisions besides the pages of both sides."""
        return ()

    def movement(self, read: TensorSpec, written: TensorSpec, spec: DeviceSpec) -> Movement:
        """The pages of the program: by default all of the source are waited for and all of the result are written."""
        return copy_movement(read, written, spec)

    def composed(self, ends: Ends, spec: DeviceSpec) -> Composed | None:
        """The steps of a program that does more than move pages; None if its `movement` says all."""
        return None

    def cycles(self, ends: Ends, spec: DeviceSpec) -> OperationCycles:
        """Cycles of the steps, or of the movement."""
        composed = self.composed(ends, spec)
        if composed is None:
            movement = self.movement(ends.read, ends.written, spec)
            return movement_cycles(replace(movement, locates=True) if self.LOCATES else movement, spec)
        busy = {stage: cycles for stage, (cycles, _) in composed.stages.items()}
        read, written = composed.dram_read_bytes, composed.dram_written_bytes
        body = composed.body_cycles
        return uniform_cycles(composed.cores, body, busy, spec, dram_read_bytes=read, dram_written_bytes=written)

    def describe(self, ends: Ends, spec: DeviceSpec) -> Description:
        """The description of the pages of both sides and of the stages."""
        composed = self.composed(ends, spec)
        if composed is not None:
            texts = {stage: text for stage, (_, text) in composed.stages.items()}
            return Description(
                facts=composed.details, stages=texts, composed_of=f"{composed.steps} as in other programs"
            )
        return Description(
            facts=lambda: (*_details(self.movement(ends.read, ends.written, spec)), *self.details),
            stages=lambda: _stage_texts(self.movement(ends.read, ends.written, spec)),
            measured_as=self.measured_as,
            composed_of="pages that are read and written as in other movements",
        )


def _details(movement: Movement) -> Iterator[Detail]:
    count = movement.cores.num_cores()
    yield Detail(name="cores", value=count, text="one core" if count == 1 else f"{count} cores")
    for side, way, pages in (("read", "from", movement.reads), ("written", "to", movement.writes)):
        if pages is not None:
            moved = (
                f"{pages.all_pages:,} {_kind(pages)} of {pages.page_bytes:,} B {side} {_place(movement, pages, way)}"
            )
            yield Detail(name=f"pages_{side}", value=pages.all_pages, text=f"{moved}, {pages.core_pages:,} by one core")


def _stage_texts(movement: Movement) -> dict[Stage, str]:
    texts = {
        Stage.TILIZE: "rows become tiles",
        Stage.UNTILIZE: "tiles become rows",
        Stage.NETWORK: "the pages of all cores pass the busiest link",
        Stage.DRAM: "DRAM delivers or takes the pages of all cores",
    }
    sides = (Stage.READER, "read", "from", movement.reads), (Stage.WRITER, "written", "to", movement.writes)
    for stage, done, way, pages in sides:
        if pages is not None:
            together = "" if pages.in_flight == 1 else f"{pages.in_flight} at a time, "
            how = f"{together}{pages.access.value[1]}"
            texts[stage] = f"{_kind(pages)} are {done} {_place(movement, pages, way)}, {how}"
    if movement.reads is not None and movement.reshards:
        texts[Stage.READER] = f"pieces of shards are read {_place(movement, movement.reads, 'from')}"
    elif movement.segments:
        texts[Stage.READER] += ", and pieces of rows moved between tiles"
    return texts


def _kind(pages: Pages) -> str:
    return "tiles" if pages.tiles else "sticks"


def _place(movement: Movement, pages: Pages, way: str) -> str:
    """The source or target memory of the pages of one side, by ``way``."""
    if not pages.in_dram and movement.reshards:
        return "from the L1 of other cores"
    if not pages.in_dram and pages.access in INSIDE:
        return "in L1"
    return f"{way} {'DRAM' if pages.in_dram else 'L1'}"
