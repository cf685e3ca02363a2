"""The network traffic of a device operation, link by link and step by step."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from device.numbers.formats import div_up
from device.spec.device_spec import DeviceSpec
from device.time.network import NETWORKS, Link, Torus, routes, torus_of
from ops.op_model import Sent
from ttsim.report.cycles import whole

STEPS: Final = 16  # most of a timeline
FULL: Final = 100.0  # percent of a link's capacity


class Transfer(NamedTuple):
    """A transfer from one node of the torus to another."""

    number: int  # Counted from 0
    network: int  # 0 or 1
    source: tuple[int, int]  # Torus column and row
    destination: tuple[int, int]
    size_bytes: int  # Bytes sent
    start_cycle: int  # From when on, counted from the start of the program
    end_cycle: int  # When the last of it has arrived, at least a cycle later
    links: tuple[Link, ...]  # The links on its route, in order

    @property
    def bytes_per_cycle(self) -> float:
        """The average rate."""
        return self.size_bytes / (self.end_cycle - self.start_cycle)


class NetworkLoad(NamedTuple):
    """The demand on links, in percent of their capacity."""

    demand: float  # On average over all links, idle ones among them
    used: float  # Average of the demand, limited to the capacity of each link
    most: float  # Of the link with most demand


class TimelineStep(NamedTuple):
    """A part of a timeline."""

    start_cycle: int
    end_cycle: int
    transfers: tuple[int, ...]  # Numbers of the transfers under way during the step
    demand: tuple[tuple[int, Link, float], ...]  # Network, link and percent of its capacity, of links in use
    load: tuple[NetworkLoad, ...]  # Of each network
    whole: NetworkLoad  # Of both together


class Timeline(NamedTuple):
    """The network traffic of a device operation."""

    columns: int
    rows: int
    step_cycles: int  # Cycles of a step; the last may have fewer
    transfers: tuple[Transfer, ...]  # In the order of networks, senders and receivers
    steps: tuple[TimelineStep, ...]
    load: tuple[NetworkLoad, ...]  # Of each network, on average over the steps
    whole: NetworkLoad  # Of both together


def timeline(sent: Sequence[Sent], spec: DeviceSpec) -> Timeline:
    """The timeline of the transfers of an operation's model; `sent` is not empty."""
    torus = torus_of(spec)
    passed = zip(sent, _routes(sent, torus), strict=True)
    transfers = tuple(_transfer(number, message, links, torus) for number, (message, links) in enumerate(passed))
    end = max(transfer.end_cycle for transfer in transfers)
    length = div_up(end, STEPS)
    links = 2 * torus.cols * torus.rows
    steps = tuple(
        _step(start, min(start + length, end), transfers, spec.noc.flit_bytes, links) for start in range(0, end, length)
    )
    load = tuple(_average([step.load[network] for step in steps]) for network in range(len(NETWORKS)))
    return Timeline(torus.cols, torus.rows, length, transfers, steps, load, _average([step.whole for step in steps]))


def _transfer(number: int, sent: Sent, links: tuple[Link, ...], torus: Torus) -> Transfer:
    start = whole(sent.start_cycle)
    end = max(whole(sent.end_cycle), start + 1)
    source, destination = (
        (torus.worker_cols[column], torus.worker_rows[row]) for column, row in (sent.source, sent.destination)
    )
    return Transfer(number, sent.network, source, destination, sent.size_bytes, start, end, links)


def _routes(sent: Sequence[Sent], torus: Torus) -> list[tuple[Link, ...]]:
    """The links of each transfer, in the order of `sent`."""
    links_of: dict[int, tuple[Link, ...]] = {}
    for number, network in enumerate(NETWORKS):
        own = [at for at, message in enumerate(sent) if message.network == number]
        nodes = np.array([(*sent[at].source, *sent[at].destination) for at in own], np.int64).reshape(-1, 4).T
        passed = routes(torus, network, torus.places(nodes[0], nodes[1]), torus.places(nodes[2], nodes[3]))
        links_of.update(zip(own, passed, strict=True))
    return [links_of[at] for at in range(len(sent))]


def _step(start: int, end: int, transfers: Iterable[Transfer], flit_bytes: int, links: int) -> TimelineStep:
    """The demand from cycle `start` to cycle `end`, on networks of `links` links each."""
    live = [transfer for transfer in transfers if transfer.start_cycle < end and transfer.end_cycle > start]
    demand: defaultdict[tuple[int, Link], float] = defaultdict(float)
    for transfer in live:
        share = (min(end, transfer.end_cycle) - max(start, transfer.start_cycle)) / (end - start)
        for link in transfer.links:
            demand[transfer.network, link] += FULL * transfer.bytes_per_cycle / flit_bytes * share
    of_networks = [
        [demanded for (number, _), demanded in demand.items() if number == network] for network in range(len(NETWORKS))
    ]
    return TimelineStep(
        start,
        end,
        transfers=tuple(transfer.number for transfer in live),
        demand=tuple((network, link, demanded) for (network, link), demanded in sorted(demand.items())),
        load=tuple(_load(demands, links) for demands in of_networks),
        whole=_load([demanded for demands in of_networks for demanded in demands], links * len(NETWORKS)),
    )


def _load(demand: Sequence[float], links: int) -> NetworkLoad:
    used = sum(min(part, FULL) for part in demand)
    return NetworkLoad(sum(demand) / links, used / links, max(demand, default=0.0))


def _average(loads: Sequence[NetworkLoad]) -> NetworkLoad:
    """The average over all steps, and the largest demand of any."""
    demand, used, most = zip(*loads, strict=True)
    return NetworkLoad(sum(demand) / len(loads), sum(used) / len(loads), max(most))
