"""The network traffic of a device operation by link and time step, in tt-npe's format (1.0.0).

A timeline has at most 16 steps, to keep the file small. Nodes are device, row and column of the torus. All bytes from
one core to another on one network are one transfer; copies within a core are omitted.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from device.numbers.formats import div_up
from device.spec.device_spec import DeviceSpec
from device.time.network import NETWORKS, Link, Torus, routes, torus_of
from ops.op_model import Sent
from ttsim.report.cycles import whole

FORM: Final = "1.0.0"
STEPS: Final = 16  # most of a timeline
FULL: Final = 100.0  # percent of a link's capacity
DEVICE: Final = 0
NAMES: Final = ("NOC0", "NOC1")
WAYS: Final = (("SOUTH", "EAST"), ("NORTH", "WEST"))  # of each network: along a column, along a row
DIGITS: Final = 6  # decimals of rates and percents
Document = dict[str, Any]


class Load(NamedTuple):
    """The demand on links, in percent of their capacity."""

    demand: float  # On average over all links, idle ones among them
    used: float  # Average of the demand, limited to the capacity of each link
    most: float  # Of the link with most demand


class Transfer(NamedTuple):
    """A transfer from one node of the torus to another."""

    number: int  # Counted from 0
    sent: Sent
    start: int  # From which cycle on, counted from the start of the program
    end: int  # The cycle when the last of it has arrived, at least one later
    links: tuple[Link, ...]  # The links on its route, in order

    @property
    def bytes_per_cycle(self) -> float:
        """The average rate."""
        return self.sent.size_bytes / (self.end - self.start)


def timeline(sent: Sequence[Sent], spec: DeviceSpec, arch: str) -> Document:
    """The document for the transfers of an operation's model; `sent` must not be empty."""
    torus = torus_of(spec)
    transfers = []
    for number, (message, links) in enumerate(zip(sent, _routes(sent, torus), strict=True)):
        start = whole(message.start_cycle)
        transfers.append(Transfer(number, message, start, max(whole(message.end_cycle), start + 1), links))
    end = max(transfer.end for transfer in transfers)
    length, links_of_network = div_up(end, STEPS), 2 * torus.cols * torus.rows
    steps = [
        _step(start, min(start + length, end), transfers, spec.noc.flit_bytes, links_of_network)
        for start in range(0, end, length)
    ]
    *of_networks, both = (_average(loads) for loads in zip(*(loads for _, loads in steps), strict=True))
    return {
        "common_info": {
            "version": FORM,
            "mesh_device": arch,
            "arch": arch,
            "cycles_per_timestep": length,
            "congestion_model_name": "ttsim",
            "num_rows": torus.rows,
            "num_cols": torus.cols,
            "dram_bw_util": 0.0,
            "link_util": _digits(both.used),
            "link_demand": _digits(both.demand),
            "max_link_demand": _digits(both.most),
            "mcast_write_link_util": 0.0,
            "noc": _networks(of_networks),
        },
        "chips": {str(DEVICE): [0, 0, 0, 0]},
        "noc_transfers": [_transfer(transfer, torus) for transfer in transfers],
        "zones": [],
        "timestep_data": [step for step, _ in steps],
    }


def _routes(sent: Sequence[Sent], torus: Torus) -> list[tuple[Link, ...]]:
    """The links of each transfer, in the order of `sent`."""
    links_of: dict[int, tuple[Link, ...]] = {}
    for number, network in enumerate(NETWORKS):
        own = [at for at, message in enumerate(sent) if message.network == number]
        nodes = np.array([(*sent[at].source, *sent[at].destination) for at in own], np.int64).reshape(-1, 4).T
        passed = routes(torus, network, torus.places(nodes[0], nodes[1]), torus.places(nodes[2], nodes[3]))
        links_of.update(zip(own, passed, strict=True))
    return [links_of[at] for at in range(len(sent))]


def _transfer(transfer: Transfer, torus: Torus) -> Document:
    """A transfer; its links lead from the sender's interface to the receiver's interface."""
    sent, network = transfer.sent, NAMES[transfer.sent.network]
    source, destination = (
        [DEVICE, torus.worker_rows[row], torus.worker_cols[column]] for column, row in (sent.source, sent.destination)
    )
    ends = {"src": source, "dst": [destination]}
    cycles = {"start_cycle": transfer.start, "end_cycle": transfer.end}
    links = (_link(sent.network, link) for link in transfer.links)
    segment = {
        "device_id": DEVICE,
        **ends,
        "noc_type": network,
        "injection_rate": _digits(transfer.bytes_per_cycle),
        **cycles,
        "links": [[*source, f"{network}_IN"], *links, [*destination, f"{network}_OUT"]],
    }
    return {
        "id": transfer.number,
        "noc_event_type": "WRITE_",
        "fabric_event_type": False,
        "total_bytes": sent.size_bytes,
        **ends,
        **cycles,
        "zones": "",
        "route": [segment],
    }


def _step(
    start: int, end: int, transfers: Sequence[Transfer], flit_bytes: int, links_of_network: int
) -> tuple[Document, tuple[Load, ...]]:
    """The demand from cycle `start` to cycle `end`, for each network and for both together."""
    live = [transfer for transfer in transfers if transfer.start < end and transfer.end > start]
    demand: defaultdict[tuple[int, Link], float] = defaultdict(float)
    for transfer in live:
        share = (min(end, transfer.end) - max(start, transfer.start)) / (end - start)
        for link in transfer.links:
            demand[transfer.sent.network, link] += FULL * transfer.bytes_per_cycle / flit_bytes * share
    first, second = ([part for (network, _), part in demand.items() if network == number] for number in (0, 1))
    both = _load(first + second, links_of_network * len(NETWORKS))
    loads = (_load(first, links_of_network), _load(second, links_of_network), both)
    step = {
        "start_cycle": start,
        "end_cycle": end,
        "active_transfers": [transfer.number for transfer in live],
        "link_demand": [[*_link(*place), _digits(part)] for place, part in sorted(demand.items())],
        "avg_link_demand": _digits(both.demand),
        "avg_link_util": _digits(both.used),
        "mcast_write_link_util": 0.0,
        "noc": _networks(loads[:2]),
    }
    return step, loads


def _load(demand: Sequence[float], links: int) -> Load:
    used = sum(min(part, FULL) for part in demand)
    return Load(sum(demand) / links, used / links, max(demand, default=0.0))


def _average(loads: Sequence[Load]) -> Load:
    """The average demand over all steps, and the largest demand."""
    demand, used, most = zip(*loads, strict=True)
    return Load(sum(demand) / len(loads), sum(used) / len(loads), max(most))


def _link(network: int, link: Link) -> list[Any]:
    return [DEVICE, link.row, link.col, f"{NAMES[network]}_{WAYS[network][link.along_row]}"]


def _networks(loads: Sequence[Load]) -> Document:
    keys = ("avg_link_demand", "avg_link_util", "max_link_demand")
    return {name: dict(zip(keys, map(_digits, load), strict=True)) for name, load in zip(NAMES, loads, strict=True)}


def _digits(figure: float) -> float:
    return round(figure, DIGITS)
