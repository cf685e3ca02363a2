"""What a device operation sends over the networks, link by link and step by step, as frozen values."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from device.numbers.formats import div_up
from device.spec.device_spec import DeviceSpec
from device.time.network import NETWORKS, Link, Torus, routes, torus_of
from ops.op_model import Sent
from ttsim.report.cycles import whole

STEPS: Final = 16  # most of a timeline
FULL: Final = 100.0  # percent of what a link can carry


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """What goes from one node of the torus to another."""

    number: int  # Counted from 0
    network: int  # 0 or 1
    source: tuple[int, int]  # Torus column and row
    destination: tuple[int, int]
    size_bytes: int  # What is sent
    start_cycle: int  # From when on, counted from the start of the program
    end_cycle: int  # When the last of it has arrived, at least a cycle later
    bytes_per_cycle: float  # On average
    links: tuple[Link, ...]  # What it passes, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkLoad:
    """How much is asked of links, in percent of what they can carry."""

    demand: float  # On average over all links, idle ones among them
    used: float  # The same, with no more of any link than it can carry
    most: float  # Of the link that is asked for most


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineStep:
    """A part of a timeline."""

    start_cycle: int  # When it begins
    end_cycle: int
    transfers: tuple[int, ...]  # Numbers of those that are under way at some time of it
    # Network, link and percent that is asked of it, of links that are in use
    demand: tuple[tuple[int, Link, float], ...]
    load: tuple[NetworkLoad, ...]  # Of each network
    whole: NetworkLoad  # Of both together


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A device operation on the networks."""

    columns: int
    rows: int
    step_cycles: int  # Cycles of a step; the last may have fewer
    transfers: tuple[Transfer, ...]  # In the order of networks, senders and receivers
    steps: tuple[TimelineStep, ...]
    load: tuple[NetworkLoad, ...]  # Of each network, on average over the steps
    whole: NetworkLoad  # Of both together


def timeline(sent: Sequence[Sent], spec: DeviceSpec) -> Timeline:
    """The timeline of what is sent, at least something.

    Args:
        sent: By the cores, as the model of the operation has it.
    """
    torus = torus_of(spec)
    passed = zip(sent, _routes(sent, torus), strict=True)
    transfers = tuple(_transfer(number, one, links, torus) for number, (one, links) in enumerate(passed))
    end = max(one.end_cycle for one in transfers)
    length = div_up(end, STEPS)
    links = 2 * torus.cols * torus.rows
    starts = range(0, end, length)
    steps = tuple(_step(one, min(one + length, end), transfers, spec.noc.flit_bytes, links) for one in starts)
    return Timeline(
        columns=torus.cols,
        rows=torus.rows,
        step_cycles=length,
        transfers=transfers,
        steps=steps,
        load=tuple(_average([one.load[network] for one in steps]) for network in range(len(NETWORKS))),
        whole=_average([one.whole for one in steps]),
    )


def _transfer(number: int, one: Sent, links: tuple[Link, ...], torus: Torus) -> Transfer:
    start = whole(one.start_cycle)
    end = max(whole(one.end_cycle), start + 1)
    return Transfer(
        number=number,
        network=one.network,
        source=_node(torus, one.source),
        destination=_node(torus, one.destination),
        size_bytes=one.size_bytes,
        start_cycle=start,
        end_cycle=end,
        bytes_per_cycle=one.size_bytes / (end - start),
        links=links,
    )


def _node(torus: Torus, core: tuple[int, int]) -> tuple[int, int]:
    column, row = core
    return torus.worker_cols[column], torus.worker_rows[row]


def _routes(sent: Sequence[Sent], torus: Torus) -> list[tuple[Link, ...]]:
    """The links of each, in the order of what is sent."""
    found: dict[int, tuple[Link, ...]] = {}
    for number, network in enumerate(NETWORKS):
        own = [at for at, one in enumerate(sent) if one.network == number]
        ends = np.array([(*sent[at].source, *sent[at].destination) for at in own], np.int64).reshape(-1, 4).T
        passed = routes(torus, network, torus.places(ends[0], ends[1]), torus.places(ends[2], ends[3]))
        found.update(zip(own, passed, strict=True))
    return [found[at] for at in range(len(sent))]


def _step(start: int, end: int, transfers: Iterable[Transfer], flit_bytes: int, links: int) -> TimelineStep:
    """What is asked from one cycle to another of networks with so many links each."""
    live = [one for one in transfers if one.start_cycle < end and one.end_cycle > start]
    demand: defaultdict[tuple[int, Link], float] = defaultdict(float)
    for one in live:
        share = (min(end, one.end_cycle) - max(start, one.start_cycle)) / (end - start)
        asked = FULL * one.bytes_per_cycle / flit_bytes * share
        for link in one.links:
            demand[one.network, link] += asked
    of_networks = [[part for (number, _), part in demand.items() if number == one] for one in range(len(NETWORKS))]
    return TimelineStep(
        start_cycle=start,
        end_cycle=end,
        transfers=tuple(one.number for one in live),
        demand=tuple((network, link, part) for (network, link), part in sorted(demand.items())),
        load=tuple(_load(one, links) for one in of_networks),
        whole=_load([part for one in of_networks for part in one], links * len(NETWORKS)),
    )


def _load(demand: Sequence[float], links: int) -> NetworkLoad:
    return NetworkLoad(
        demand=sum(demand) / links,
        used=sum(min(one, FULL) for one in demand) / links,
        most=max(demand, default=0.0),
    )


def _average(loads: Sequence[NetworkLoad]) -> NetworkLoad:
    """Over all steps, and the most of any."""
    return NetworkLoad(
        demand=sum(one.demand for one in loads) / len(loads),
        used=sum(one.used for one in loads) / len(loads),
        most=max(one.most for one in loads),
    )
