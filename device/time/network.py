"""The two networks of the chip: routes, shared links, and the time of transfers.

Both are unidirectional rings in each row and each column of the torus: the first network runs right, then down; the
second up, then left. A neighbor on the other side is reached around the whole ring and conflicts with all other traffic
on the ring: a packet holds every link from its sender to its receiver until its last flit has passed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from device.spec.device_spec import DeviceSpec
from device.spec.parts import NocSpec

Integers: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Booleans: TypeAlias = NDArray[np.bool_]


class Network(NamedTuple):
    """Which way packets go."""

    step: int  # 1: right and down; -1: left and up
    along_row_first: bool  # Whether they leave in the direction of their row


FIRST = Network(1, along_row_first=True)  # of the first data movement processor, by default
SECOND = Network(-1, along_row_first=False)
NETWORKS = (FIRST, SECOND)
AXES: Final = 256  # that are remembered: programs ask for the network many times
ROUTES: Final = 64  # sets of routes that are remembered, each of a few dozen to a few hundred: some MB in all


class Places(NamedTuple):
    """Points of the torus."""

    col: Integers  # [points] torus columns
    row: Integers

    def take(self, numbers: Integers) -> "Places":
        """The points with these indices."""
        return Places(self.col[numbers], self.row[numbers])


class Torus(NamedTuple):
    """The network's nodes and the worker cores among them."""

    cols: int  # Columns of nodes
    rows: int
    worker_cols: tuple[int, ...]  # Torus column of each column of worker cores
    worker_rows: tuple[int, ...]  # Torus row of each row of worker cores
    # Of a small read from the L1 of a core in another row and column: request and answer go the same way round, so
    # that together they pass all links of a row's ring and of a column's ring
    round_trip_cycles: float

    def places(self, cols: Integers, rows: Integers) -> Places:
        """The nodes of worker cores, by their columns and rows in the worker grid."""
        return Places(np.array(self.worker_cols, np.int64)[cols], np.array(self.worker_rows, np.int64)[rows])


def torus_of(spec: DeviceSpec) -> Torus:
    """The network of a device.

    A grid with more columns than `NocSpec.worker_cols` exists on no card: its torus has as many non-worker columns as
    the card's torus, and these come first. The same holds for rows.
    """
    return spec.derived(_torus)


def _torus(spec: DeviceSpec) -> Torus:
    noc, grid = spec.noc, spec.grid
    cols, worker_cols = _axis(noc.cols, noc.worker_cols, grid.cols)
    rows, worker_rows = _axis(noc.rows, noc.worker_rows, grid.rows)
    return Torus(
        cols=cols,
        rows=rows,
        worker_cols=worker_cols,
        worker_rows=worker_rows,
        round_trip_cycles=answer_cycles(noc, cols + rows),
    )


@overload
def answer_cycles(noc: NocSpec, links: float) -> float: ...


@overload
def answer_cycles(noc: NocSpec, links: Floats) -> Floats: ...


def answer_cycles(noc: NocSpec, links: float | Floats) -> float | Floats:
    """Cycles from a small request to its answer, which together pass this many links (`round_links`)."""
    return noc.interface_cycles + noc.hop_cycles * links


@lru_cache(AXES)
def _axis(nodes: int, workers: tuple[int, ...], cores: int) -> tuple[int, tuple[int, ...]]:
    """Nodes along an axis and the workers among them."""
    if cores <= len(workers):
        return nodes, workers
    others = nodes - len(workers) if workers else max(0, nodes - cores)
    return cores + others, tuple(range(others, others + cores))


class Leg(NamedTuple):
    """The part of routes that runs along one axis."""

    ring: Integers  # [routes] which ring
    start: Integers  # Position on it, counted in the direction of travel
    links: Integers
    size: int  # Links of a ring
    rings: int  # Rings of the torus along the axis


def legs(torus: Torus, network: Network, sources: Places, destinations: Places) -> tuple[Leg, Leg]:
    """The parts of routes along rows and along columns, from each source to its destination."""
    right = (network.step * (destinations.col - sources.col)) % torus.cols
    down = (network.step * (destinations.row - sources.row)) % torus.rows
    row_ring, col_ring = sources.row, destinations.col
    if not network.along_row_first:
        row_ring, col_ring = destinations.row, sources.col
    return (
        Leg(row_ring, network.step * sources.col, right, torus.cols, torus.rows),
        Leg(col_ring, network.step * sources.row, down, torus.rows, torus.cols),
    )


class Link(NamedTuple):
    """A link of a network."""

    col: int  # Torus column of the node that it leaves
    row: int  # Torus row of that node
    along_row: bool  # Whether it leads to another column


def routes(torus: Torus, network: Network, sources: Places, destinations: Places) -> tuple[tuple[Link, ...], ...]:
    """[routes] the links from each source to its destination, in order."""
    along_row, along_column = legs(torus, network, sources, destinations)
    in_row = [
        [Link(col, row, along_row=True) for row, col in nodes] for nodes in _nodes_of_legs(along_row, network.step)
    ]
    in_column = [
        [Link(col, row, along_row=False) for col, row in nodes] for nodes in _nodes_of_legs(along_column, network.step)
    ]
    parts = (in_row, in_column) if network.along_row_first else (in_column, in_row)
    return tuple((*first, *then) for first, then in zip(*parts, strict=True))


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways that bytes take through a network."""

    torus: Torus
    network: Network
    sources: Places  # [ways] the node where each begins
    destinations: Places
    parts: Floats  # [ways] the part of the bytes that takes it
    # [ways] the multicast that each is of: ways of one pass a link that they share together, once; None without any
    multicasts: Integers | None = None

    def passing(self, link: Link) -> Booleans:
        """[ways] whether each passes a link."""
        leg = legs(self.torus, self.network, self.sources, self.destinations)[0 if link.along_row else 1]
        ring, place = (link.row, link.col) if link.along_row else (link.col, link.row)
        behind = (self.network.step * place - leg.start) % leg.size
        passes: Booleans = (leg.ring == ring) & (behind < leg.links)
        return passes


def _nodes_of_legs(leg: Leg, step: int) -> Iterator[list[tuple[int, int]]]:
    """The nodes that each route leaves: their ring, and the position on it."""
    for ring, start, links in zip(leg.ring.tolist(), leg.start.tolist(), leg.links.tolist(), strict=True):
        yield [(ring, step * (start + passed) % leg.size) for passed in range(links)]


def round_links(torus: Torus, sources: Places, destinations: Places) -> Integers:
    """The links of a request and its answer together, [routes]: whole rings, because the answer continues the way."""
    links: Integers = np.where(sources.col != destinations.col, torus.cols, 0)
    return links + np.where(sources.row != destinations.row, torus.rows, 0)


class Meetings(NamedTuple):
    """Geometric properties of routes; immutable."""

    legs: tuple[Leg, Leg]  # Along rows, along columns
    shared: Booleans  # As of `sharing`
    round_links: Integers  # As of `round_links`


def meetings(torus: Torus, network: Network, sources: Places, destinations: Places) -> Meetings:
    """The legs of some routes, and the legs that share links; cached for recent routes.

    Neighboring cores of a grid exchange data along the same few routes, whatever the sizes of tensors are.
    """
    ends = tuple(axis.tobytes() for axis in (*sources, *destinations))
    return _meetings(torus, network, ends)


@lru_cache(ROUTES)
def _meetings(torus: Torus, network: Network, ends: tuple[bytes, ...]) -> Meetings:
    axes = [np.frombuffer(axis, np.int64) for axis in ends]
    sources, destinations = Places(*axes[:2]), Places(*axes[2:])
    return Meetings(
        legs(torus, network, sources, destinations),
        sharing(torus, network, sources, destinations),
        round_links(torus, sources, destinations),
    )


def sharing(torus: Torus, network: Network, sources: Places, destinations: Places) -> Booleans:
    """[routes, routes] whether two routes have a link in common; a route has all of its own."""
    along_row, along_column = _reaches(legs(torus, network, sources, destinations))
    reached = along_row | along_column
    shared: Booleans = reached | reached.T
    shared.ravel()[:: len(shared) + 1] = True
    return shared


def _reaches(legs: Sequence[Leg]) -> Booleans:
    """[legs, routes, routes]: whether the first link of the second route on a leg is a link of the first route."""
    largest = max(leg.size for leg in legs)
    narrow = np.min_scalar_type(2 * largest)  # tables of all pairs are large; positions are small
    start = np.array([leg.start % leg.size for leg in legs]).astype(narrow)
    links = np.array([leg.links for leg in legs]).astype(narrow)
    ring = np.where(links, np.array([leg.ring for leg in legs]).astype(narrow), narrow.type(2 * largest))
    size = np.array([leg.size for leg in legs], narrow)[:, None, None]
    ahead = start[:, None, :] - start[:, :, None]  # unsigned: far too large where the second begins behind
    reached: Booleans = ahead < links[:, :, None]
    ahead += size
    reached |= ahead < links[:, :, None]
    reached &= ring[:, :, None] == ring[:, None, :]
    return reached


def passing_bytes(shared: Booleans | Floats, sent_bytes: Floats) -> Floats:
    """Bytes on the links of each route, [routes, blocks]: its own bytes, and those of routes that share a link.

    ``shared`` is [routes, routes] from `sharing`, or the share of the second route's bytes on links of the first;
    ``sent_bytes`` is [routes, blocks of transfers]. A route without own bytes has 0.
    """
    passing: Floats = np.where(sent_bytes > 0, shared.astype(np.float64, copy=False) @ sent_bytes, 0.0)
    return passing


def bandwidth(spec: DeviceSpec) -> float:
    """Bytes a cycle of all banks together, with well placed readers."""
    return spec.dram.achieved_share * spec.dram.peak_bytes_per_second / spec.clock_hz


def shared_cycles(spec: DeviceSpec, moved_bytes: float, efficiency: float = 1.0) -> float:
    """Cycles in which the banks together move all cores' bytes; ``efficiency`` is the usable part of the bandwidth."""
    return moved_bytes / (bandwidth(spec) * efficiency)


def shared_read_cycles(spec: DeviceSpec, moved_bytes: float, page_bytes: float, efficiency: float = 1.0) -> float:
    """Cycles in which the banks answer all cores' reads of pages, limited by bytes or by the number of requests.

    Arguments as in `shared_cycles`; a request reads a page, or a packet of a larger page.
    """
    requests = moved_bytes / min(page_bytes, spec.noc.packet_bytes) / spec.dram.banks
    taken = requests * spec.dram.request_ns * spec.clock_hz / 1e9
    return max(shared_cycles(spec, moved_bytes, efficiency), taken)


def read_latency_cycles(spec: DeviceSpec) -> float:
    """Round trip of a small read: over both axes of the network, and into a bank."""
    return torus_of(spec).round_trip_cycles + spec.dram.access_ns * spec.clock_hz / 1e9


def page_cycles(spec: DeviceSpec, page_bytes: float, share: float = 1.0) -> float:
    """Cycles of the bytes of one page from one bank, over one link, at a ``share`` of the bank's rate."""
    return page_bytes / min(share * spec.dram.bank_bytes_per_second / spec.clock_hz, spec.noc.link_bytes_per_cycle)


def page_round_trip_cycles(spec: DeviceSpec, page_bytes: float, share: float = 1.0) -> float:
    """Cycles per page if each page is awaited before the next request; arguments as in `page_cycles`."""
    return read_latency_cycles(spec) + page_cycles(spec, page_bytes, share)


def hands(spec: DeviceSpec, roles: int) -> int:
    """How many of some roles are done at a time."""
    return min(roles, spec.data_movement.processors)


def side_by_side_cycles(spec: DeviceSpec, first: float, second: float) -> float:
    """Cycles of two roles that do not wait for each other: together if there are two processors, else in turn."""
    return first + second if spec.data_movement.processors == 1 else max(first, second)
