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
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from device.memory.memory_config import TILE
from device.numbers.formats import Integers, round_up
from ops.programs.halo.transfers import (
    Padding,
    StickRanges,
    Transfers,
    count_padding,
    count_transfers,
    list_padding,
    list_transfers,
    ordinals,
)
from ops.window import PaddedInput, count_breaks

Words: TypeAlias = NDArray[np.uint16]

WORD_BYTES = 2


@dataclass(frozen=True, slots=True)
class ConfigWords:
    """Words per core of the four lists: padding and gather, first and second processor."""

    padding: tuple[int, int]
    gather: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ConfigTensors:
    """The four lists, each [cores that split the rows, words]: padding and gather, first and second processor."""

    padding: tuple[Words, Words]
    gather: tuple[Words, Words]


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


def padding_words(runs: Integers) -> tuple[int, int]:
    """Words of both padding lists; ``runs`` are the runs of padding of each core."""
    most = int(runs.max())
    return 2 * (most // 2) + 2, 2 * (most - most // 2) + 2


def deal_transfers(transfers: Transfers, cores: CoreOrder, *, tiled: bool) -> tuple[Transfers, Transfers]:
    """What each processor of the source cores does, in its order."""
    if tiled:
        x, y = cores.x[transfers.destination_core], cores.y[transfers.destination_core]
        order = np.lexsort((y, x, transfers.source_stick, transfers.source_core))
        ordered = transfers.take(order)
        turn = ordered.source_stick // UNTILIZE_BLOCK_STICKS % PROCESSORS
    else:
        away = transfers.source_core != transfers.destination_core
        ordered = transfers.take(np.lexsort((transfers.destination_core, away, transfers.source_core)))
        turn = ordinals(np.bincount(ordered.source_core)) % PROCESSORS
    return ordered.take(np.flatnonzero(turn == 0)), ordered.take(np.flatnonzero(turn == 1))


def _new_routes(transfers: Transfers) -> NDArray[np.bool_]:
    """[transfers] whether a route begins here."""
    source, destination = transfers.source_core, transfers.destination_core
    begins = np.ones(len(source), dtype=np.bool_)
    begins[1:] = (source[1:] != source[:-1]) | (destination[1:] != destination[:-1])
    return begins


def _gather_words(transfers: Transfers, cores: int) -> int:
    """Words of the gather list of one processor."""
    used = np.where(_new_routes(transfers), ROUTE_WORDS + TRANSFER_WORDS, TRANSFER_WORDS)
    return even(1 + int(np.bincount(transfers.source_core, weights=used, minlength=cores).max()))


def _gather_list(transfers: Transfers, cores: CoreOrder, noc_x: Integers, noc_y: Integers) -> Words:
    """The gather list of one processor."""
    new = _new_routes(transfers)
    source = transfers.source_core
    used = np.where(new, ROUTE_WORDS + TRANSFER_WORDS, TRANSFER_WORDS)
    ends = np.cumsum(used)
    core_words = np.bincount(source, weights=used, minlength=len(cores.x)).astype(np.int64)
    words = np.zeros((len(cores.x), _gather_words(transfers, len(cores.x))), dtype=np.uint16)
    words[:, 0] = np.bincount(source[new], minlength=len(cores.x))
    at = 1 + ends - TRANSFER_WORDS - (np.cumsum(core_words) - core_words)[source]
    for offset, column in enumerate((transfers.source_stick, transfers.destination_stick, transfers.length)):
        words[source, at + offset] = column
    starts = np.flatnonzero(new)
    receiver = transfers.destination_core[starts]
    sizes = np.diff(starts, append=len(new))
    for offset, column in enumerate((noc_x[cores.x[receiver]], noc_y[cores.y[receiver]], sizes)):
        words[source[starts], at[starts] - ROUTE_WORDS + offset] = column
    return words


def _padding_lists(padding: Padding, cores: int) -> tuple[Words, Words]:
    """Both padding lists."""
    runs = np.bincount(padding.core, minlength=cores)
    place = ordinals(runs)
    half = (runs // 2)[padding.core]
    lists = []
    for processor, words in enumerate(padding_words(runs)):
        mine = np.flatnonzero((place >= half) == bool(processor))
        made = np.zeros((len(runs), words), dtype=np.uint16)
        at = 2 * (place[mine] - half[mine] * processor)
        made[padding.core[mine], at] = padding.stick[mine]
        made[padding.core[mine], at + 1] = padding.length[mine]
        lists.append(made)
    return lists[0], lists[1]


def config_words(
    frame: PaddedInput, ranges: StickRanges, cores: CoreOrder, *, input_rows: int, tiled: bool
) -> ConfigWords:
    """Sizes of the four lists, counted without listing a transfer, but for a replicating frame."""
    if frame.replicate:
        made = config_tensors(frame, ranges, cores, input_rows=input_rows, tiled=tiled)
        return ConfigWords(_widths(made.padding), _widths(made.gather))
    padding = padding_words(count_padding(frame, ranges))
    if tiled:
        return ConfigWords(padding, gather_words_tiled(frame, ranges, cores.rank, input_rows=input_rows))
    return ConfigWords(padding, gather_words_row_major(frame, ranges, input_rows=input_rows))


def _widths(lists: tuple[Words, Words]) -> tuple[int, int]:
    """Words per core of both lists."""
    return lists[0].shape[1], lists[1].shape[1]


def config_tensors(
    frame: PaddedInput,
    ranges: StickRanges,
    cores: CoreOrder,
    *,
    input_rows: int,
    tiled: bool,
    noc_x: Integers | None = None,
    noc_y: Integers | None = None,
) -> ConfigTensors:
    """The four lists.

    Args:
        noc_x: Network column of each grid column; grid columns themselves if None.
    """
    listed = list_transfers(frame, ranges, input_rows=input_rows, block_rows=UNTILIZE_BLOCK_STICKS if tiled else 0)
    columns = np.arange(cores.x.max() + 1) if noc_x is None else noc_x
    rows = np.arange(cores.y.max() + 1) if noc_y is None else noc_y
    first, second = deal_transfers(listed, cores, tiled=tiled)
    return ConfigTensors(
        padding=_padding_lists(list_padding(frame, ranges), len(ranges.starts)),
        gather=(_gather_list(first, cores, columns, rows), _gather_list(second, cores, columns, rows)),
    )


UNTILIZE_BLOCK_STICKS = TILE
PROCESSORS = 2
TRANSFER_WORDS = 3  # source stick, destination stick, length
ROUTE_WORDS = 3  # x, y, number of transfers


def even(words: int) -> int:
    """A row of uint16 must be a multiple of four bytes."""
    return round_up(words, 2)


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
    queue = np.concatenate([source, source + cores])
    words = np.bincount(queue, weights=per_pair.ravel(), minlength=PROCESSORS * cores)
    return even(1 + int(words[:cores].max())), even(1 + int(words[cores:].max()))


@dataclass(frozen=True, slots=True)
class _Groups:
    """Transfers that follow each other and go round the same receivers, in the order of the source."""

    at: Integers  # [groups] data number of the first transfer
    low: Integers  # First receiving core
    high: Integers  # Last receiving core
    rounds: Integers  # How often all of them are served


def gather_words_tiled(frame: PaddedInput, ranges: StickRanges, rank: Integers, *, input_rows: int) -> tuple[int, int]:
    """Words of both gather lists of a tiled input with shards of ``input_rows`` sticks.

    Args:
        rank: [cores] place of each core when they are ordered by x, then y: the order in which a stick is sent to
            several cores.
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
    words = np.bincount(
        queue, weights=TRANSFER_WORDS * transfers + ROUTE_WORDS * routes, minlength=2 * len(ranges.starts)
    )
    return even(1 + int(words[0::2].max())), even(1 + int(words[1::2].max()))


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
