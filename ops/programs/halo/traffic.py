"""What every core of a halo has to do, in numbers: writes of padding, bytes sent, and bytes that meet on links.

Nothing here is a cycle; `cycles` makes cycles of it. The work of a *block* is what a processor sends of one
untilized block of 32 rows. Sticks of a row-major input are all there from the start, and all cores begin together:
first each copies what stays on it, then it serves one receiver after the other. So a block is a *round* there: what
stays, what goes to the first receiver, to the second, and so on; in a round, transfers of all cores meet.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.numbers.formats import Integers, div_up
from device.spec.device_spec import DeviceSpec
from device.time.network import NETWORKS, Network, Places, Torus, passing_bytes, round_links, sharing, torus_of
from ops.programs.halo.config_tensors import PROCESSORS, UNTILIZE_BLOCK_STICKS
from ops.programs.halo.plan import HaloArguments, HaloPlan, halo_format
from ops.programs.halo.transfers import (
    StickRanges,
    Transfers,
    count_transfers,
    list_transfers,
    ordinals,
    run_length,
    run_transfers,
)
from ops.window import PaddedInput, data_sticks, frame_sources

Copies: TypeAlias = Callable[[Integers], Integers]  # copies that fill runs of so many sticks each


@dataclass(frozen=True, slots=True)
class PaddingRuns:
    """Padding ahead of the data, behind every ``span`` data sticks, and behind the last; the ends may be empty."""

    frame: PaddedInput  # The frame; it neither replicates nor cuts inputs off
    span: int  # Data sticks between two runs

    def within(self, ranges: StickRanges) -> tuple[Integers, Integers]:
        """[cores] the first run that a core's range reaches, and the last one + 1."""
        low = -(-(ranges.first_data + ~ranges.begins_with_padding) // self.span)
        return low, np.maximum(ranges.last_stick_data // self.span + 1, low)

    def begins(self, numbers: Integers) -> Integers:
        """The first stick of each run."""
        return np.where(numbers > 0, data_sticks(self.frame, numbers * self.span - 1) + 1, 0)

    def ends(self, numbers: Integers) -> Integers:
        """The last stick + 1 of each run."""
        data = numbers * self.span
        return np.where(data < self.frame.data, data_sticks(self.frame, data), self.frame.sticks)

    def below(self, numbers: Integers, copies: Copies) -> Integers:
        """[2, ...] sticks of all runs below each number, and copies that fill them."""
        frame, before = self.frame, numbers - 1
        row, runs = frame.columns.input_length, frame.data // self.span
        between = np.minimum(np.maximum(before, 0), runs - 1)
        after_image = between * self.span // (row * frame.rows.input_length)
        after_row = between * self.span // row - after_image
        first, inner, row_end, image_end, last = copies(self._lengths()).tolist()
        filled = first + inner * (between - after_row - after_image) + row_end * after_row + image_end * after_image
        any_below = numbers > 0
        sticks = any_below * (self.ends(before) - before * self.span)
        return np.array([sticks, any_below * filled + last * (numbers > runs)])

    def _lengths(self) -> Integers:
        """Sticks ahead of the data, between data of a row, behind a row, behind an image, and behind the data."""
        rows, columns = self.frame.rows, self.frame.columns
        first = rows.before * columns.length + columns.before
        data_row = (columns.input_length - 1) * columns.input_dilation + 1
        row_end = rows.input_dilation * columns.length - data_row
        image_end = (rows.length - (rows.input_length - 1) * rows.input_dilation) * columns.length - data_row
        return np.array([first, columns.input_dilation - 1, row_end, image_end, image_end - first])


@dataclass(frozen=True, slots=True)
class ListedPadding:
    """Runs of any frame, the end of the frame as the last, even if none lie there."""

    begin: Integers  # [runs] first stick
    end: Integers  # Last stick + 1

    def within(self, ranges: StickRanges) -> tuple[Integers, Integers]:
        """As `PaddingRuns.within`."""
        low = np.searchsorted(self.end, ranges.starts, side="right")
        return low, np.maximum(np.searchsorted(self.begin, ranges.stops, side="left"), low)

    def begins(self, numbers: Integers) -> Integers:
        """As `PaddingRuns.begins`."""
        return self.begin[np.minimum(numbers, len(self.begin) - 1)]

    def ends(self, numbers: Integers) -> Integers:
        """As `PaddingRuns.ends`."""
        return self.end[np.minimum(numbers, len(self.end) - 1)]

    def below(self, numbers: Integers, copies: Copies) -> Integers:
        """As `PaddingRuns.below`."""
        lengths = self.end - self.begin
        total = np.zeros((2, len(lengths) + 1), np.int64)
        np.cumsum([lengths, copies(lengths)], axis=1, out=total[:, 1:])
        return total[:, numbers]


def padding_runs(frame: PaddedInput) -> PaddingRuns | ListedPadding:
    """All runs of neighboring padding sticks; `transfers.list_padding` lists the parts of them that cores need."""
    span = run_length(frame)
    if span is not None:
        return PaddingRuns(frame, span)
    held = np.flatnonzero(frame_sources(frame, 0, frame.sticks) >= 0)
    begin, end = np.append(0, held + 1), np.append(held, frame.sticks)
    filled = end > begin
    filled[-1] = True
    return ListedPadding(begin[filled], end[filled])


Floats: TypeAlias = NDArray[np.float64]

ZEROS_BYTES = 512  # zeros that every core keeps in its L1, to copy from (tt-metal, MEM_ZEROS_SIZE)
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
    """The work of all cores that split the rows."""

    blocks: int  # Blocks of both processors, which take turns
    filling: tuple[Filling, ...]  # Of both processors
    sending: tuple[Sending, ...]  # Of both processors


@dataclass(frozen=True, slots=True)
class Batches:
    """What a core sends to another in a block, in one row of a table; those between the same two follow each other."""

    source: Integers  # [batches] core that sends
    destination: Integers  # Core that receives
    processor: Integers
    block: Integers
    transfers: Integers  # How many
    sticks: Integers


def halo_traffic(plan: HaloPlan, spec: DeviceSpec) -> HaloTraffic:
    """The work of all cores of a halo."""
    halo = plan.arguments
    batches = batches_of(plan)
    blocks = div_up(halo.input_rows, UNTILIZE_BLOCK_STICKS)
    if not halo.tiled:
        blocks = PROCESSORS * (1 + int(batches.block.max(initial=0)))
    return HaloTraffic(blocks, _filling(halo, plan.ranges), _sending(batches, plan, blocks, spec))


def stick_bytes(halo: HaloArguments) -> int:
    """Bytes of a stick of the output."""
    return halo.shard_width * (halo_format(halo.data_format).element_bytes or 0)


def batches_of(plan: HaloPlan) -> Batches:
    """All that is sent, dealt to processors and blocks as `config_tensors.deal_transfers` deals it."""
    halo, ranges = plan.arguments, plan.ranges
    frame, input_rows = halo.frame, halo.input_rows
    if halo.tiled and not frame.replicate:
        counted = count_transfers(frame, ranges, input_rows=input_rows, block_rows=UNTILIZE_BLOCK_STICKS)
        block, turn = np.divmod(counted.source_block, PROCESSORS)
        return Batches(counted.source_core, counted.destination_core, turn, block, counted.transfers, counted.sticks)
    if halo.tiled:
        listed = list_transfers(frame, ranges, input_rows=input_rows, block_rows=UNTILIZE_BLOCK_STICKS)
        block, turn = np.divmod(listed.source_stick // UNTILIZE_BLOCK_STICKS, PROCESSORS)
    else:
        listed = run_transfers(frame, ranges, input_rows=input_rows)
        source, destination = listed.source_core, listed.destination_core
        order = np.argsort((2 * source + (source != destination)) * halo.nhw_cores + destination, kind="stable")
        turn = np.empty_like(order)
        turn[order] = ordinals(np.bincount(source, minlength=halo.nhw_cores)) % PROCESSORS
        block = _rounds(listed, turn)
    return Batches(listed.source_core, listed.destination_core, turn, block, np.ones_like(turn), listed.length)


def _rounds(transfers: Transfers, turn: Integers) -> Integers:
    """[transfers] 0 of those that stay; of others, the number of their receiver, by sender and processor, from 1."""
    source, destination = transfers.source_core, transfers.destination_core
    away = source != destination
    order = np.lexsort((destination, away, turn, source))
    queue = (source * PROCESSORS + turn)[order]
    first = _changes(queue)
    next_one = away[order] & (first | _changes(destination[order]))
    count = np.cumsum(next_one)
    before = np.maximum.accumulate(np.where(first, count - next_one, 0))
    rounds = np.empty_like(order)
    rounds[order] = count - before
    return rounds


def _zero_copies(stick: int, sticks: Integers) -> Integers:
    """Copies of zeros that fill each run of so many sticks of so many bytes."""
    together = ZEROS_BYTES // stick
    if together <= 1:
        return sticks * div_up(stick, ZEROS_BYTES)
    return sticks // together + sticks % together


def _filling(halo: HaloArguments, ranges: StickRanges) -> tuple[Filling, ...]:
    """The first processor has the first half of a core's runs, the second the rest."""
    runs, copies = padding_runs(halo.frame), partial(_zero_copies, stick_bytes(halo))
    low, high = runs.within(ranges)
    edges = np.array([low, np.maximum(high - 1, low)])
    begin, end = runs.begins(edges), runs.ends(edges)  # of the first and the last run, which a core's range cuts
    whole, kept = end - begin, (np.minimum(end, ranges.stops) - np.maximum(begin, ranges.starts)) * (high > low)
    cut = np.array([whole - kept, copies(whole) - copies(kept)])
    bounds = np.array([low, (low + high) // 2, high])
    below = runs.below(bounds, copies)
    halves = below[:, 1:] - below[:, :-1]
    several = high - low > 1
    halves[:, 0] -= cut[:, 0] * several
    halves[:, 1] -= np.where(several, cut[:, 1], cut[:, 0] * (high > low))
    found = np.array([bounds[1:] - bounds[:-1], *halves], np.float64)
    return tuple(starmap(Filling, found.swapaxes(0, 1)))


def _sending(batches: Batches, plan: HaloPlan, blocks: int, spec: DeviceSpec) -> tuple[Sending, ...]:
    """What both processors of every core send, in so many blocks of both together."""
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
    """[cores, blocks] bytes on the route of a core that meets most, and [cores] links to its farthest receiver.

    Args:
        sent: [gone] their bytes.
        places: Where the cores lie.
    """
    cores = len(places.col)
    crossing, farthest = np.zeros((cores, blocks)), np.zeros(cores, np.int64)
    if len(gone):
        source, destination = batches.source[gone], batches.destination[gone]
        first = _changes(source * cores + destination)
        route, source, destination = np.cumsum(first) - 1, source[first], destination[first]
        senders, receivers = places.take(source), places.take(destination)
        routed = _table(route, batches.block[gone], (len(source), blocks), sent)
        np.maximum.at(crossing, source, passing_bytes(sharing(torus, network, senders, receivers), routed))
        np.maximum.at(farthest, source, round_links(torus, senders, receivers))
    return crossing, farthest


def _changes(values: Integers) -> NDArray[np.bool_]:
    """Whether each value is another than the one before it, as the first always is."""
    changes = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return changes


def _table(row: Integers, column: Integers, shape: tuple[int, int], weights: Integers) -> Floats:
    """Sums of weights by row and column."""
    flat = np.bincount(row * shape[1] + column, weights=weights, minlength=shape[0] * shape[1])
    table: Floats = flat.reshape(shape).astype(np.float64, copy=False)
    return table
