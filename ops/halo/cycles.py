"""What a halo takes: padding, copies within a core, transfers that meet on links, and untilising in between.

Two processors of a core work side by side, each on a network of its own: first its padding, then its transfers.
Row-major sticks are all there from the start. Tiles are untilised in blocks of 32 rows, which go to the processors in
turn through circular buffers of two blocks; a block is given back once all it was written to has answered. So the
recurrence runs over blocks, with all cores side by side in arrays: a core's processor ends block k at

    max(its end of block k - 1, untilised block k) + transfers + bytes that must pass / link rate

where those bytes are its own and a share of all that cross its routes in the same block (`device.noc`). Source: the
structure of tt-metal's halo kernels; constants by `tools.calibrate`.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.noc import NETWORKS, Places, passing_bytes, sharing, worker_places
from device.rounding import div_up
from device.spec import DeviceSpec
from device.tiles import TILE
from device.timing import CoreGroupCycles, OperationCycles, Stage, StageCycles, binding_stage
from ops.halo.config_tensors import WORD_BYTES, deal_transfers
from ops.halo.gather_sizes import PROCESSORS, UNTILIZE_BLOCK_STICKS
from ops.halo.plan import BLOCK, UNTILIZE_BUFFER_BLOCKS, WIDTH, HaloArguments, HaloPlan, core_order, halo_format
from ops.halo.transfers import Transfers, list_padding, list_transfers, ordinals

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Gather:
    """What one processor of every core sends.

    Attributes:
        sent_bytes: [cores, blocks] to other cores.
        passing_bytes: What must pass on the links of its routes, those bytes included.
        local_bytes: To its own core.
        transfers: Number of transfers.
    """

    sent_bytes: Floats
    passing_bytes: Floats
    local_bytes: Floats
    transfers: Floats


@dataclass(frozen=True, slots=True)
class _Times:
    """Of every core, in cycles.

    Attributes:
        padding: [processors, cores] when a processor has filled its padding.
        ends: When a processor is done.
        untilised: [cores] when the last block is untilised; 0 without untilising.
    """

    padding: Floats
    ends: Floats
    untilised: Floats


def halo_cycles(
    plan: HaloPlan, spec: DeviceSpec, *, filled_by_stick: bool = False, contention: bool = True
) -> OperationCycles:
    """Cycles of a halo.

    Args:
        plan: The halo.
        spec: The machine.
        filled_by_stick: Padding is not zero (a maximum pool's), so that every stick of it is copied by itself.
        contention: Whether transfers wait for others on the same links.
    """
    a = plan.arguments
    padding = _padding_cycles(plan, spec, filled_by_stick=filled_by_stick)
    gathers = [_gather(a, spec, one, processor) for processor, one in enumerate(_dealt(plan))]
    alone = [replace(gather, passing_bytes=gather.sent_bytes) for gather in gathers]
    free = _recurrence(a, spec, padding, alone)
    if not contention:
        gathers = alone
    times = _recurrence(a, spec, padding, gathers)
    groups = _groups(a, spec, padding, gathers, times)
    columns = a.channel_cores
    return OperationCycles(
        cycles=float(times.ends.max()),
        groups=groups,
        bound_by=binding_stage(max(groups, key=lambda group: group.cycles).stages),
        dram_read_bytes=_config_bytes(plan),
        network_bytes=columns * int(sum(gather.sent_bytes.sum() for gather in gathers)),
        contention_cycles=float(times.ends.max() - free.ends.max()),
    )


def _config_bytes(plan: HaloPlan) -> int:
    """Bytes of config tensors that all cores read from DRAM."""
    a = plan.arguments
    if not a.config_tensors_in_dram:
        return 0
    return a.cores.num_cores() * WORD_BYTES * sum(made.shape[-1] for _, made in plan.resident)


def _stick_bytes(a: HaloArguments) -> int:
    return a.shard_width * (halo_format(a.data_format).element_bytes or 0)


def _dealt(plan: HaloPlan) -> tuple[Transfers, Transfers]:
    """The transfers of both processors."""
    a = plan.arguments
    block_rows = UNTILIZE_BLOCK_STICKS if a.tiled else 0
    listed = list_transfers(a.frame, plan.ranges, input_rows=a.input_rows, block_rows=block_rows)
    return deal_transfers(listed, core_order(a), tiled=a.tiled)


def _padding_cycles(plan: HaloPlan, spec: DeviceSpec, *, filled_by_stick: bool) -> Floats:
    """[processors, cores] cycles of filling the padding: the first processor has the first half of a core's runs."""
    a, costs = plan.arguments, spec.halo_costs
    padding = list_padding(a.frame, plan.ranges)
    runs = np.bincount(padding.core, minlength=a.nhw_cores)
    second = ordinals(runs) >= (runs // 2)[padding.core]
    if filled_by_stick:
        cycles = costs.segment_cycles + spec.noc.read_issue_cycles * padding.length
    else:
        sticks_per_write = max(1, costs.pad_write_bytes // _stick_bytes(a))
        cycles = costs.segment_cycles + costs.pad_write_cycles * -(-padding.length // sticks_per_write)
    return np.stack(
        [
            np.bincount(padding.core, weights=np.where(second == bool(processor), cycles, 0.0), minlength=a.nhw_cores)
            for processor in range(PROCESSORS)
        ]
    )


def _gather(a: HaloArguments, spec: DeviceSpec, dealt: Transfers, processor: int) -> _Gather:
    """What one processor of every core sends in every block."""
    cores = a.nhw_cores
    blocks = max(1, (_blocks(a) + PROCESSORS - 1 - processor) // PROCESSORS)
    block = dealt.source_stick // UNTILIZE_BLOCK_STICKS // PROCESSORS if a.tiled else np.zeros_like(dealt.source_stick)
    pairs, pair = np.unique(dealt.source_core * cores + dealt.destination_core, return_inverse=True)
    source, destination = np.divmod(pairs, cores)
    sent = _table(pair, block, (len(pairs), blocks), dealt.length * _stick_bytes(a))
    away = np.flatnonzero(source != destination)
    local = np.zeros((cores, blocks))
    at_home = np.flatnonzero(source == destination)
    local[source[at_home]] = sent[at_home]
    places = _places(a, spec)
    shared = sharing(spec.noc, NETWORKS[processor], places.take(source[away]), places.take(destination[away]))
    passing = passing_bytes(shared, sent[away], spec.halo_costs.waiting_share)
    # A core's routes follow each other: what it sends itself is not waited for twice.
    own = np.zeros((cores, blocks))
    np.add.at(own, source[away], sent[away])
    most = np.zeros((cores, blocks))
    np.maximum.at(most, source[away], passing)
    return _Gather(own, np.maximum(own, most), local, _table(dealt.source_core, block, (cores, blocks), None))


def _table(
    row: NDArray[np.int64], column: NDArray[np.int64], shape: tuple[int, int], weights: NDArray[np.int64] | None
) -> Floats:
    """Sums of weights, or counts, by row and column."""
    flat = np.bincount(row * shape[1] + column, weights=weights, minlength=shape[0] * shape[1])
    table: Floats = flat.reshape(shape).astype(np.float64)
    return table


def _places(a: HaloArguments, spec: DeviceSpec) -> Places:
    """Where the cores that split the rows lie in the torus."""
    order = core_order(a)
    return worker_places(spec.noc, order.x, order.y)


def _blocks(a: HaloArguments) -> int:
    """Blocks a core untilises; a row-major input is one block for each processor."""
    return div_up(a.input_rows, UNTILIZE_BLOCK_STICKS) if a.tiled else PROCESSORS


def _untilise_cycles(a: HaloArguments, spec: DeviceSpec) -> float:
    """Cycles to untilise a block of 32 rows."""
    if not a.tiled:
        return 0.0
    costs, tiles = spec.halo_costs, div_up(a.shard_width, TILE)
    narrow = tiles <= spec.compute.dst_half_tiles(fp32_dest=False)
    tile_cycles = costs.untilise_narrow_tile_cycles if narrow else costs.untilise_wide_tile_cycles
    return costs.untilise_block_cycles + tiles * tile_cycles


def _transfer_cycles(spec: DeviceSpec, gather: _Gather) -> Floats:
    """[cores, blocks] cycles until all transfers of a block have arrived."""
    noc = spec.noc
    moved = (gather.local_bytes + gather.passing_bytes) / noc.link_bytes_per_cycle
    cycles: Floats = noc.write_issue_cycles * gather.transfers + moved
    return cycles


def _recurrence(a: HaloArguments, spec: DeviceSpec, padding: Floats, gathers: list[_Gather]) -> _Times:
    """Both processors of every core and its untilising, block by block."""
    costs, untilise = spec.halo_costs, _untilise_cycles(a, spec)
    begin = costs.start_cycles + (costs.dram_config_cycles if a.config_tensors_in_dram else 0)
    filled = begin + padding
    ends = [filled[processor] for processor in range(PROCESSORS)]
    given_back: list[list[Floats]] = [[] for _ in range(PROCESSORS)]
    transfers = [_transfer_cycles(spec, gather) for gather in gathers]
    untilised = np.full(a.nhw_cores, float(costs.start_cycles))
    for number in range(_blocks(a)):
        block, processor = divmod(number, PROCESSORS)
        if a.tiled:
            if block >= UNTILIZE_BUFFER_BLOCKS:
                untilised = np.maximum(untilised, given_back[processor][block - UNTILIZE_BUFFER_BLOCKS])
            untilised = untilised + untilise
        ends[processor] = np.maximum(ends[processor], untilised) + transfers[processor][:, block]
        given_back[processor].append(ends[processor])
    return _Times(filled, np.stack(ends), untilised)


def _groups(
    a: HaloArguments, spec: DeviceSpec, padding: Floats, gathers: list[_Gather], times: _Times
) -> tuple[CoreGroupCycles, ...]:
    """Cores whose stages take the same cycles, rounded to whole ones."""
    rate = spec.noc.link_bytes_per_cycle
    moved = [
        (gather.transfers * spec.noc.write_issue_cycles + (gather.local_bytes + gather.sent_bytes) / rate).sum(axis=1)
        for gather in gathers
    ]
    waits = [((gather.passing_bytes - gather.sent_bytes) / rate).sum(axis=1) for gather in gathers]
    begin = times.padding[0] - padding[0]
    untilise = np.full(a.nhw_cores, _blocks(a) * _untilise_cycles(a, spec))
    last = times.ends.argmax(axis=0)
    network = np.where(last == 0, waits[0], waits[1])
    busy = [begin, padding[0] + moved[0], padding[1] + moved[1], untilise, network]
    table = np.rint(np.stack([times.ends.max(axis=0), *busy], axis=1))
    rows, group = np.unique(table, axis=0, return_inverse=True)
    stages = (Stage.START, Stage.READER, Stage.SECOND_READER, Stage.UNTILISE, Stage.NETWORK)
    made = []
    for number, (cycles, *stage_cycles) in enumerate(rows.tolist()):
        made.append(
            CoreGroupCycles(
                cores=_core_set(a, np.flatnonzero(group.ravel() == number)),
                cycles=cycles,
                stages=tuple(
                    StageCycles(stage, spent) for stage, spent in zip(stages, stage_cycles, strict=True) if spent
                ),
            )
        )
    return tuple(made)


def _core_set(a: HaloArguments, numbers: NDArray[np.int64]) -> CoreRangeSet:
    """The cores that these cores stand for: BLOCK repeats a halo in every column (or row), WIDTH on every core."""
    if a.scheme is WIDTH:
        return a.cores
    order, box = core_order(a), a.cores.bounding_box()
    ranges = []
    for x, y in zip(order.x[numbers].tolist(), order.y[numbers].tolist(), strict=True):
        start = end = CoreCoord(box.start.x + x, box.start.y + y)
        if a.scheme is BLOCK:
            down = bool(order.x.any())
            end = CoreCoord(start.x if down else box.end.x, box.end.y if down else start.y)
        ranges.append(CoreRange(start, end))
    return CoreRangeSet(tuple(ranges))
