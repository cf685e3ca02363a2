"""Loads of the networks' links: how much passes the busiest link where cores and banks move data at the same time.

Every link carries `NocSpec.link_bytes_per_cycle`, so that no program is faster than its busiest link.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from device.cores import CoreRangeSet
from device.spec.device_spec import DeviceSpec
from device.time.network import FIRST, SECOND, Floats, Leg, Network, Places, Torus, legs, torus_of

KEPT: Final = 4096  # shares that are remembered
Points = tuple[tuple[int, int], ...]  # columns and rows of the torus


def busiest_link_bytes(
    torus: Torus, network: Network, sources: Places, destinations: Places, sent_bytes: Floats
) -> float:
    """The bytes on the busiest link.

    Args:
        torus: The nodes.
        network: One of the two networks.
        sources: Where each transfer begins, [transfers].
        destinations: Where each transfer ends, [transfers].
        sent_bytes: The bytes of each transfer, [transfers].
    """
    return max((_busiest(leg, sent_bytes) for leg in legs(torus, network, sources, destinations)), default=0.0)


def _busiest(leg: Leg, sent_bytes: Floats) -> float:
    """The bytes on the busiest link of one axis: sums along each ring, unrolled twice and folded."""
    if not len(leg.ring):
        return 0.0
    first = leg.start % leg.size
    steps = np.zeros((int(leg.ring.max()) + 1, 2 * leg.size + 1))
    np.add.at(steps, (leg.ring, first), sent_bytes)
    np.add.at(steps, (leg.ring, first + leg.links), -sent_bytes)
    loads = steps.cumsum(axis=1)
    return float((loads[:, : leg.size] + loads[:, leg.size : -1]).max())


def bank_points(spec: DeviceSpec, network: Network) -> Points:
    """The nodes at which the banks of DRAM answer on a network; empty where the device does not state them."""
    noc = spec.noc
    rows = noc.dram_rows if network is FIRST else noc.dram_second_rows
    nodes = tuple(zip(noc.dram_cols, rows, strict=True))
    return tuple(nodes[bank % len(nodes)] for bank in range(spec.dram.banks)) if nodes else ()


def spread_link_bytes(
    spec: DeviceSpec, cores: CoreRangeSet, moved_bytes: float, *, in_dram: bool, writes: bool, crossed: bool = False
) -> float:
    """The bytes on the busiest link where cores move equal parts from or to all banks of an interleaved buffer.

    Args:
        spec: The device.
        cores: The cores that move the data.
        moved_bytes: The bytes of all cores together.
        in_dram: Whether the buffer is in DRAM; otherwise in the L1 of all worker cores.
        writes: Whether the cores write; otherwise they read.
        crossed: Whether the cores read over the network that is placed for writing, or write over the other one.

    Returns:
        The bytes; 0 for a buffer in DRAM where the device does not state where the banks are.
    """
    network = SECOND if writes is not crossed else FIRST
    points = bank_points(spec, network) if in_dram else None
    if points == ():
        return 0.0
    corners = tuple((each.start.x, each.start.y, each.end.x, each.end.y) for each in cores.ranges)
    grid = (spec.grid.cols, spec.grid.rows)
    return moved_bytes * _busiest_share(torus_of(spec), network, corners, points, grid, writes=writes)


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
    """Cycles in which the busiest link passes the pages of all cores; arguments as of `spread_link_bytes`.

    Packets of many cores merge on their way to other cores, and to the banks over the network that is placed for
    reading; a packet that waits keeps the links behind it from others.
    """
    noc = spec.noc
    share = noc.merging_share if not in_dram or (writes and crossed) else 1.0
    page = page_bytes / (share * noc.link_bytes_per_cycle) + noc.crossing_cycles
    return page * spread_link_bytes(spec, cores, pages, in_dram=in_dram, writes=writes, crossed=crossed)


@lru_cache(maxsize=KEPT)
def _busiest_share(
    torus: Torus,
    network: Network,
    corners: tuple[tuple[int, int, int, int], ...],
    points: Points | None,
    grid: tuple[int, int],
    *,
    writes: bool,
) -> float:
    """The part of all bytes that passes the busiest link; ``points`` of None are all worker cores."""
    here = _workers(torus, corners)
    there = _workers(torus, [(0, 0, grid[0] - 1, grid[1] - 1)]) if points is None else _places(points)
    count, banks = len(here.col), len(there.col)
    cores, memory = np.repeat(np.arange(count), banks), np.tile(np.arange(banks), count)
    ends = here.take(cores), there.take(memory)
    sources, destinations = ends if writes else ends[::-1]
    return busiest_link_bytes(torus, network, sources, destinations, np.full(count * banks, 1.0 / (count * banks)))


def _workers(torus: Torus, corners: Sequence[tuple[int, int, int, int]]) -> Places:
    """Where the worker cores of some rectangles lie."""
    pairs = [
        (col, row) for left, top, right, low in corners for row in range(top, low + 1) for col in range(left, right + 1)
    ]
    cols, rows = np.array(pairs, np.int64).T
    return torus.places(cols, rows)


def _places(points: Points) -> Places:
    cols, rows = np.array(points, np.int64).T
    return Places(cols, rows)
