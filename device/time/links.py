"""Loads of the networks' links: how much passes the busiest link, and all links, where cores and banks move data.

Every link carries `NocSpec.link_bytes_per_cycle`, so that no program is faster than its busiest link.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Final, NamedTuple

import numpy as np

from device.cores import CoreCoord, CoreRangeSet
from device.spec.device_spec import DeviceSpec
from device.time.network import (
    FIRST,
    NETWORKS,
    SECOND,
    Floats,
    Integers,
    Leg,
    Network,
    Places,
    Torus,
    Ways,
    legs,
    routes,
    torus_of,
)
from device.time.stages import Transfer

KEPT: Final = 4096  # shares that are remembered
Points = tuple[tuple[int, int], ...]  # columns and rows of the torus


def busiest_link_bytes(legs: Iterable[Leg], sent_bytes: Floats) -> float:
    """The bytes on the busiest link.

    Args:
        legs: The parts of the routes of all transfers along each axis.
        sent_bytes: The bytes of each transfer, [transfers].
    """
    return max((_busiest(leg, sent_bytes) for leg in legs), default=0.0)


def _busiest(leg: Leg, sent_bytes: Floats) -> float:
    """The bytes on the busiest link of one axis."""
    return float(np.maximum.reduce(_leg_loads(leg, sent_bytes), axis=None)) if len(leg.ring) else 0.0


def _leg_loads(leg: Leg, sent_bytes: Floats) -> Floats:
    """[rings, positions] the bytes on the links of one axis: sums along each ring, unrolled twice and folded."""
    width = 2 * leg.size + 1
    first = leg.ring * width + leg.start % leg.size
    places, changes = np.concatenate([first, first + leg.links]), np.concatenate([sent_bytes, -sent_bytes])
    steps = np.bincount(places, weights=changes, minlength=leg.rings * width)
    loads = steps.reshape(leg.rings, width).cumsum(axis=1)
    folded: Floats = loads[:, : leg.size] + loads[:, leg.size : -1]
    return folded


def link_shares(ways: Ways) -> Floats:
    """The share of the bytes on each link, [axes, rows, columns]: links along rows, then links along columns.

    A link is named by the torus node that it leaves. The sum over all links is the mean number of links of a byte.
    """
    if ways.multicasts is None:
        return _link_shares(ways, np.arange(len(ways.parts)), ways.parts)
    shares = np.zeros((2, ways.torus.rows, ways.torus.cols))
    for number in np.unique(ways.multicasts):
        own = np.flatnonzero(ways.multicasts == number)
        shares += ways.parts[own[0]] * (_link_shares(ways, own, np.ones(len(own))) > 0)
    return shares


def _link_shares(ways: Ways, numbers: Integers, parts: Floats) -> Floats:
    """`link_shares` of the ways of these numbers, with a part for each."""
    torus, step = ways.torus, ways.network.step
    row, column = legs(torus, ways.network, ways.sources.take(numbers), ways.destinations.take(numbers))
    along_rows = _leg_loads(row, parts)[:, step * np.arange(torus.cols) % torus.cols]
    along_columns = _leg_loads(column, parts)[:, step * np.arange(torus.rows) % torus.rows]
    return np.array([along_rows, along_columns.T])


def bank_points(spec: DeviceSpec, network: Network) -> Points:
    """The nodes at which the banks of DRAM answer on a network; empty where the device does not state them."""
    return spec.derived(_first_bank_points if network is FIRST else _second_bank_points)


def _first_bank_points(spec: DeviceSpec) -> Points:
    return _bank_points(spec, spec.noc.dram_rows)


def _second_bank_points(spec: DeviceSpec) -> Points:
    return _bank_points(spec, spec.noc.dram_second_rows)


def _bank_points(spec: DeviceSpec, known_rows: Sequence[int]) -> Points:
    """The nodes of all banks; the known nodes lie in known rows.

    Additional banks are placed at free nodes of the same columns, where the fewest banks share the row, then the
    column, so that one more bank relieves the busiest link. Without free nodes, banks share nodes.
    """
    nodes, rows, banks = tuple(zip(spec.noc.dram_cols, known_rows, strict=True)), spec.noc.rows, spec.dram.banks
    points = list(nodes[:banks])
    every = [(col, row) for col in dict.fromkeys(col for col, _ in nodes) for row in range(rows)]
    at_node, in_row, in_col = Counter(points), Counter(row for _, row in points), Counter(col for col, _ in points)
    while nodes and len(points) < banks:
        col, row = node = min(every, key=lambda node: (at_node[node], in_row[node[1]], in_col[node[0]]))
        points.append(node)
        at_node[node] += 1
        in_row[row] += 1
        in_col[col] += 1
    return tuple(points)


def spread_link_bytes(
    spec: DeviceSpec, cores: CoreRangeSet, moved_bytes: float, *, in_dram: bool, writes: bool, crossed: bool = False
) -> float:
    """The bytes on the busiest link if cores move equal parts from or to all banks of an interleaved buffer.

    Args:
        spec: The device.
        cores: The cores that move the data.
        moved_bytes: The bytes of all cores together.
        in_dram: Whether the buffer is in DRAM; otherwise in the L1 of all worker cores.
        writes: Whether the cores write; otherwise they read.
        crossed: Whether the cores read over the network that is placed for writing, or write over the other one.

    Returns:
        The bytes; 0 for a buffer in DRAM if the device does not state the nodes of the banks.
    """
    spread = _spread(spec, cores, in_dram=in_dram, writes=writes, crossed=crossed)
    return 0.0 if spread.points == () else moved_bytes * _busiest_share(spread)


def spread_transfer(
    spec: DeviceSpec, cores: CoreRangeSet, moved_bytes: int, *, in_dram: bool, writes: bool, crossed: bool = False
) -> Transfer:
    """The links that these bytes pass; arguments as in `spread_link_bytes`."""
    spread = _spread(spec, cores, in_dram=in_dram, writes=writes, crossed=crossed)
    links = Fraction(0) if spread.points == () else _mean_links(spread)
    return Transfer(
        network=NETWORKS.index(spread.network),
        sent_bytes=moved_bytes,
        link_bytes=round(moved_bytes * links),
        taken_bytes=moved_bytes,
        from_dram=in_dram and not writes,
        to_dram=in_dram and writes,
        ways=None if spread.points == () else spread.ways,
    )


def multicast_transfer(
    spec: DeviceSpec, network: Network, groups: Sequence[tuple[CoreCoord, CoreRangeSet]], sent_bytes: int
) -> Transfer:
    """Bytes that senders multicast in equal parts, each to a group of cores, which may hold the sender itself.

    A packet passes every link on the way to any of its receivers once.
    """
    torus = torus_of(spec)
    links = sum(_tree_links(torus, network, sender, receivers) for sender, receivers in groups)
    others = sum(receivers.num_cores() - receivers.contains(sender) for sender, receivers in groups)
    each = Fraction(sent_bytes, len(groups))
    ways = partial(_tree_ways, torus, network, groups)
    return Transfer(NETWORKS.index(network), sent_bytes, round(each * links), round(each * others), ways=ways)


def _tree_ways(torus: Torus, network: Network, groups: Sequence[tuple[CoreCoord, CoreRangeSet]]) -> Ways:
    """The ways of multicasts, from each sender to each of its receivers."""
    there = [core for _, receivers in groups for core in receivers.cores()]
    counts = [receivers.num_cores() for _, receivers in groups]
    number = np.repeat(np.arange(len(groups)), counts)
    here = torus.places(*np.array([(sender.x, sender.y) for sender, _ in groups]).T)
    ends = torus.places(*np.array([(core.x, core.y) for core in there]).T)
    return Ways(torus, network, here.take(number), ends, np.full(len(there), 1 / len(groups)), number)


def routed_transfer(
    spec: DeviceSpec, network: Network, sources: Places, destinations: Places, sent_bytes: Integers
) -> Transfer:
    """Bytes on known routes between cores, [transfers] each."""
    torus, size = torus_of(spec), int(sent_bytes.sum())
    passed = sum(leg.links for leg in legs(torus, network, sources, destinations))
    ways = partial(Ways, torus, network, sources, destinations, sent_bytes / max(size, 1))
    return Transfer(NETWORKS.index(network), size, int((sent_bytes * passed).sum()), size, ways=ways)


@lru_cache(maxsize=KEPT)
def _tree_links(torus: Torus, network: Network, sender: CoreCoord, receivers: CoreRangeSet) -> int:
    """Links on the ways from a core to others, each counted once."""
    there = list(receivers.cores())
    places = torus.places(np.array([core.x for core in there]), np.array([core.y for core in there]))
    here = torus.places(np.full(len(there), sender.x), np.full(len(there), sender.y))
    return len({link for route in routes(torus, network, here, places) for link in route})


class _Spread(NamedTuple):
    """Cores that move equal parts from or to all banks of an interleaved buffer."""

    torus: Torus
    network: Network
    corners: tuple[tuple[int, int, int, int], ...]  # Rectangles of cores
    points: Points | None  # Of the banks; None for the L1 of all worker cores
    grid: tuple[int, int]
    writes: bool

    def ways(self) -> Ways:
        """The way between each core and each bank, of equal parts."""
        here = _workers(self.torus, self.corners)
        workers = [(0, 0, self.grid[0] - 1, self.grid[1] - 1)]
        there = _workers(self.torus, workers) if self.points is None else _places(self.points)
        count, banks = len(here.col), len(there.col)
        ends = here.take(np.repeat(np.arange(count), banks)), there.take(np.tile(np.arange(banks), count))
        parts = np.full(count * banks, 1.0 / (count * banks))
        return Ways(self.torus, self.network, *(ends if self.writes else ends[::-1]), parts)


def _spread(spec: DeviceSpec, cores: CoreRangeSet, *, in_dram: bool, writes: bool, crossed: bool) -> _Spread:
    network = SECOND if writes is not crossed else FIRST
    points = bank_points(spec, network) if in_dram else None
    corners = tuple((each.start.x, each.start.y, each.end.x, each.end.y) for each in cores.ranges)
    return _Spread(torus_of(spec), network, corners, points, (spec.grid.cols, spec.grid.rows), writes)


def crossing_cycles(
    spec: DeviceSpec,
    cores: CoreRangeSet,
    pages: float,
    page_bytes: float,
    *,
    in_dram: bool,
    writes: bool,
    crossed: bool = False,
) -> float:
    """Cycles of the busiest link for the pages of all cores; arguments as in `spread_link_bytes`.

    Packets of many cores merge on their way to other cores, and to the banks over the network that is placed for
    reading; a waiting packet blocks the links behind it.
    """
    noc = spec.noc
    share = noc.merging_share if not in_dram or (writes and crossed) else 1.0
    page = page_bytes / (share * noc.link_bytes_per_cycle) + noc.crossing_cycles
    return page * spread_link_bytes(spec, cores, pages, in_dram=in_dram, writes=writes, crossed=crossed)


@lru_cache(maxsize=KEPT)
def _busiest_share(spread: _Spread) -> float:
    """The part of all bytes that passes the busiest link."""
    ways = spread.ways()
    return busiest_link_bytes(legs(ways.torus, ways.network, ways.sources, ways.destinations), ways.parts)


@lru_cache(maxsize=KEPT)
def _mean_links(spread: _Spread) -> Fraction:
    """The links that a byte passes, in the mean over all ways."""
    ways = spread.ways()
    passed = sum(leg.links for leg in legs(ways.torus, ways.network, ways.sources, ways.destinations))
    return Fraction(int(np.sum(passed)), len(np.atleast_1d(passed)))


def _workers(torus: Torus, corners: Sequence[tuple[int, int, int, int]]) -> Places:
    """The nodes of the worker cores of some rectangles."""
    pairs = [
        (col, row) for left, top, right, low in corners for row in range(top, low + 1) for col in range(left, right + 1)
    ]
    cols, rows = np.array(pairs, np.int64).T
    return torus.places(cols, rows)


def _places(points: Points) -> Places:
    cols, rows = np.array(points, np.int64).T
    return Places(cols, rows)
