"""What a halo takes: padding, copies within a core, transfers that meet on links, and untilizing in between.

Two processors of a core work side by side, each on a network of its own: first its padding, then its transfers.
Row-major sticks are all there from the start. Tiles are untilized in blocks of 32 rows, which go to the processors in
turn through circular buffers of two blocks; a block is given back once all it was written to has answered. So the
recurrence runs over blocks, with all cores side by side in arrays: a core's processor ends block k at

    max(its end of block k - 1, untilized block k) + issue of its transfers + bytes that must pass / link rate

where those bytes are its own and a share of all that cross its routes in the same block (`network`). Source: the
structure of tt-metal's halo kernels; constants by `tools.calibrate`.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.tiles import TILE
from device.numbers.integers import div_up
from device.spec.device_spec import DeviceSpec
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles, binding_stage
from ops.programs.actions.compute import untilize_row_cycles
from ops.programs.actions.costs import TransferCosts
from ops.programs.halo.config_tensors import PROCESSORS, WORD_BYTES
from ops.programs.halo.costs import HaloCosts
from ops.programs.halo.plan import BLOCK, UNTILIZE_BUFFER_BLOCKS, WIDTH, HaloArguments, HaloPlan, core_order
from ops.programs.halo.traffic import HaloTraffic, Sending, halo_traffic

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HaloTimes:
    """When a halo's processors are done, in cycles since its start.

    Attributes:
        padded: [processors, cores] when a processor has filled its padding.
        ends: When it is done.
    """

    padded: Floats
    ends: Floats

    @property
    def cycles(self) -> float:
        """When the last processor of the last core is done."""
        return float(self.ends.max())


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
    halo = plan.arguments
    traffic = halo_traffic(plan, spec)
    alone = _without_contention(traffic)
    free = halo_times(halo, alone, spec, filled_by_stick=filled_by_stick)
    if not contention:
        traffic, times = alone, free
    else:
        times = halo_times(halo, traffic, spec, filled_by_stick=filled_by_stick)
    groups = _groups(halo, spec, traffic, times)
    return OperationCycles(
        cycles=times.cycles,
        groups=groups,
        bound_by=binding_stage(max(groups, key=lambda group: group.cycles).stages),
        dram_read_bytes=_config_bytes(plan),
        network_bytes=halo.channel_cores * int(sum(one.away_bytes.sum() for one in traffic.sending)),
        contention_cycles=times.cycles - free.cycles,
    )


def halo_times(
    halo: HaloArguments, traffic: HaloTraffic, spec: DeviceSpec, *, filled_by_stick: bool = False
) -> HaloTimes:
    """The recurrence: both processors of every core and its untilizing, block by block."""
    costs, issue = spec.costs_of(HaloCosts), spec.costs_of(TransferCosts)
    untilize = untilize_block_cycles(halo, spec)
    begin = costs.start_cycles + (costs.dram_config_cycles if halo.config_tensors_in_dram else 0)
    fill = [
        costs.segment_cycles * one.runs
        + (issue.read_issue_cycles * one.sticks if filled_by_stick else issue.stateful_issue_cycles * one.writes)
        for one in traffic.filling
    ]
    alone = spec.data_movement.processors == 1  # it does what both would, in turn
    padded = begin + np.stack([sum(fill)] * PROCESSORS if alone else fill)
    ends = list(padded)
    given_back: list[list[Floats]] = [[] for _ in range(PROCESSORS)]
    transfers = [_transfer_cycles(spec, one) for one in traffic.sending]
    untilized = np.full(halo.nhw_cores, float(costs.start_cycles))
    for number in range(traffic.blocks):
        block, processor = divmod(number, PROCESSORS)
        if halo.tiled:
            if block >= UNTILIZE_BUFFER_BLOCKS:
                untilized = np.maximum(untilized, given_back[processor][block - UNTILIZE_BUFFER_BLOCKS])
            untilized = untilized + untilize
        before = ends[1 - processor] if alone and number else ends[processor]
        ends[processor] = np.maximum(before, untilized) + transfers[processor][:, block]
        given_back[processor].append(ends[processor])
    return HaloTimes(padded, np.stack(ends))


def untilize_block_cycles(halo: HaloArguments, spec: DeviceSpec) -> float:
    """Cycles to untilize a block of 32 rows; none for a row-major input."""
    return untilize_row_cycles(spec, div_up(halo.shard_width, TILE)) if halo.tiled else 0.0


def _transfer_cycles(spec: DeviceSpec, sending: Sending) -> Floats:
    """[cores, blocks] cycles until all transfers of a block have arrived."""
    moved = sending.local_bytes + sending.away_bytes + spec.costs_of(HaloCosts).waiting_share * sending.crossing_bytes
    cycles: Floats = (
        spec.costs_of(TransferCosts).write_issue_cycles * sending.transfers + moved / spec.noc.link_bytes_per_cycle
    )
    return cycles


def _without_contention(traffic: HaloTraffic) -> HaloTraffic:
    """The same work with the links to itself."""
    return replace(
        traffic,
        sending=tuple(replace(one, crossing_bytes=np.zeros_like(one.crossing_bytes)) for one in traffic.sending),
    )


def _config_bytes(plan: HaloPlan) -> int:
    """Bytes of config tensors that all cores read from DRAM."""
    halo = plan.arguments
    if not halo.config_tensors_in_dram:
        return 0
    return halo.cores.num_cores() * WORD_BYTES * sum(made.shape[-1] for _, made in plan.resident)


def _groups(
    halo: HaloArguments, spec: DeviceSpec, traffic: HaloTraffic, times: HaloTimes
) -> tuple[CoreGroupCycles, ...]:
    """Cores whose stages take the same cycles, rounded to whole ones."""
    costs = spec.costs_of(HaloCosts)
    begin = costs.start_cycles + (costs.dram_config_cycles if halo.config_tensors_in_dram else 0)
    waiting = [
        costs.waiting_share * one.crossing_bytes.sum(axis=1) / spec.noc.link_bytes_per_cycle for one in traffic.sending
    ]
    working = [
        times.padded[processor] - begin + _transfer_cycles(spec, one).sum(axis=1) - waiting[processor]
        for processor, one in enumerate(traffic.sending)
    ]
    untilize = np.full(halo.nhw_cores, traffic.blocks * untilize_block_cycles(halo, spec))
    network = np.where(times.ends.argmax(axis=0) == 0, waiting[0], waiting[1])
    busy = {
        Stage.START: np.full(halo.nhw_cores, float(begin)),
        Stage.READER: working[0],
        Stage.SECOND_READER: working[1],
        Stage.UNTILIZE: untilize,
        Stage.NETWORK: network,
    }
    table = np.rint(np.stack([times.ends.max(axis=0), *busy.values()], axis=1))
    kinds, kind = np.unique(table, axis=0, return_inverse=True)
    return tuple(
        CoreGroupCycles(
            cores=_core_set(halo, np.flatnonzero(kind.ravel() == number)),
            cycles=cycles,
            stages=tuple(StageCycles(stage, spent) for stage, spent in zip(busy, stages, strict=True) if spent),
        )
        for number, (cycles, *stages) in enumerate(kinds.tolist())
    )


def _core_set(halo: HaloArguments, numbers: NDArray[np.int64]) -> CoreRangeSet:
    """The cores that these cores stand for: BLOCK repeats a halo in every column (or row), WIDTH on every core."""
    if halo.scheme is WIDTH or len(numbers) == halo.nhw_cores:
        return halo.cores
    order, box = core_order(halo), halo.cores.bounding_box()
    down = bool(order.y.any()) or halo.nhw_cores == 1
    ranges = []
    for x, y in zip(order.x[numbers].tolist(), order.y[numbers].tolist(), strict=True):
        start = end = CoreCoord(box.start.x + x, box.start.y + y)
        if halo.scheme is BLOCK:
            end = CoreCoord(box.end.x, start.y) if down else CoreCoord(start.x, box.end.y)
        ranges.append(CoreRange(start, end))
    return CoreRangeSet(tuple(ranges))
