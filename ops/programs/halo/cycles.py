"""What a halo takes: padding, copies within a core, transfers that meet on links, and untilizing in between.

Two processors of a core work side by side, each on a network of its own: first they fetch what tells them what to do,
if that lies in DRAM, then they fill their padding, then they send. Tiles are untilized in blocks of 32 rows, which go
to the processors in turn through circular buffers of two blocks; a block is given back once it was written to all who
need it. So the recurrence runs over blocks (of a row-major input: rounds, see `traffic`), with all cores side by side
in arrays: a core's processor ends block k at

    max(its end of block k - 1, untilized block k) + max(issue of its transfers, bytes to others / what a link carries
        of contents + max(bytes to itself / the same, bytes of others on its links / width of a link))

for whoever waits for a link sees others' packets pass back to back, and while it copies to itself, they pass as well.
In the end it waits for the answers to its last writes. Source: the structure of tt-metal's halo kernels; constants by
`tools.calibrate`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.memory_config import TILE
from device.numbers.formats import Integers, div_up
from device.spec.device_spec import Costs, DeviceSpec
from device.time.network import answer_cycles, read_latency_cycles, shared_cycles
from device.time.stages import CoreGroupCycles, MovedBytes, OperationCycles, Stage, StageCycles, binding_stage
from ops.op_model import Sent
from ops.programs.halo.config_tensors import PROCESSORS, WORD_BYTES, CoreOrder
from ops.programs.halo.plan import BLOCK, UNTILIZE_BUFFER_BLOCKS, HaloArguments, HaloOp, HaloPlan, core_order
from ops.programs.halo.traffic import Batches, Filling, HaloTraffic, Sending, batches_of, halo_traffic, stick_bytes
from ops.programs.kernel_costs import TransferCosts, read_page_cycles, untilize_row_cycles


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


Floats: TypeAlias = NDArray[np.float64]


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
