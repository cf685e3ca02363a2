"""The cycles of a halo: padding, copies within a core, transfers that share links, and untilizing.

Two processors of a core work in parallel, each on its own network: they fetch their lists, if these are in DRAM, fill
their padding, and then send. Tiles are untilized in blocks of 32 rows, which alternate between the processors through
circular buffers of two blocks; a block is freed when it was written to all receivers. Sticks of a row-major input are
available from the start, and all cores begin together: each first copies the sticks that stay on it, then serves its
receivers in turn. So a block is a *round* there: the sticks that stay, those for the first receiver, for the second,
and so on; in a round, transfers of all cores share links.

The recurrence runs over blocks, with all cores in arrays: a core's processor ends block k at

    max(its end of block k - 1, untilized block k) + max(issue of its transfers, bytes to others / payload bandwidth of
        a link + max(bytes to itself / the same, bytes of others on its links / width of a link))

because a processor that waits for a link lets packets of others pass back to back, also while it copies to itself. At
the end it waits for the answers to its last writes. Source: the structure of tt-metal's halo kernels; constants by
`tools.calibrate`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.memory_config import TILE
from device.numbers.formats import Integers, div_up
from device.spec.device_spec import Costs, DeviceSpec
from device.spec.releases import release_of
from device.time import network
from device.time.links import busiest_link_bytes, routed_transfer, spread_transfer
from device.time.stages import (
    SHARED,
    CoreCycles,
    CoreGroupCycles,
    MovedBytes,
    OperationCycles,
    Stage,
    StageCycles,
    TileWork,
    Transfer,
)
from ops.op_model import Sent
from ops.programs.halo.plan import (
    BLOCK,
    PROCESSORS,
    UNTILIZE_BLOCK_STICKS,
    UNTILIZE_BUFFER_BLOCKS,
    WORD_BYTES,
    HaloArguments,
    HaloOp,
    HaloPlan,
    transfers_in_turns,
    turns,
)
from ops.programs.halo.transfers import Transfers, changes, count_transfers, list_transfers, padding_runs
from ops.programs.kernel_costs import TransferCosts, converted_work, read_page_cycles, untilize_row_cycles

Floats: TypeAlias = NDArray[np.float64]

ELEMENT_BYTES: Final = 2  # of a stick of padding, in writes of the processor (tt-metal, halo_gather.cpp)
STAGES: Final = (Stage.START, Stage.READER, Stage.SECOND_READER, Stage.UNTILIZE, Stage.NETWORK)
LEAST_CYCLES: Final = 0.5  # that are not rounded to none
STICK_PIECES: Final = 2  # in which padding that is not zero is copied (tt-metal, halo_gather.cpp)


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloCosts(Costs):
    """Constants of the halo model only; constants shared with other models are `TransferCosts` and `ComputeCosts`."""

    TABLE: ClassVar[str] = "halo_costs"

    start_cycles: float  # Kernel start and skew between cores
    pad_issue_cycles: float  # Between two copies into a run of padding
    fill_element_cycles: float  # Of a stick that a processor fills, for each element: of pools, and of old releases


class Batches(NamedTuple):
    """The data that a core sends to another core in a block; rows of the same pair of cores are adjacent."""

    transfers: Transfers
    processor: Integers  # [rows]
    block: Integers  # Of this processor


class HaloTraffic(NamedTuple):
    """The padding and the transfers of all cores that split the rows, for both processors of each."""

    blocks: int  # Blocks of both processors, which take turns
    padding_runs: Floats  # [processors, cores] runs of padding
    padding_sticks: Floats
    # Copies if they are zero: of as many sticks as there are zeros for, then of single ones; longer sticks in pieces
    zero_copies: Floats
    transfers: Floats  # [processors, cores, blocks of a processor] number of transfers
    local_bytes: Floats  # To its own core
    away_bytes: Floats  # To other cores
    crossing_bytes: Floats  # Of other routes, on links of the route of this core that meets most of them
    farthest_links: Integers  # [processors, cores] links that a write to the farthest receiver and its answer pass
    busiest_bytes: Floats  # [processors] bytes on the busiest link of the processor's network


def batches_of(plan: HaloPlan, *, by_task: bool) -> Batches:
    """All transfers, assigned to processors and blocks as the gather lists assign them.

    With ``by_task`` the first processor copies the sticks that stay on its core, and the second sends all others, after
    untilizing has ended (`device.spec.releases`).
    """
    halo = plan.arguments
    if halo.tiled or by_task:
        listing = list_transfers if halo.frame.replicate else count_transfers
        transfers = listing(halo.frame, plan.ranges, input_rows=halo.input_rows, block_rows=halo.block_rows)
        turn = np.where(transfers.source != transfers.destination, 1, 0) if by_task else turns(transfers, tiled=True)
    else:
        transfers, turn = transfers_in_turns(halo, plan.ranges, plan.pairs)
    if halo.tiled and by_task:
        return Batches(transfers, turn, np.zeros_like(turn))
    if halo.tiled:
        return Batches(transfers, turn, transfers.stick // (UNTILIZE_BLOCK_STICKS * PROCESSORS))
    # Rounds: 0 for what stays; for others the receiver's number, by sender and processor, from 1
    source, destination, cores = transfers.source, transfers.destination, halo.nhw_cores
    away, queue = source != destination, PROCESSORS * source + turn
    served = np.zeros((PROCESSORS * cores, cores), np.bool_)
    served[queue[away], destination[away]] = True
    return Batches(transfers, turn, served.cumsum(axis=1)[queue, destination] * away)


def halo_traffic(plan: HaloPlan, spec: DeviceSpec) -> HaloTraffic:
    """The padding and the transfers of all cores of a halo."""
    halo, by_task = plan.arguments, release_of(spec.release).halo_by_task
    batches = batches_of(plan, by_task=by_task)
    (source, _, destination, sticks, counts), processor, block = batches
    cores, sent, away = halo.nhw_cores, halo.row_bytes * sticks, source != destination
    blocks = div_up(halo.input_rows, UNTILIZE_BLOCK_STICKS)
    if not halo.tiled or by_task:
        blocks = PROCESSORS * (1 + int(block.max(initial=0)))
    shape, queue = (PROCESSORS * cores, max(1, div_up(blocks, PROCESSORS))), processor * cores + source
    transfers, local, own = (
        _table(queue, block, shape, weights).reshape(PROCESSORS, cores, -1)
        for weights in (counts, sent * ~away, sent * away)
    )
    torus = network.torus_of(spec)
    places = torus.places(*halo.order)
    crossing, farthest = np.zeros_like(own), np.zeros((PROCESSORS, cores), np.int64)
    busiest = np.zeros(PROCESSORS)
    for number, noc in enumerate(network.NETWORKS):
        gone = (away & (processor == number)).nonzero()[0]
        if len(gone):
            senders, receivers = source[gone], destination[gone]
            first = changes(senders * cores + receivers)
            ordinal = first.cumsum()
            routed = _table(ordinal - 1, block[gone], (int(ordinal[-1]), shape[1]), sent[gone])
            senders, receivers = senders[first], receivers[first]
            met = network.meetings(torus, noc, places.take(senders), places.take(receivers))
            shared = met.shared.astype(np.float64)
            shared *= in_the_way(senders, receivers, tiled=halo.tiled)
            _raise_rows(crossing[number], senders, network.passing_bytes(shared, routed))
            np.maximum.at(farthest[number], senders, met.round_links)
            busiest[number] = busiest_link_bytes(met.legs, routed.sum(axis=1))
    crossing = np.maximum(crossing - own, 0.0)  # what a core sends on its other routes is its own already
    runs, padding, copies = _padding(plan, spec.l1.zeros_bytes)
    if by_task:
        runs, padding = (np.array([np.zeros(cores), amounts.sum(axis=0)]) for amounts in (runs, padding))
        copies = padding  # stick by stick
    return HaloTraffic(blocks, runs, padding, copies, transfers, local, own, crossing, farthest, busiest)


def in_the_way(senders: Integers, receivers: Integers, *, tiled: bool) -> Floats:
    """[routes, routes] the part of the second route's bytes that delays the first on a shared link; or [1, 1].

    Within a block of tiles a core serves its receivers in order, so while it sends to a later core, other cores have on
    average sent half of their bytes to earlier cores. Rounds of sticks are in step.
    """
    if not tiled:
        return np.ones((1, 1))
    to_earlier = receivers < senders
    return np.where(to_earlier & ~to_earlier[:, None], 0.5, 1.0)


def _table(row: Integers, column: Integers, shape: tuple[int, int], weights: Integers) -> Floats:
    flat = np.bincount(row * shape[1] + column, weights=weights, minlength=shape[0] * shape[1])
    table: Floats = flat.reshape(shape).astype(np.float64, copy=False)
    return table


def _raise_rows(table: Floats, rows: Integers, values: Floats) -> None:
    """Raises entries of rows to larger ``values``, [rows, columns]; a row may occur several times."""
    width = table.shape[1]  # numpy is quicker with one axis
    np.maximum.at(table.reshape(-1), (rows[:, None] * width + np.arange(width)).ravel(), values.ravel())


def _padding(plan: HaloPlan, zeros_bytes: int) -> Floats:
    """[3, processors, cores] runs of padding, sticks and copies of zeros.

    The first processor has the first half of a core's runs, the second the rest.
    """
    ranges, runs, stick = plan.ranges, padding_runs(plan.arguments.frame), plan.arguments.row_bytes
    together = zeros_bytes // stick

    def amounts(sticks: Integers) -> Integers:
        """[2, ...] sticks of runs, and copies of them from a buffer of zeros."""
        if together > 1:
            return np.array([sticks, sum(np.divmod(sticks, together))])
        return np.array([sticks, sticks * div_up(stick, zeros_bytes)])

    low, high = runs.within(ranges)
    bounds, count = np.array([low, (low + high) // 2, high]), high - low
    below = runs.below(bounds, amounts)
    halves = below[:, 1:] - below[:, :-1]
    # A core's range may cut its first and its last run
    begin, end = runs.edges(np.array([low, np.maximum(high - 1, low)]))
    inside = (np.minimum(end, ranges.stops) - np.maximum(begin, ranges.starts)) * (count > 0)
    whole, kept = amounts(np.array([end - begin, inside])).swapaxes(0, 1)
    first, last = (whole - kept).swapaxes(0, 1)
    several = count > 1
    halves[:, 0] -= first * several
    halves[:, 1] -= np.where(several, last, first * (count > 0))
    return np.array([bounds[1:] - bounds[:-1], *halves], np.float64)


class HaloTimes(NamedTuple):
    """When a halo's processors are done, in cycles since its start."""

    begun: Floats  # [processors] when a processor knows what to do
    padded: Floats  # [processors, cores] when it has filled its padding
    sending: Floats  # What its transfers take with the links to themselves
    waiting: Floats  # What they wait for others on the same links
    free_ends: Floats  # When it would be done if they did not
    ends: Floats  # When it is done
    # [processors] blocks of [2, cores]: when it can begin each of its blocks, with the links to itself and as it is
    block_starts: Sequence[Sequence[Floats]]
    block_ends: Sequence[Sequence[Floats]]  # When it has sent it

    @property
    def cycles(self) -> float:
        """When the last processor of the last core is done."""
        return float(self.ends.max())


def halo_times(plan: HaloPlan, traffic: HaloTraffic, spec: DeviceSpec, *, filled_by_stick: bool = False) -> HaloTimes:
    """The recurrence: both processors of every core and its untilizing, block by block."""
    halo, costs, issue = plan.arguments, spec.costs_of(HaloCosts), spec.costs_of(TransferCosts)
    link, untilize = spec.noc.link_bytes_per_cycle, untilize_block_cycles(halo, spec)
    alone = spec.data_movement.processors == 1  # it does what both would, in turn

    def of_both(cycles: Floats) -> Floats:
        """[processors, ...] cycles of both processors; a single processor has the sum of both."""
        return np.broadcast_to(cycles.sum(axis=0), cycles.shape) if alone else cycles

    begun = costs.start_cycles + of_both(_config_cycles(plan, spec))
    padded = begun[:, None] + of_both(_filling_cycles(halo, traffic, spec, filled_by_stick=filled_by_stick))

    local, crossing = traffic.local_bytes / link, traffic.crossing_bytes / spec.noc.flit_bytes
    meanwhile = np.array([local, np.maximum(local, crossing)])  # with the links to itself, and as it is
    transfers = np.maximum(issue.write_issue_cycles * traffic.transfers, traffic.away_bytes / link + meanwhile)
    ends = [*padded[:, None].repeat(2, axis=1)]  # of both: with the links to themselves, and as it is
    given_back: list[list[Floats]] = [[] for _ in range(PROCESSORS)]
    starts: list[list[Floats]] = [[] for _ in range(PROCESSORS)]
    at_once = release_of(spec.release).halo_by_task  # all blocks are untilized before any is sent
    first_blocks = div_up(halo.input_rows, UNTILIZE_BLOCK_STICKS) if at_once else 0
    untilized: float | Floats = costs.start_cycles + first_blocks * untilize
    for number in range(traffic.blocks):
        block, processor = divmod(number, PROCESSORS)
        if halo.tiled and not at_once:
            if block >= UNTILIZE_BUFFER_BLOCKS:
                untilized = np.maximum(untilized, given_back[processor][block - UNTILIZE_BUFFER_BLOCKS])
            untilized = untilized + untilize
        before = ends[1 - processor] if alone and number else ends[processor]
        begun_block = np.maximum(before, untilized)
        ends[processor] = begun_block + transfers[:, processor, :, block]
        starts[processor].append(begun_block)
        given_back[processor].append(ends[processor])
    sending, together = transfers.sum(axis=3)
    ends = [_met(*each) for each in zip(starts, ends, sending, strict=True)]
    # From the last write to its answer, where there was anything to do
    busy = (traffic.transfers.sum(axis=2) > 0) | (traffic.padding_runs > 0)
    answers = busy * network.answer_cycles(spec.noc, traffic.farthest_links.astype(np.float64))
    free_ends, last_ends = np.array(ends).swapaxes(0, 1) + answers
    passed = begun[:, None] + (traffic.away_bytes.sum(axis=2) > 0) * traffic.busiest_bytes[:, None] / link
    last_ends = np.maximum(last_ends, passed)  # all that passes the busiest link has passed
    return HaloTimes(begun, padded, sending, together - sending, free_ends, last_ends, starts, given_back)


def _met(starts: Sequence[Floats], ends: Floats, sending: Floats) -> Floats:
    """End times of a processor, [2, cores], without and with contention: the last cores have no contention.

    The other cores are the half that begins first; more padding makes a core begin later.
    """
    alone, shared = ends
    if not starts:
        return ends
    first = starts[0][1]
    others_end = shared[first <= np.sort(first)[(len(first) - 1) // 2]].max()
    return np.array([alone, np.minimum(shared, np.maximum(alone, others_end + sending))])


def _filling_cycles(halo: HaloArguments, traffic: HaloTraffic, spec: DeviceSpec, *, filled_by_stick: bool) -> Floats:
    """[processors, cores] cycles in which a processor fills its padding, from zeros or a stick that it writes first."""
    costs, issue = spec.costs_of(HaloCosts), spec.costs_of(TransferCosts)
    by_task = release_of(spec.release).halo_by_task
    copies = STICK_PIECES * traffic.padding_sticks if filled_by_stick and not by_task else traffic.zero_copies
    each = issue.read_issue_cycles if by_task else costs.pad_issue_cycles
    wire = traffic.padding_sticks * halo.row_bytes / spec.noc.link_bytes_per_cycle
    stick = costs.fill_element_cycles * halo.row_bytes / ELEMENT_BYTES if filled_by_stick or by_task else 0.0
    fills = traffic.padding_runs.sum(axis=1, keepdims=True) > 0
    filling: Floats = fills * stick + issue.read_issue_cycles * traffic.padding_runs + np.maximum(each * copies, wire)
    return filling


def _config_cycles(plan: HaloPlan, spec: DeviceSpec) -> Floats:
    """[processors] cycles until the lists of a core have arrived: all cores read from DRAM at once, or have them."""
    if not plan.arguments.config_tensors_in_dram:
        return np.zeros(PROCESSORS)
    sizes = [tensor.shape[-1] * WORD_BYTES for _, tensor in plan.resident]
    fetched = [
        sum(read_page_cycles(spec, size) for size in sizes[processor::PROCESSORS]) for processor in range(PROCESSORS)
    ]
    return network.read_latency_cycles(spec) + np.maximum(fetched, network.shared_cycles(spec, _config_bytes(plan)))


def _config_bytes(plan: HaloPlan) -> int:
    """Bytes of config tensors that all cores read from DRAM."""
    halo = plan.arguments
    if not halo.config_tensors_in_dram:
        return 0
    return halo.cores.num_cores() * WORD_BYTES * sum(tensor.shape[-1] for _, tensor in plan.resident)


def untilize_block_cycles(halo: HaloArguments, spec: DeviceSpec) -> float:
    """Cycles to untilize a block of 32 rows; none for a row-major input."""
    return untilize_row_cycles(spec, div_up(halo.shard_width, TILE)) if halo.tiled else 0.0


def halo_cycles(plan: HaloPlan, spec: DeviceSpec, *, filled_by_stick: bool = False) -> OperationCycles:
    """Cycles of a halo."""
    halo, traffic = plan.arguments, halo_traffic(plan, spec)
    times = halo_times(plan, traffic, spec, filled_by_stick=filled_by_stick)
    cores = _Cores(halo, traffic, times, spec)
    return OperationCycles(
        cycles=times.cycles,
        groups=lambda: _groups(halo, cores.table),
        slowest=lambda: _slowest(halo, cores.table),
        cores=halo.cores.num_cores(),
        working=lambda: cores.working,
        dram_read_bytes=_config_bytes(plan),
        contention_cycles=lambda: times.cycles - float(times.free_ends.max()),
        moved=lambda: _moved(halo, traffic.away_bytes.sum(axis=(0, 2)), _config_bytes(plan)),
        core_cycles=lambda: _core_cycles(halo, cores.table),
        transfers=partial(_halo_transfers, plan, spec),
        tile_work=partial(_tile_work, halo, traffic),
    )


class _Cores:
    """The cycles of the cores of a halo by stage, computed on access."""

    def __init__(self, halo: HaloArguments, traffic: HaloTraffic, times: HaloTimes, spec: DeviceSpec) -> None:
        self._halo, self._traffic, self._times, self._spec = halo, traffic, times, spec

    @property
    def _spent(self) -> tuple[float | Floats, ...]:
        """Busy cycles of each of `STAGES`: [cores], or one number for all cores."""
        times = self._times
        first, second = times.padded - times.begun[:, None] + times.sending
        untilizing = self._traffic.blocks * untilize_block_cycles(self._halo, self._spec)
        first_waits, second_waits = times.waiting
        waiting = np.where(times.ends[0] >= times.ends[1], first_waits, second_waits)  # of the last to end
        return float(times.begun.max()), first, second, untilizing, waiting

    @property
    def working(self) -> frozenset[Stage]:
        """The stages that work for a cycle, rounded, on any core."""
        return frozenset(
            stage for stage, cycles in zip(STAGES, self._spent, strict=True) if np.max(cycles) > LEAST_CYCLES
        )

    @cached_property
    def table(self) -> Floats:
        """[cores, 1 + stages] whole cycles: the end of each core, and the busy cycles of each of `STAGES`."""
        table = np.empty((1 + len(STAGES), self._halo.nhw_cores))
        for row, cycles in zip(table, (self._times.ends.max(axis=0), *self._spent), strict=True):
            row[:] = cycles
        return np.rint(table, out=table).T


def _core_cycles(halo: HaloArguments, table: Floats) -> CoreCycles:
    """The cycles of all cores, including cores that repeat a halo, from a table of `_table_of_cores`."""
    own = [number for number, stage in enumerate(STAGES, start=1) if stage not in SHARED]
    ends, again = table[:, 0], halo.cores.num_cores() // halo.nhw_cores
    busy = np.minimum(ends, table[:, own].max(axis=1))
    return CoreCycles(again * int(ends.sum()), again * int(busy.sum()))


def _halo_transfers(plan: HaloPlan, spec: DeviceSpec) -> tuple[Transfer, ...]:
    """The transfers between cores on each network, and of config tensors from DRAM."""
    halo, transfers = plan.arguments, []
    batches, places = batches_of(plan, by_task=release_of(spec.release).halo_by_task), _places(halo)
    table = batches.transfers
    for number, noc in enumerate(network.NETWORKS):
        gone = np.flatnonzero((table.source != table.destination) & (batches.processor == number))
        for alike in places if len(gone) else ():
            cols, rows = np.array([core.x for core in alike]), np.array([core.y for core in alike])
            ends = network.torus_of(spec).places(cols, rows)
            sent = table.sticks[gone].astype(np.int64) * halo.row_bytes
            route = ends.take(table.source[gone]), ends.take(table.destination[gone])
            transfers.append(routed_transfer(spec, noc, *route, sent))
    if config := _config_bytes(plan):
        transfers.append(spread_transfer(spec, halo.cores, config, in_dram=True, writes=False))
    return tuple(transfers)


def _tile_work(halo: HaloArguments, traffic: HaloTraffic) -> TileWork:
    """Tiles that all cores untilize, and sticks that stay on their core, padding among them."""
    width, cores = div_up(halo.shard_width, TILE), halo.cores.num_cores()
    tiles = cores * traffic.blocks * width if halo.tiled else 0
    stays = halo.channel_cores * int(traffic.local_bytes.sum() + halo.row_bytes * traffic.padding_sticks.sum())
    return converted_work(tiles, halo.data_format, halo.data_format)._replace(copied_bytes=stays)


def _moved(halo: HaloArguments, away: Floats, config_bytes: int) -> tuple[MovedBytes, ...]:
    """Bytes to other cores, by all cores that send as many; and the config tensors, which all cores read."""
    sent = []
    for size in np.unique(away).tolist():
        numbers = np.flatnonzero(away == size)
        sent.append(MovedBytes(_core_set(halo, numbers), 0, halo.channel_cores * int(size) * len(numbers)))
    return (MovedBytes(halo.cores, config_bytes, 0), *sent)


def _slowest(halo: HaloArguments, table: Floats) -> CoreGroupCycles:
    """The group of cores that ends last."""
    last = min(table[table[:, 0] == table[:, 0].max()].tolist())
    return _group(halo, last, np.flatnonzero((table == last).all(axis=1)))


def _groups(halo: HaloArguments, table: Floats) -> tuple[CoreGroupCycles, ...]:
    """Groups of cores whose end and stages take the same cycles: equal rows of a table with a column for each."""
    kinds, kind = np.unique(table, axis=0, return_inverse=True)
    members = [np.flatnonzero(kind.ravel() == number) for number in range(len(kinds))]
    return tuple(_group(halo, row, numbers) for row, numbers in zip(kinds.tolist(), members, strict=True))


def _group(halo: HaloArguments, row: Sequence[float], numbers: Integers) -> CoreGroupCycles:
    """The group of cores with these numbers, from its row of the table."""
    end, *spent = row
    return CoreGroupCycles(
        cores=_core_set(halo, numbers),
        cycles=end,
        stages=tuple([StageCycles(stage, busy) for stage, busy in zip(STAGES, spent, strict=True) if busy]),
    )


def _places(halo: HaloArguments) -> list[list[CoreCoord]]:
    """The cores that split the rows; BLOCK repeats a halo in every column (or row) of cores."""
    (x, y), box = halo.order, halo.cores.bounding_box()
    across = bool(y.any())  # cores of a column follow each other, and columns repeat them
    return [
        [
            CoreCoord(box.start.x + column + (again if across else 0), box.start.y + row + (0 if across else again))
            for column, row in zip(x.tolist(), y.tolist(), strict=True)
        ]
        for again in range((box.cols if across else box.rows) if halo.scheme is BLOCK else 1)
    ]


def _core_set(halo: HaloArguments, numbers: Integers) -> CoreRangeSet:
    """The cores with these numbers."""
    if len(numbers) == halo.nhw_cores:
        return halo.cores
    places = _places(halo)
    return CoreRangeSet([CoreRange(places[0][number], places[-1][number]) for number in numbers.tolist()])


def halo_sent(op: HaloOp, spec: DeviceSpec) -> tuple[Sent, ...]:
    """Bytes from core to core, by network, sender and receiver.

    All data from one core to another on one network is one entry, from the start of its first block to the end of its
    last. Copies within a core are excluded.
    """
    plan = op.plan
    times = halo_times(plan, halo_traffic(plan, spec), spec, filled_by_stick=op.filled_by_stick)
    batches = batches_of(plan, by_task=release_of(spec.release).halo_by_task)
    return tuple(sent for processor in range(PROCESSORS) for sent in _sent(batches, processor, plan.arguments, times))


def _sent(batches: Batches, processor: int, halo: HaloArguments, times: HaloTimes) -> Iterator[Sent]:
    table = batches.transfers
    gone = np.flatnonzero((table.source != table.destination) & (batches.processor == processor))
    routes, route = np.unique(table.source[gone] * halo.nhw_cores + table.destination[gone], return_inverse=True)
    sizes = np.bincount(route, weights=table.sticks[gone], minlength=len(routes)).astype(int) * halo.row_bytes
    block = batches.block[gone]
    first, last = np.full(len(routes), block.max(initial=0)), np.zeros(len(routes), np.int64)
    np.minimum.at(first, route, block)
    np.maximum.at(last, route, block)
    for size, ends, low, high in zip(sizes.tolist(), routes.tolist(), first.tolist(), last.tolist(), strict=True):
        source, destination = divmod(ends, halo.nhw_cores)
        for places in _places(halo):
            yield Sent(
                network=processor,
                source=(places[source].x, places[source].y),
                destination=(places[destination].x, places[destination].y),
                size_bytes=size,
                start_cycle=float(times.block_starts[processor][low][1, source]),
                end_cycle=float(times.block_ends[processor][high][1, source]),
            )
