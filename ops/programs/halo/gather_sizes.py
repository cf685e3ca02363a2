"""How long the gather lists of a halo get, counted without listing a transfer.

`ops.programs.halo.config_tensors` makes the lists themselves; tests hold both against each other.
"""

from dataclasses import dataclass

import numpy as np

from device.memory.tiles import TILE
from device.numbers.integers import Integers, round_up
from ops.frame.frame import Frame, count_breaks
from ops.programs.halo.ranges import StickRanges
from ops.programs.halo.transfers import count_transfers

UNTILIZE_BLOCK_STICKS = TILE
PROCESSORS = 2
TRANSFER_WORDS = 3  # source stick, destination stick, length
ROUTE_WORDS = 3  # x, y, number of transfers


def even(words: int) -> int:
    """A row of uint16 must be a multiple of four bytes."""
    return round_up(words, 2)


def gather_words_row_major(frame: Frame, ranges: StickRanges, *, input_rows: int) -> tuple[int, int]:
    """Words of both gather lists of a row-major input with shards of ``input_rows`` sticks.

    The transfers between two cores follow each other, so each processor has one route for every pair of cores of which
    it got any.
    """
    cores = len(ranges.starts)
    pairs = count_transfers(frame, ranges, input_rows=input_rows)
    away = pairs.source_core != pairs.destination_core
    order = np.argsort((pairs.source_core * 2 + away) * cores + pairs.destination_core)
    source, transfers = pairs.source_core[order], pairs.transfers[order]
    ends = np.cumsum(transfers)
    begins = ends - transfers
    core_begins = begins[np.searchsorted(source, source)]
    begins, ends = begins - core_begins, ends - core_begins
    ahead = np.arange(PROCESSORS)[::-1, None]  # the first processor begins
    dealt = (ends + ahead) // PROCESSORS - (begins + ahead) // PROCESSORS
    per_pair = TRANSFER_WORDS * dealt + ROUTE_WORDS * (dealt > 0)
    queue = np.concatenate([source, source + cores])
    words = np.bincount(queue, weights=per_pair.ravel(), minlength=PROCESSORS * cores)
    return even(1 + int(words[:cores].max())), even(1 + int(words[cores:].max()))


@dataclass(frozen=True, slots=True)
class _Groups:
    """Transfers that follow each other and go round the same receivers, in the order of the source.

    Attributes:
        at: [groups] data number of the first transfer.
        low: First receiving core.
        high: Last receiving core.
        rounds: How often all of them are served.
    """

    at: Integers
    low: Integers
    high: Integers
    rounds: Integers


def gather_words_tiled(frame: Frame, ranges: StickRanges, rank: Integers, *, input_rows: int) -> tuple[int, int]:
    """Words of both gather lists of a tiled input with shards of ``input_rows`` sticks.

    Args:
        frame: The frame.
        ranges: What every core needs.
        rank: [cores] place of each core when they are ordered by x, then y: the order in which a stick is sent to
            several cores.
        input_rows: Sticks of an input shard.
    """
    groups = _groups(frame, ranges, input_rows=input_rows)
    receivers = groups.high - groups.low + 1
    first, last = _extreme_ranks(rank, groups)
    source, stick = np.divmod(groups.at, input_rows)
    queue = source * PROCESSORS + stick // UNTILIZE_BLOCK_STICKS % PROCESSORS
    order = np.argsort(queue, kind="stable")
    queue, first, last = queue[order], first[order], last[order]
    transfers = (receivers * groups.rounds)[order]
    routes = np.where(receivers[order] > 1, transfers, 1)
    routes[1:] -= (queue[1:] == queue[:-1]) & (first[1:] == last[:-1])
    words = np.bincount(
        queue, weights=TRANSFER_WORDS * transfers + ROUTE_WORDS * routes, minlength=2 * len(ranges.starts)
    )
    return even(1 + int(words[0::2].max())), even(1 + int(words[1::2].max()))


def _groups(frame: Frame, ranges: StickRanges, *, input_rows: int) -> _Groups:
    """The data, cut where the receivers change and at every block of the source, as groups in the order of the data.

    At a cut, a receiver whose range begins there starts a transfer of its own; the others do so only at a break of the
    data.
    """
    edges = np.sort(np.concatenate([_block_begins(frame, input_rows), ranges.first_data, ranges.stop_data]))
    between = np.flatnonzero(edges[1:] != edges[:-1])
    begin, end = edges[between], edges[between + 1]
    low = np.searchsorted(ranges.stop_data, begin, side="right")
    high = np.searchsorted(ranges.first_data, begin, side="right") - 1
    used = high >= low
    begin, end, low, high = begin[used], end[used], low[used], high[used]
    stick = begin % input_rows
    ends = np.concatenate([np.maximum(begin - 1, 0), begin, end - 1])
    before, at, inside = count_breaks(frame, ends).reshape(3, len(begin))
    whole = (stick % UNTILIZE_BLOCK_STICKS == 0) | (at > before)
    new = np.searchsorted(ranges.first_data, begin, side="left")
    rounds = inside - at + whole
    at_cut = np.flatnonzero(~whole & (new <= high))
    then = np.flatnonzero(rounds)
    at = np.concatenate([begin[at_cut], begin[then]])
    order = np.argsort(at, kind="stable")
    return _Groups(
        at=at[order],
        low=np.concatenate([new[at_cut], low[then]])[order],
        high=np.concatenate([high[at_cut], high[then]])[order],
        rounds=np.concatenate([np.ones_like(at_cut), rounds[then]])[order],
    )


def _block_begins(frame: Frame, input_rows: int) -> Integers:
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
