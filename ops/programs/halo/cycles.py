"""What a halo takes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.memory_config import TILE
from device.numbers.formats import Integers, div_up
from device.spec.device_spec import Costs, DeviceSpec
from device.time.network import (
    NETWORKS,
    Network,
    Places,
    Torus,
    answer_cycles,
    passing_bytes,
    read_latency_cycles,
    round_links,
    shared_cycles,
    sharing,
    torus_of,
)
from device.time.stages import CoreGroupCycles, MovedBytes, OperationCycles, Stage, StageCycles, binding_stage
from ops.op_model import Sent
from ops.programs.halo.plan import (
    BLOCK,
    PROCESSORS,
    UNTILIZE_BLOCK_STICKS,
    UNTILIZE_BUFFER_BLOCKS,
    WORD_BYTES,
    CoreOrder,
    HaloArguments,
    HaloOp,
    HaloPlan,
    core_order,
    halo_format,
    turns,
)
from ops.programs.halo.transfers import (
    StickRanges,
    Transfers,
    changes,
    count_transfers,
    list_transfers,
    padding_runs,
)
from ops.programs.kernel_costs import TransferCosts, read_page_cycles, untilize_row_cycles

Floats: TypeAlias = NDArray[np.float64]

PIECES_OF_A_STICK = 2  # in which padding that is not zero is copied (tt-metal, halo_gather.cpp)


@dataclass(frozen=True, slots=True)
class Filling:
    """Padding that one processor of every core fills."""

    runs: Floats  # [cores] runs of padding
    sticks: Floats
    # Copies if they are zero: of as many sticks as there are zeros for, then of single ones; longer sticks in pieces
    zero_copies: Floats

    def copies(self, *, zero: bool) -> Floats:
        """[cores] copies that fill it with zeros, or with another value."""
        return self.zero_copies if zero else PIECES_OF_A_STICK * self.sticks


@dataclass(frozen=True, slots=True)
class Sending:
    """What one processor of every core sends."""

    transfers: Floats  # [cores, blocks] number of transfers
    local_bytes: Floats  # To its own core
    away_bytes: Floats  # To other cores
    crossing_bytes: Floats  # Of other routes, on links of the route of this core that meets most of them
    farthest_links: Integers  # [cores] links that a write to the farthest receiver and its answer pass


@dataclass(frozen=True, slots=True)
class HaloTraffic:
    """The transfers and the padding of all cores that split the rows."""

    blocks: int  # Blocks of both processors, which take turns
    filling: tuple[Filling, ...]  # Of both processors
    sending: tuple[Sending, ...]  # Of both processors


@dataclass(frozen=True, slots=True)
class Batches:
    """A table with a row for what a core sends to another in a block; rows of the same two cores are neighbors."""

    source: Integers  # [batches] core that sends
    destination: Integers  # Core that receives
    processor: Integers
    block: Integers
    transfers: Integers  # How many
    sticks: Integers


def halo_traffic(plan: HaloPlan, spec: DeviceSpec) -> HaloTraffic:
    """The transfers and the padding of all cores of a halo."""
    halo = plan.arguments
    batches = batches_of(plan)
    blocks = div_up(halo.input_rows, UNTILIZE_BLOCK_STICKS)
    if not halo.tiled:
        blocks = PROCESSORS * (1 + int(batches.block.max(initial=0)))
    return HaloTraffic(blocks, _filling(halo, plan.ranges, spec.l1.zeros_bytes), _sending(batches, plan, blocks, spec))


def stick_bytes(halo: HaloArguments) -> int:
    """Bytes of a stick of the output."""
    return halo.shard_width * (halo_format(halo.data_format).element_bytes or 0)


def batches_of(plan: HaloPlan) -> Batches:
    """All transfers, assigned to processors and blocks as the gather lists assign them."""
    halo, ranges = plan.arguments, plan.ranges
    frame, input_rows, block_rows = halo.frame, halo.input_rows, UNTILIZE_BLOCK_STICKS if halo.tiled else 0
    if halo.tiled and not frame.replicate:
        counted = count_transfers(frame, ranges, input_rows=input_rows, block_rows=block_rows)
        block, turn = np.divmod(counted.source_block, PROCESSORS)
        return Batches(counted.source_core, counted.destination_core, turn, block, counted.transfers, counted.sticks)
    listed = list_transfers(frame, ranges, input_rows=input_rows, block_rows=block_rows)
    turn = turns(listed, tiled=halo.tiled)
    block = listed.source_stick // UNTILIZE_BLOCK_STICKS // PROCESSORS if halo.tiled else _rounds(listed, turn)
    return Batches(listed.source_core, listed.destination_core, turn, block, np.ones_like(turn), listed.length)


def _rounds(transfers: Transfers, turn: Integers) -> Integers:
    """[transfers] 0 for transfers that stay; for others the receiver's number, by sender and processor, from 1."""
    source, destination = transfers.source_core, transfers.destination_core
    away = source != destination
    order = np.lexsort((destination, away, turn, source))
    queue = (source * PROCESSORS + turn)[order]
    first = changes(queue)
    next_one = away[order] & (first | changes(destination[order]))
    count = np.cumsum(next_one)
    before = np.maximum.accumulate(np.where(first, count - next_one, 0))
    rounds = np.empty_like(order)
    rounds[order] = count - before
    return rounds


def _zero_copies(stick: int, zeros: int, sticks: Integers) -> Integers:
    """Copies from a buffer of zeros that fill each run of padding sticks."""
    together = zeros // stick
    if together <= 1:
        return sticks * div_up(stick, zeros)
    return sticks // together + sticks % together


def _filling(halo: HaloArguments, ranges: StickRanges, zeros_bytes: int) -> tuple[Filling, ...]:
    """The padding of each processor: the first has the first half of a core's runs, the second the rest."""
    runs, copies = padding_runs(halo.frame), partial(_zero_copies, stick_bytes(halo), zeros_bytes)
    low, high = runs.within(ranges)
    edges = np.array([low, np.maximum(high - 1, low)])
    begin, end = runs.begins(edges), runs.ends(edges)  # of the first and the last run, which a core's range cuts
    whole, data_sticks = end - begin, (np.minimum(end, ranges.stops) - np.maximum(begin, ranges.starts)) * (high > low)
    cut = np.array([whole - data_sticks, copies(whole) - copies(data_sticks)])
    bounds = np.array([low, (low + high) // 2, high])
    below = runs.below(bounds, copies)
    halves = below[:, 1:] - below[:, :-1]
    several = high - low > 1
    halves[:, 0] -= cut[:, 0] * several
    halves[:, 1] -= np.where(several, cut[:, 1], cut[:, 0] * (high > low))
    array = np.array([bounds[1:] - bounds[:-1], *halves], np.float64)
    return tuple(starmap(Filling, array.swapaxes(0, 1)))


def _sending(batches: Batches, plan: HaloPlan, blocks: int, spec: DeviceSpec) -> tuple[Sending, ...]:
    """The transfers of both processors of every core, in so many blocks of both together."""
    halo = plan.arguments
    cores = halo.nhw_cores
    shape = PROCESSORS * cores, max(1, div_up(blocks, PROCESSORS))
    queue, sent = batches.processor * cores + batches.source, stick_bytes(halo) * batches.sticks
    away = batches.source != batches.destination
    of_all = [_table(queue, batches.block, shape, done) for done in (batches.transfers, sent * ~away, sent * away)]
    torus = torus_of(spec)
    places = torus.places(plan.order.x, plan.order.y)
    sending = []
    for processor, network in enumerate(NETWORKS):
        count = max(1, (blocks + PROCESSORS - 1 - processor) // PROCESSORS)
        transfers, local, own = (table[processor * cores : (processor + 1) * cores, :count] for table in of_all)
        gone = np.flatnonzero(away & (batches.processor == processor))
        crossing, farthest = _crossing(batches, gone, sent[gone], count, places, torus, network)
        others = np.maximum(crossing - own, 0.0)  # what a core sends on its other routes is its own already
        sending.append(Sending(transfers, local, own, others, farthest))
    return tuple(sending)


def _crossing(
    batches: Batches, gone: Integers, sent: Integers, blocks: int, places: Places, torus: Torus, network: Network
) -> tuple[Floats, Integers]:
    """[cores, blocks] bytes on the route of a core that meets most, and [cores] links to its farthest receiver."""
    cores = len(places.col)
    crossing, farthest = np.zeros((cores, blocks)), np.zeros(cores, np.int64)
    if len(gone):
        source, destination = batches.source[gone], batches.destination[gone]
        first = changes(source * cores + destination)
        route, source, destination = np.cumsum(first) - 1, source[first], destination[first]
        senders, receivers = places.take(source), places.take(destination)
        routed = _table(route, batches.block[gone], (len(source), blocks), sent)
        np.maximum.at(crossing, source, passing_bytes(sharing(torus, network, senders, receivers), routed))
        np.maximum.at(farthest, source, round_links(torus, senders, receivers))
    return crossing, farthest


def _table(row: Integers, column: Integers, shape: tuple[int, int], weights: Integers) -> Floats:
    flat = np.bincount(row * shape[1] + column, weights=weights, minlength=shape[0] * shape[1])
    table: Floats = flat.reshape(shape).astype(np.float64, copy=False)
    return table


@dataclass(frozen=True, slots=True, kw_only=True)
class HaloCosts(Costs):
    """Constants of the model of the halo program; what it shares with others is `TransferCosts` and `ComputeCosts`.

    Attributes:
        start_cycles: Kernel start and skew between cores.
        pad_issue_cycles: Between two copies into a run of padding.
    """

    TABLE: ClassVar[str] = "halo_costs"

    start_cycles: float
    pad_issue_cycles: float


@dataclass(frozen=True, slots=True)
class HaloTimes:
    """When a halo's processors are done, in cycles since its start."""

    begun: Floats  # [processors] when a processor knows what to do
    padded: Floats  # [processors, cores] when it has filled its padding
    sending: Floats  # What its transfers take with the links to themselves
    waiting: Floats  # What they wait for others on the same links
    free_ends: Floats  # When it would be done if they did not
    ends: Floats  # When it is done
    block_starts: Sequence[Sequence[Floats]]  # [processors] blocks of [cores]: when it can begin each of its blocks
    block_ends: Sequence[Sequence[Floats]]  # When it has sent it

    @property
    def cycles(self) -> float:
        """When the last processor of the last core is done."""
        return float(self.ends.max())

    def alone(self) -> "HaloTimes":
        """As they would be if no transfer waited for others."""
        return replace(self, waiting=np.zeros_like(self.waiting), ends=self.free_ends)


def halo_cycles(
    plan: HaloPlan, spec: DeviceSpec, *, filled_by_stick: bool = False, contention: bool = True
) -> OperationCycles:
    """Cycles of a halo."""
    halo = plan.arguments
    traffic = halo_traffic(plan, spec)
    times = halo_times(plan, traffic, spec, filled_by_stick=filled_by_stick)
    if not contention:
        times = times.alone()
    busy = _busy_cycles(halo, spec, traffic, times)
    table = np.rint(np.array([times.ends.max(axis=0), *busy.values()])).T
    last = min(table[table[:, 0] == table[:, 0].max()].tolist())
    order = plan.order
    slowest = _group(halo, order, tuple(busy), last, np.flatnonzero((table == last).all(axis=1)))
    return OperationCycles(
        cycles=times.cycles,
        groups=partial(_groups, halo, order, tuple(busy), table),
        slowest=slowest,
        cores=halo.cores.num_cores(),
        working=lambda: frozenset(stage for stage, cycles in zip(busy, table[:, 1:].T, strict=True) if cycles.any()),
        bound_by=binding_stage(slowest.stages),
        dram_read_bytes=_config_bytes(plan),
        network_bytes=halo.channel_cores * int(sum(sending.away_bytes.sum() for sending in traffic.sending)),
        contention_cycles=times.cycles - float(times.free_ends.max()),
        moved=partial(_moved, halo, order, traffic.sending, _config_bytes(plan)),
    )


def halo_times(plan: HaloPlan, traffic: HaloTraffic, spec: DeviceSpec, *, filled_by_stick: bool = False) -> HaloTimes:
    """The recurrence: both processors of every core and its untilizing, block by block."""
    halo, costs = plan.arguments, spec.costs_of(HaloCosts)
    untilize = untilize_block_cycles(halo, spec)
    alone = spec.data_movement.processors == 1  # it does what both would, in turn
    begun = costs.start_cycles + _locked(_config_cycles(plan, spec), alone=alone)
    stick, zero = stick_bytes(halo), not filled_by_stick
    filled = np.array([_filling_cycles(spec, end, stick, zero=zero) for end in traffic.filling])
    padded = begun[:, None] + _locked(filled, alone=alone)
    transfers = [_transfer_cycles(spec, sender) for sender in traffic.sending]
    ends = [np.array([end, end]) for end in padded]  # of both: with the links to themselves, and as it is
    given_back: list[list[Floats]] = [[] for _ in range(PROCESSORS)]
    starts: list[list[Floats]] = [[] for _ in range(PROCESSORS)]
    untilized: float | Floats = costs.start_cycles
    for number in range(traffic.blocks):
        block, processor = divmod(number, PROCESSORS)
        if halo.tiled:
            if block >= UNTILIZE_BUFFER_BLOCKS:
                untilized = np.maximum(untilized, given_back[processor][block - UNTILIZE_BUFFER_BLOCKS])
            untilized = untilized + untilize
        before = ends[1 - processor] if alone and number else ends[processor]
        begun_block = np.maximum(before, untilized)
        ends[processor] = begun_block + transfers[processor][..., block]
        starts[processor].append(begun_block)
        given_back[processor].append(ends[processor])
    answers = [_answer_cycles(spec, *op) for op in zip(traffic.filling, traffic.sending, strict=True)]
    free_ends, last_ends = np.array(ends).swapaxes(0, 1) + np.array(answers)
    sending, together = np.array([transfer.sum(axis=2) for transfer in transfers]).swapaxes(0, 1)
    blocks = ([[end[1] for end in each] for each in both] for both in (starts, given_back))
    return HaloTimes(begun, padded, sending, together - sending, free_ends, last_ends, *blocks)


def _locked(cycles: Floats, *, alone: bool) -> Floats:
    """[processors, ...] cycles of both processors; a single processor has the sum of both."""
    return np.broadcast_to(cycles.sum(axis=0), cycles.shape) if alone else cycles


def _config_cycles(plan: HaloPlan, spec: DeviceSpec) -> Floats:
    """[processors] cycles until the lists of a core have arrived: all cores read from DRAM at once, or have them."""
    if not plan.arguments.config_tensors_in_dram:
        return np.zeros(PROCESSORS)
    sizes = np.array([result.shape[-1] * WORD_BYTES for _, result in plan.resident]).reshape(-1, PROCESSORS)
    fetched = [sum(read_page_cycles(spec, size) for size in lists) for lists in sizes.T.tolist()]
    return read_latency_cycles(spec) + np.maximum(fetched, shared_cycles(spec, _config_bytes(plan)))


def _filling_cycles(spec: DeviceSpec, filling: Filling, stick: int, *, zero: bool) -> Floats:
    """[cores] cycles until all padding is filled; the copies of a run share their setup."""
    setup, copy = spec.costs_of(TransferCosts).read_issue_cycles, spec.costs_of(HaloCosts).pad_issue_cycles
    wire = filling.sticks * stick / spec.noc.link_bytes_per_cycle
    return setup * filling.runs + np.maximum(copy * filling.copies(zero=zero), wire)


def _answer_cycles(spec: DeviceSpec, filling: Filling, sending: Sending) -> Floats:
    """[cores] cycles from the last write to its answer; none where there was nothing to do."""
    busy = (sending.transfers.sum(axis=1) > 0) | (filling.runs > 0)
    answered: Floats = busy * answer_cycles(spec.noc, sending.farthest_links.astype(np.float64))
    return answered


def untilize_block_cycles(halo: HaloArguments, spec: DeviceSpec) -> float:
    """Cycles to untilize a block of 32 rows; none for a row-major input."""
    return untilize_row_cycles(spec, div_up(halo.shard_width, TILE)) if halo.tiled else 0.0


def _transfer_cycles(spec: DeviceSpec, sending: Sending) -> Floats:
    """[2, cores, blocks] cycles until all transfers of a block have arrived: with the links to itself, and as it is."""
    link, issued = spec.noc.link_bytes_per_cycle, spec.costs_of(TransferCosts).write_issue_cycles * sending.transfers
    local, crossing = sending.local_bytes / link, sending.crossing_bytes / spec.noc.flit_bytes
    meanwhile = np.array([local, np.maximum(local, crossing)])
    cycles: Floats = np.maximum(issued, sending.away_bytes / link + meanwhile)
    return cycles


def _config_bytes(plan: HaloPlan) -> int:
    """Bytes of config tensors that all cores read from DRAM."""
    halo = plan.arguments
    if not halo.config_tensors_in_dram:
        return 0
    return halo.cores.num_cores() * WORD_BYTES * sum(result.shape[-1] for _, result in plan.resident)


def _busy_cycles(halo: HaloArguments, spec: DeviceSpec, traffic: HaloTraffic, times: HaloTimes) -> dict[Stage, Floats]:
    working = times.padded - times.begun[:, None] + times.sending
    return {
        Stage.START: np.full(halo.nhw_cores, float(times.begun.max())),
        Stage.READER: working[0],
        Stage.SECOND_READER: working[1],
        Stage.UNTILIZE: np.full(halo.nhw_cores, traffic.blocks * untilize_block_cycles(halo, spec)),
        Stage.NETWORK: np.where(times.ends.argmax(axis=0) == 0, *times.waiting),
    }


def _moved(
    halo: HaloArguments, order: CoreOrder, sending: Sequence[Sending], config_bytes: int
) -> tuple[MovedBytes, ...]:
    """Bytes to other cores, by all cores that send as many; and the config tensors, which all cores read."""
    sent, away = [], np.sum([sender.away_bytes.sum(axis=1) for sender in sending], axis=0)  # [cores] to other cores
    for size in np.unique(away).tolist():
        numbers = np.flatnonzero(away == size)
        total = halo.channel_cores * int(size) * len(numbers)
        sent.append(MovedBytes(_core_set(halo, order, numbers), 0, total))
    return (MovedBytes(halo.cores, config_bytes, 0), *sent)


def _groups(
    halo: HaloArguments, order: CoreOrder, stages: Sequence[Stage], table: Floats
) -> tuple[CoreGroupCycles, ...]:
    """Groups of cores whose end and stages take the same cycles: equal rows of a table with a column for each."""
    kinds, kind = np.unique(table, axis=0, return_inverse=True)
    members = kind.ravel()
    return tuple(
        _group(halo, order, stages, row, np.flatnonzero(members == number)) for number, row in enumerate(kinds.tolist())
    )


def _group(
    halo: HaloArguments, order: CoreOrder, stages: Sequence[Stage], row: Sequence[float], numbers: Integers
) -> CoreGroupCycles:
    """The group of the cores with these numbers, from its row of the table."""
    end, *spent = row
    return CoreGroupCycles(
        cores=_core_set(halo, order, numbers),
        cycles=end,
        stages=tuple([StageCycles(stage, busy) for stage, busy in zip(stages, spent, strict=True) if busy]),
    )


def _core_set(halo: HaloArguments, order: CoreOrder, numbers: Integers) -> CoreRangeSet:
    """The cores that the numbers stand for: BLOCK repeats a halo in every column (or row)."""
    if len(numbers) == halo.nhw_cores:
        return halo.cores
    box, down = halo.cores.bounding_box(), bool(order.y.any())
    ranges = []
    for x, y in zip(order.x[numbers].tolist(), order.y[numbers].tolist(), strict=True):
        start = end = CoreCoord(box.start.x + x, box.start.y + y)
        if halo.scheme is BLOCK:
            end = CoreCoord(box.end.x, start.y) if down else CoreCoord(start.x, box.end.y)
        ranges.append(CoreRange(start, end))
    return CoreRangeSet(ranges)


def halo_sent(op: HaloOp, spec: DeviceSpec) -> tuple[Sent, ...]:
    """Bytes from core to core, by network, sender and receiver.

    All that a core sends to another on one network is one entry, from the start of its first block to the end of its
    last. What stays on its core is left out.
    """
    plan = op.plan
    times = halo_times(plan, halo_traffic(plan, spec), spec, filled_by_stick=op.filled_by_stick)
    batches = batches_of(plan)
    return tuple(sent for processor in range(PROCESSORS) for sent in _sent(batches, processor, plan.arguments, times))


def _sent(batches: Batches, processor: int, halo: HaloArguments, times: HaloTimes) -> Iterator[Sent]:
    gone = np.flatnonzero((batches.source != batches.destination) & (batches.processor == processor))
    routes, route = np.unique(batches.source[gone] * halo.nhw_cores + batches.destination[gone], return_inverse=True)
    sizes = np.bincount(route, weights=batches.sticks[gone], minlength=len(routes)).astype(int) * stick_bytes(halo)
    first, last = _ends(route, batches.block[gone], len(routes))
    for size, ends, low, high in zip(sizes.tolist(), routes.tolist(), first.tolist(), last.tolist(), strict=True):
        source, destination = divmod(ends, halo.nhw_cores)
        for places in _places(halo):
            yield Sent(
                network=processor,
                source=places[source],
                destination=places[destination],
                size_bytes=size,
                start_cycle=float(times.block_starts[processor][low][source]),
                end_cycle=float(times.block_ends[processor][high][source]),
            )


def _ends(route: Integers, block: Integers, routes: int) -> tuple[Integers, Integers]:
    """[routes] the first and the last block of each."""
    first, last = np.full(routes, block.max(initial=0)), np.zeros(routes, np.int64)
    np.minimum.at(first, route, block)
    np.maximum.at(last, route, block)
    return first, last


def _places(halo: HaloArguments) -> Iterator[list[tuple[int, int]]]:
    """Column and row of each core that splits the rows; BLOCK repeats a halo in every column (or row) of cores."""
    box, order = halo.cores.bounding_box(), core_order(halo)
    down = bool(order.y.any())
    repeats = range((box.cols if down else box.rows) if halo.scheme is BLOCK else 1)
    for again in repeats:
        x, y = (again, 0) if down else (0, again)
        columns, rows = (order.x + box.start.x + x).tolist(), (order.y + box.start.y + y).tolist()
        yield list(zip(columns, rows, strict=True))
