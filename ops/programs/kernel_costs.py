"""Costs that the kernels of several programs share: compute, pages, sticks, transfers."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import ClassVar, Final, NamedTuple

from device.numbers.formats import DataFormat, div_up
from device.spec.device_spec import Costs, DeviceSpec
from device.time.engine import Task, task_of
from device.time.network import answer_cycles, page_cycles, page_round_trip_cycles, shared_cycles, torus_of
from device.time.stages import Stage, TileWork


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferCosts(Costs):
    """The cycles of a data movement processor for each transfer."""

    TABLE: ClassVar[str] = "transfer_costs"

    read_issue_cycles: float  # Between two reads whose addresses are worked out
    stateful_issue_cycles: float  # Between two transfers that repeat the settings of the one before
    write_issue_cycles: float  # Between two writes whose addresses are worked out
    batch_issue_cycles: float  # Between two reads of pages of an interleaved buffer by kernels compiled for its banks
    page_issue_cycles: float  # Between two reads of pages of an interleaved buffer, whose banks are worked out as well
    # Before the first page, where a processor works out by divisions where it lies among axes that may be repeated
    locate_cycles: float
    axis_cycles: float  # For each axis by which a processor divides to find the place of a page
    shard_page_cycles: float  # Beyond an interleaved page, for a page whose core is found among shards by divisions
    multicast_receiver_cycles: float  # Of a multicast, for each packet and receiver
    increment_cycles: float  # Between two increments of one semaphore by other cores


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeCosts(Costs):
    """The cycles of the compute threads for each call, in addition to those of the widths of `ComputeSpec`."""

    TABLE: ClassVar[str] = "compute_costs"

    tilize_tile_cycles: float  # Of tilizing, for each tile
    # More for each tile of other formats than bfloat16, which programs that only tilize take tile by tile
    tilize_single_cycles: float
    tilize_row_cycles: float  # For each row of tiles
    tilize_call_cycles: float  # For each block
    untilize_block_cycles: float  # Of untilizing, for each row of tiles
    untilize_narrow_tile_cycles: float  # For each tile of rows that fit one half of the destination registers
    untilize_wide_tile_cycles: float  # For each tile of wider rows
    window_tile_cycles: float  # Of tilizing what lies under a window for a reduction, for each tile
    window_row_cycles: float  # For each row of such a tile
    matmul_call_cycles: float  # For each K tile of a sub-block
    subblock_cycles: float  # For each sub-block
    block_cycles: float  # For each block, and for bias and untilize passes
    reload_cycles: float  # For each reload of partials
    reload_tile_cycles: float  # For each reloaded tile
    add_tile_cycles: float  # For each tile that is added to another, as a bias is
    vector_tile_cycles: float  # For each tile that passes through the vector unit once


@dataclass(frozen=True, slots=True, kw_only=True)
class StickCosts(Costs):
    """Reading and writing pages that are waited for, and sticks, as measured in data movement programs."""

    TABLE: ClassVar[str] = "movement_costs"

    start_cycles: float  # Kernel start and skew between cores
    write_access_ns: float  # Of a write to DRAM, from its arrival at a bank to its acknowledgment
    page_rate_share: float  # Part of a bank's rate that one core gets for one page
    wait_share: float  # Part of the pages of all other cores that a page waits behind, each of which is waited for
    group_wait_share: float  # The same of sticks that are asked for in groups
    dram_write_share: float  # Part of the DRAM bandwidth that writing cores get
    dram_turn_share: float  # Part of it that is left where the banks read and write in turns
    dram_stick_share: float  # Part of it that cores reading sticks get
    stick_cycles: float  # Between two sticks that one core reads, or writes out of a row of tiles
    stick_write_cycles: float  # Between two sticks of a shard written to DRAM


def unpack_tile_cycles(spec: DeviceSpec, tile_bytes: float) -> float:
    """Cycles to unpack a tile from L1 into the matrix unit's registers."""
    return max(spec.compute.unpack_tile_cycles, tile_bytes / spec.compute.unpack_bytes_per_cycle)


def pack_tile_cycles(spec: DeviceSpec, tile_bytes: float) -> float:
    """Cycles to pack a tile from the destination registers to L1."""
    return tile_bytes / spec.compute.pack_bytes_per_cycle


def tilize_tile_cycles(spec: DeviceSpec, source: DataFormat, target: DataFormat) -> float:
    """Cycles to tilize the sticks of one tile: unpack, then pack."""
    return spec.costs_of(ComputeCosts).tilize_tile_cycles + convert_tile_cycles(spec, source, target)


def tilize_block_cycles(spec: DeviceSpec, tiles: int, source: DataFormat, target: DataFormat) -> float:
    """Sticks of a block of tiles become these tiles."""
    return spec.costs_of(ComputeCosts).tilize_call_cycles + tiles * tilize_tile_cycles(spec, source, target)


def convert_tile_cycles(spec: DeviceSpec, source: DataFormat, target: DataFormat) -> float:
    """Cycles to unpack a tile from one format and pack it in another; transposing is assumed to be free."""
    return unpack_tile_cycles(spec, source.tile_bytes) + pack_tile_cycles(spec, target.tile_bytes)


def untilize_row_cycles(spec: DeviceSpec, width_tiles: int) -> float:
    """Cycles to untilize a row of tiles: by the packer if it fits one half of the destination registers."""
    return spec.costs_of(ComputeCosts).untilize_block_cycles + width_tiles * untilize_tile_cycles(spec, width_tiles)


def untilize_tile_cycles(spec: DeviceSpec, width_tiles: int) -> float:
    """One tile of a row with the given number of tiles."""
    costs = spec.costs_of(ComputeCosts)
    narrow = width_tiles <= spec.compute.dst_half_tiles(fp32_dest=False)
    return costs.untilize_narrow_tile_cycles if narrow else costs.untilize_wide_tile_cycles


def reduce_window_cycles(spec: DeviceSpec, tiles: int, rows: int, products: float) -> float:
    """Cycles to tilize the rows of a window, and to reduce their columns with products of the matrix unit."""
    costs = spec.costs_of(ComputeCosts)
    tilized = costs.window_tile_cycles + rows * costs.window_row_cycles
    return costs.subblock_cycles + tiles * max(tilized, products)


def add_row_cycles(spec: DeviceSpec, tiles: float) -> float:
    """A row is added to the tiles of an output block, as a bias is."""
    costs = spec.costs_of(ComputeCosts)
    return costs.block_cycles + tiles * costs.add_tile_cycles


CACHED_BLOCKS: Final = 4096  # of products, whose tasks are cached for a device


class ProductBlock(NamedTuple):
    """The tiles that a core multiplies in one K block."""

    subblock_height: int  # Rows of a sub-block, what one half of the destination registers holds
    subblock_width: int
    subblocks: float  # Sub-blocks of the block; not whole where a core's last block is a part of one
    depth: float  # K tiles
    first_format: DataFormat
    second_format: DataFormat
    packed_format: DataFormat  # Of what the packer writes
    fidelity_phases: int


def multiply_tasks(spec: DeviceSpec, block: ProductBlock, *reloads: bool) -> tuple[Task, ...]:
    """One K block: unpackers and matrix unit together, the packer one sub-block later.

    There is a task for each element of `reloads`, which says whether partial sums are reloaded.
    """
    return spec.derived(_cached_tasks)(block, reloads)


def _cached_tasks(spec: DeviceSpec) -> Callable[[ProductBlock, tuple[bool, ...]], tuple[Task, ...]]:
    """The function `_multiply_tasks` of a device with a cache, because searches ask for few different blocks."""
    return lru_cache(maxsize=CACHED_BLOCKS)(partial(_multiply_tasks, spec))


def _multiply_tasks(spec: DeviceSpec, block: ProductBlock, reloads: tuple[bool, ...]) -> tuple[Task, ...]:
    costs, subblocks = spec.costs_of(ComputeCosts), block.subblocks
    tiles = block.subblock_height * block.subblock_width
    products = tiles * spec.compute.phase_cycles * block.fidelity_phases
    fed, waited = unpack_cycles(spec, block)
    multiply = block.depth * products
    behind = block.depth * (max(waited, fed - products) + costs.matmul_call_cycles)
    pack, ahead = tiles * pack_tile_cycles(spec, block.packed_format.tile_bytes), multiply + behind
    waited_for = multiply if fed <= products else 0.0  # slower unpackers are what is waited for

    def task(reload: bool) -> Task:
        fetched = costs.reload_cycles + tiles * costs.reload_tile_cycles if reload else 0.0
        path = {
            Stage.MATH: subblocks * waited_for,
            Stage.UNPACK: costs.block_cycles + subblocks * (ahead - waited_for + fetched),
            Stage.PACK: subblocks * (costs.subblock_cycles + max(0.0, pack - ahead - fetched)) + min(pack, ahead),
        }
        busy = {
            Stage.MATH: subblocks * multiply,
            Stage.UNPACK: subblocks * (block.depth * (fed + costs.matmul_call_cycles) + fetched),
            Stage.PACK: subblocks * pack,
        }
        return task_of(path, busy)

    return tuple(map(task, reloads))


def unpack_cycles(spec: DeviceSpec, block: ProductBlock) -> tuple[float, float]:
    """Cycles of the unpackers for one K tile of a sub-block, and cycles that products always wait.

    The operand of the shorter side of the sub-block stays in the matrix unit, some tiles at a time
    (`ComputeSpec.stationary_tiles`), while all tiles of the other operand stream through. There are this many register
    banks, at least two. Tiles with a free bank are fetched ahead; other tiles are fetched during the last product only,
    while the other unpacker fetches the first streamed tile.
    """
    (staying, stays), (streaming, streams) = fetched_tiles(spec, block)
    together, stream = spec.compute.stationary_tiles, unpack_tile_cycles(spec, streams.tile_bytes)
    streamed = streaming * stream
    tile, product = unpack_tile_cycles(spec, stays.tile_bytes), spec.compute.phase_cycles * block.fidelity_phases
    whole, rest = divmod(staying, together)
    late = [(count, max(0, 2 * kept - max(2, together)) * tile) for count, kept in ((whole, together), (1, rest))]
    fed, waited = (sum(count * max(0.0, fetch - meanwhile) for count, fetch in late) for meanwhile in (stream, product))
    return streamed + fed, waited


def fetched_tiles(spec: DeviceSpec, block: ProductBlock) -> tuple[tuple[int, DataFormat], tuple[int, DataFormat]]:
    """The tiles that are unpacked for a K tile of a sub-block: stationary tiles and streamed tiles."""
    stays, streams = block.first_format, block.second_format
    if block.subblock_height > block.subblock_width:
        stays, streams = streams, stays
    staying, others = sorted((block.subblock_height, block.subblock_width))
    return (staying, stays), (div_up(staying, spec.compute.stationary_tiles) * others, streams)


def product_work(
    spec: DeviceSpec,
    block: ProductBlock,
    *,
    products: int,
    outputs: int,
    k_blocks: int,
    reloads: int,
    partials: DataFormat,
    row: DataFormat | None = None,
) -> TileWork:
    """The tiles that all cores unpack and pack for tile products.

    `outputs` are output tiles, which pass the packer once for each of `k_blocks`; `reloads` are the K blocks that fetch
    the partial sums back. With a `row`, which is added, finished sums are unpacked and packed once more.
    """
    unpacked = [
        (round(Fraction(products * tiles, block.subblock_height * block.subblock_width)), data_format)
        for tiles, data_format in fetched_tiles(spec, block)
    ]
    unpacked.append((outputs * reloads, partials))
    packed = [(outputs * (k_blocks - (row is None)), partials), (outputs, block.packed_format)]
    if row is not None:
        unpacked += [(outputs, partials), (outputs, row)]
    return TileWork(*_together(unpacked), *_together(packed))


def _together(tiles: Sequence[tuple[int, DataFormat]]) -> tuple[int, int]:
    """The number and the bytes of tiles of several formats."""
    return sum(count for count, _ in tiles), sum(count * data_format.tile_bytes for count, data_format in tiles)


def converted_work(tiles: int, source: DataFormat, target: DataFormat) -> TileWork:
    """The work of tiles that are unpacked from one format and packed in another: tilize, untilize, cast, transpose."""
    return TileWork(tiles, tiles * source.tile_bytes, tiles, tiles * target.tile_bytes)


def core_round_trip_cycles(spec: DeviceSpec) -> float:
    """Mean round trip to the L1 of a core over all cores; some are in the same row, some in the same column."""
    torus, grid = torus_of(spec), spec.grid
    return answer_cycles(spec.noc, torus.cols * (1 - 1 / grid.cols) + torus.rows * (1 - 1 / grid.rows))


def waited_read_cycles(spec: DeviceSpec, page_bytes: float, *, in_dram: bool, readers: int = 0) -> float:
    """Cycles of a page, from DRAM or another core, that is awaited before the next request.

    `readers` are the cores that do the same at the same time; 0 ignores them.
    """
    if not in_dram:
        return core_round_trip_cycles(spec) + page_bytes / spec.noc.link_bytes_per_cycle
    costs = spec.costs_of(StickCosts)
    behind = costs.wait_share * shared_cycles(spec, readers * page_bytes)
    return page_round_trip_cycles(spec, page_bytes, costs.page_rate_share) + behind


def write_latency_cycles(spec: DeviceSpec, *, in_dram: bool) -> float:
    """Round trip of a small write."""
    if not in_dram:
        return core_round_trip_cycles(spec)
    return torus_of(spec).round_trip_cycles + spec.costs_of(StickCosts).write_access_ns * spec.clock_hz / 1e9


def mean_write_latency_cycles(spec: DeviceSpec, *, in_dram: bool) -> float:
    """Round trip of a small write, in the mean over cores and banks."""
    access = spec.costs_of(StickCosts).write_access_ns * spec.clock_hz / 1e9
    return core_round_trip_cycles(spec) + (access if in_dram else 0.0)


def waited_write_cycles(spec: DeviceSpec, page_bytes: float, *, in_dram: bool) -> float:
    """A page that is written and waited for."""
    return write_latency_cycles(spec, in_dram=in_dram) + page_bytes / spec.noc.link_bytes_per_cycle


def read_stick_cycles(spec: DeviceSpec, stick_bytes: float, *, readers: int = 0) -> float:
    """A stick of DRAM in a group that is requested and then waited for; arguments as in `waited_read_cycles`."""
    costs = spec.costs_of(StickCosts)
    behind = costs.group_wait_share * shared_cycles(spec, readers * stick_bytes)
    return costs.stick_cycles + page_cycles(spec, stick_bytes, costs.page_rate_share) + behind


def write_stick_cycles(spec: DeviceSpec, stick_bytes: float) -> float:
    """A stick that is written, and not waited for."""
    return max(spec.costs_of(StickCosts).stick_write_cycles, stick_bytes / spec.noc.link_bytes_per_cycle)


def burst_cycles(
    issue_cycles: float, count: int, transfer_bytes: float, latency_cycles: float, bytes_per_cycle: float
) -> float:
    """Cycles of transfers of one size until the last answer: its latency, and all bytes."""
    wire = transfer_bytes / bytes_per_cycle
    return (count - 1) * max(issue_cycles, wire) + latency_cycles + wire


def local_sticks_cycles(spec: DeviceSpec, count: int, stick_bytes: float) -> float:
    """Sticks that a core copies within its own L1, over its network, until the last is there."""
    if not count:
        return 0.0
    issue = spec.costs_of(TransferCosts).stateful_issue_cycles
    return burst_cycles(issue, count, stick_bytes, answer_cycles(spec.noc, 0), spec.noc.link_bytes_per_cycle)


def read_page_cycles(spec: DeviceSpec, page_bytes: float) -> float:
    """Cycles between two pages of an interleaved buffer that a core reads: issue, or wire time.

    The issue includes the computation of the bank, which also precedes lines that are written into pages.
    """
    return max(spec.costs_of(TransferCosts).page_issue_cycles, page_bytes / spec.noc.link_bytes_per_cycle)


def write_page_cycles(spec: DeviceSpec, page_bytes: float) -> float:
    """Between two pages that a core writes: issued, or on the wire."""
    return max(spec.costs_of(TransferCosts).write_issue_cycles, page_bytes / spec.noc.link_bytes_per_cycle)


def multicast_cycles(spec: DeviceSpec, sent_bytes: float, receivers: int) -> float:
    """Cycles of a multicast of a block to several cores on a reserved path; every receiver accepts every packet."""
    packets = math.ceil(sent_bytes / spec.noc.packet_bytes)
    receiving = spec.costs_of(TransferCosts).multicast_receiver_cycles * receivers
    return packets * receiving + sent_bytes / spec.noc.link_bytes_per_cycle


def multicast_burst_cycles(
    spec: DeviceSpec, count: int, transfer_bytes: int, receivers: int, links: int, *, linked: bool
) -> float:
    """Cycles of multicasts of one size until the last answer; a write to the farthest receiver and back passes `links`.

    A packet first reserves its path, half of the links of the round trip, unless it keeps the path of the previous
    packet, as linked multicasts do up to the last one.
    """
    packets = math.ceil(transfer_bytes / spec.noc.packet_bytes)
    reserved = (packets if linked else count * packets) * answer_cycles(spec.noc, links / 2)
    single = multicast_cycles(spec, transfer_bytes, receivers)
    before = (count - 1) * max(single, spec.costs_of(TransferCosts).write_issue_cycles)
    return reserved + before + single + answer_cycles(spec.noc, links)
