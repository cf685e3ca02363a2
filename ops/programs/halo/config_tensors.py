"""The four lists that tell the two data-movement processors of a core what to do in a halo, and how long they are.

Words are uint16. A *padding list* is pairs (stick, length), ended by (0, 0): the first processor gets the first half of
a core's runs, the second the rest. A *gather list* is the number of routes, then for every route the receiving core's x
and y, the number of transfers, and (source stick, destination stick, length) for each. A route ends where the receiver
changes. All cores' lists are as long as the longest, and even.

Row-major input: transfers to the core itself come first, then those to others in core order; they alternate between the
processors. Tiled input: transfers are cut at blocks of 32 sticks, the unit of untilizing, and follow the source; blocks
alternate.
"""

from dataclasses import dataclass

import numpy as np

from device.memory.memory_config import TILE
from device.numbers.formats import Integers, round_up
from ops.programs.halo.transfers import (
    StickRanges,
    Transfers,
    changes,
    count_padding,
    count_transfers,
    list_transfers,
    ordinals,
    padding_runs,
)
from ops.window import PaddedInput, count_breaks

WORD_BYTES = 2
UNTILIZE_BLOCK_STICKS = TILE
PROCESSORS = 2
TRANSFER_WORDS = 3  # source stick, destination stick, length
ROUTE_WORDS = 3  # x, y, number of transfers


@dataclass(frozen=True, slots=True)
class CoreOrder:
    """How the cores that split the rows lie in the grid: ``core -> (x, y)``, as the halo addresses them."""

    x: Integers  # [cores] columns
    y: Integers

    @property
    def rank(self) -> Integers:
        """[cores] place of each core in the order by x, then y."""
        rank = np.empty_like(self.x)
        rank[np.lexsort((self.y, self.x))] = np.arange(len(self.x))
        return rank


def config_words(
    frame: PaddedInput, ranges: StickRanges, cores: CoreOrder, *, input_rows: int, tiled: bool
) -> tuple[int, int, int, int]:
    """Words of the lists for a core, padding before gather: counted without listing a transfer of a usual frame."""
    if frame.replicate:
        low, high = padding_runs(frame).within(ranges)
        block_rows = UNTILIZE_BLOCK_STICKS if tiled else 0
        transfers = list_transfers(frame, ranges, input_rows=input_rows, block_rows=block_rows)
        return *_padding_words(high - low), *listed_gather_words(transfers, cores, tiled=tiled)
    padding = _padding_words(count_padding(frame, ranges))
    if tiled:
        return *padding, *gather_words_tiled(frame, ranges, cores.rank, input_rows=input_rows)
    return *padding, *gather_words_row_major(frame, ranges, input_rows=input_rows)


def _padding_words(runs: Integers) -> tuple[int, int]:
    """Words of both padding lists; ``runs`` are the runs of padding of each core."""
    most = int(runs.max())
    return 2 * (most // 2) + 2, 2 * (most - most // 2) + 2


def turns(transfers: Transfers, *, tiled: bool) -> Integers:
    """[transfers] the processor that does each."""
    source, destination = transfers.source_core, transfers.destination_core
    if tiled:
        return transfers.source_stick // UNTILIZE_BLOCK_STICKS % PROCESSORS
    away = source != destination
    order = np.argsort((2 * source + away) * (destination.max(initial=0) + 1) + destination, kind="stable")
    turn = np.empty_like(order)
    turn[order] = ordinals(np.bincount(source)) % PROCESSORS
    return turn


def listed_gather_words(transfers: Transfers, cores: CoreOrder, *, tiled: bool) -> tuple[int, int]:
    """Words of both gather lists."""
    source, destination, turn = transfers.source_core, transfers.destination_core, turns(transfers, tiled=tiled)
    if tiled:
        order = np.lexsort((cores.y[destination], cores.x[destination], transfers.source_stick, source, turn))
    else:
        order = np.lexsort((destination, source != destination, source, turn))
    queue = (PROCESSORS * source + turn)[order]
    used = TRANSFER_WORDS + ROUTE_WORDS * changes(queue * len(cores.x) + destination[order])
    return _list_words(queue, used, len(cores.x))


def _list_words(queue: Integers, used: Integers, cores: int) -> tuple[int, int]:
    """Words of both gather lists: the number of routes, what the core with most words uses, and an even number of all.

    `used` are the words of each queue: a core's number times the processors, plus the number of the processor.
    """
    words = np.bincount(queue, weights=used, minlength=PROCESSORS * cores).reshape(cores, PROCESSORS).max(axis=0)
    return round_up(1 + int(words[0]), 2), round_up(1 + int(words[1]), 2)


def gather_words_row_major(frame: PaddedInput, ranges: StickRanges, *, input_rows: int) -> tuple[int, int]:
    """Words of both gather lists of a row-major input with shards of ``input_rows`` sticks.

    The transfers between two cores follow each other, so each processor has one route for every pair of cores of which
    it got any.
    """
    cores = len(ranges.starts)
    pairs = count_transfers(frame, ranges, input_rows=input_rows)
    away = pairs.source_core != pairs.destination_core
    order = ((pairs.source_core * 2 + away) * cores + pairs.destination_core).argsort()
    source, transfers = pairs.source_core[order], pairs.transfers[order]
    ends = transfers.cumsum()
    begins = ends - transfers
    core_begins = begins[source.searchsorted(source)]
    begins, ends = begins - core_begins, ends - core_begins
    ahead = np.array([[1], [0]])  # the first processor begins
    dealt = (ends + ahead) // PROCESSORS - (begins + ahead) // PROCESSORS
    per_pair = TRANSFER_WORDS * dealt + ROUTE_WORDS * (dealt > 0)
    queue = np.concatenate([PROCESSORS * source, PROCESSORS * source + 1])
    return _list_words(queue, per_pair.ravel(), cores)


@dataclass(frozen=True, slots=True)
class _Groups:
    """Transfers that follow each other and go round the same receivers, in the order of the source."""

    at: Integers  # [groups] data number of the first transfer
    low: Integers  # First receiving core
    high: Integers  # Last receiving core
    rounds: Integers  # How often all of them are served


def gather_words_tiled(frame: PaddedInput, ranges: StickRanges, rank: Integers, *, input_rows: int) -> tuple[int, int]:
    """Words of both gather lists of a tiled input with shards of ``input_rows`` sticks.

    `rank` is the [cores] place of each core ordered by x, then y: the order in which a stick is sent to several cores.
    """
    groups = _groups(frame, ranges, input_rows=input_rows)
    receivers = groups.high - groups.low + 1
    first, last = _extreme_ranks(rank, groups)
    source, stick = np.divmod(groups.at, input_rows)
    queue = source * PROCESSORS + stick // UNTILIZE_BLOCK_STICKS % PROCESSORS
    order = queue.argsort(kind="stable")
    queue, first, last = queue[order], first[order], last[order]
    transfers = (receivers * groups.rounds)[order]
    routes = np.where(receivers[order] > 1, transfers, 1)
    routes[1:] -= (queue[1:] == queue[:-1]) & (first[1:] == last[:-1])
    return _list_words(queue, TRANSFER_WORDS * transfers + ROUTE_WORDS * routes, len(ranges.starts))


def _groups(frame: PaddedInput, ranges: StickRanges, *, input_rows: int) -> _Groups:
    """The data, cut where the receivers change and at every block of the source, as groups in the order of the data.

    At a cut, a receiver whose range begins there starts a transfer of its own; the others do so only at a break of the
    data.
    """
    edges = np.sort(np.concatenate([_block_begins(frame, input_rows), ranges.first_data, ranges.stop_data]))
    between = (edges[1:] != edges[:-1]).nonzero()[0]
    begin, end = edges[between], edges[between + 1]
    low = ranges.stop_data.searchsorted(begin, side="right")
    high = ranges.first_data.searchsorted(begin, side="right") - 1
    used = high >= low
    begin, end, low, high = begin[used], end[used], low[used], high[used]
    stick = begin % input_rows
    ends = np.concatenate([np.maximum(begin - 1, 0), begin, end - 1])
    before, at, inside = count_breaks(frame, ends).reshape(3, len(begin))
    whole = (stick % UNTILIZE_BLOCK_STICKS == 0) | (at > before)
    new = ranges.first_data.searchsorted(begin, side="left")
    rounds = inside - at + whole
    at_cut = (~whole & (new <= high)).nonzero()[0]
    then = rounds.nonzero()[0]
    at = np.concatenate([begin[at_cut], begin[then]])
    order = at.argsort(kind="stable")
    return _Groups(
        at=at[order],
        low=np.concatenate([new[at_cut], low[then]])[order],
        high=np.concatenate([high[at_cut], high[then]])[order],
        rounds=np.concatenate([np.ones_like(at_cut), rounds[then]])[order],
    )


def _block_begins(frame: PaddedInput, input_rows: int) -> Integers:
    """Data numbers at which a block of a source shard begins, and the end of the data."""
    shards = -(-frame.data // input_rows)
    begins = np.add.outer(np.arange(shards) * input_rows, np.arange(0, input_rows, UNTILIZE_BLOCK_STICKS)).ravel()
    return np.append(begins[begins < frame.data], frame.data)


def _extreme_ranks(rank: Integers, groups: _Groups) -> tuple[Integers, Integers]:
    """Smallest and largest rank among the receivers of each group."""
    smallest, largest = rank[groups.low], rank[groups.low]
    for offset in range(1, int((groups.high - groups.low).max(initial=0)) + 1):
        other = rank[np.minimum(groups.low + offset, groups.high)]
        smallest, largest = np.minimum(smallest, other), np.maximum(largest, other)
    return smallest, largest
