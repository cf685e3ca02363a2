"""What every core of a halo has to do, in numbers: writes of padding, bytes sent, and bytes that meet on links.

Nothing here is a cycle; `cycles` makes cycles of it. The work of a *block* is what a processor sends of one
untilized block of 32 rows. Sticks of a row-major input are all there from the start, and all cores begin together:
first each copies what stays on it, then it serves one receiver after the other. So a block is a *round* there: what
stays, what goes to the first receiver, to the second, and so on; in a round, transfers of all cores meet.
"""

from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.numbers.formats import Integers, div_up
from device.spec.device_spec import DeviceSpec
from device.time.network import NETWORKS, Network, Places, Torus, passing_bytes, round_links, sharing, torus_of
from ops.programs.halo.config_tensors import PROCESSORS, UNTILIZE_BLOCK_STICKS, turns
from ops.programs.halo.plan import HaloArguments, HaloPlan, halo_format
from ops.programs.halo.transfers import (
    StickRanges,
    Transfers,
    changes,
    count_transfers,
    list_transfers,
    padding_runs,
)

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
