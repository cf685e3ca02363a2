"""npe_viz: what device operations send over the networks, as tt-npe writes it for ttnn-visualizer's page (form 1.0.0).

A file for each program and a manifest that leads from device operations to them. There are those alone whose model
knows routes: halos, with all that one core sends another on one network as one transfer. Programs whose models know
bytes but no routes (multicasts of convolutions, pages from and to DRAM) are left out, and so is what stays on a core. A
timeline has at most 16 steps, to keep it small. Nodes are told by device, row and column of the torus.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from device.time.network import Link
from ttsim.report.record import Record
from ttsim.report.timelines import NetworkLoad, Timeline, TimelineStep, Transfer

FORM: Final = "1.0.0"
NETWORKS: Final = ("NOC0", "NOC1")
WAYS: Final = (("SOUTH", "EAST"), ("NORTH", "WEST"))  # of each network: along a column, along a row
WRITE: Final = "WRITE_"
DIGITS: Final = 6  # decimals of rates and percents


def npe_files(record: Record) -> dict[str, str]:
    """The files by their names; none if nothing is known to go over the networks."""
    if not record.timelines:
        return {}
    known = dict(record.timelines)
    rows = [(one.call_count, one.program) for one in record.operations if one.program in known]
    manifest = [{"global_call_count": count, "file": _name(program)} for count, program in rows]
    timelines = {_name(program): _text(_document(one, record)) for program, one in known.items()}
    return {"manifest.json": _text(manifest), **timelines}


def _name(program: int) -> str:
    return f"program{program}.json"


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False) + "\n"


def _document(timeline: Timeline, record: Record) -> dict[str, Any]:
    device = record.device["device_id"]
    return {
        "common_info": {
            "version": FORM,
            "mesh_device": record.arch or "unknown",
            "arch": record.arch or "unknown",
            "cycles_per_timestep": timeline.step_cycles,
            "congestion_model_name": "ttsim",
            "num_rows": timeline.rows,
            "num_cols": timeline.columns,
            "dram_bw_util": 0.0,
            "link_util": _digits(timeline.whole.used),
            "link_demand": _digits(timeline.whole.demand),
            "max_link_demand": _digits(timeline.whole.most),
            "mcast_write_link_util": 0.0,
            "noc": _networks(timeline.load),
        },
        "chips": {str(device): [0, 0, 0, 0]},
        "noc_transfers": [_transfer(one, device) for one in timeline.transfers],
        "zones": [],
        "timestep_data": [_step(one, device) for one in timeline.steps],
    }


def _transfer(one: Transfer, device: int) -> dict[str, Any]:
    ends = {"src": _node(one.source, device), "dst": [_node(one.destination, device)]}
    times = {"start_cycle": one.start_cycle, "end_cycle": one.end_cycle}
    segment = {
        "device_id": device,
        **ends,
        "noc_type": NETWORKS[one.network],
        "injection_rate": _digits(one.bytes_per_cycle),
        **times,
        "links": list(_links(one, device)),
    }
    return {
        "id": one.number,
        "noc_event_type": WRITE,
        "fabric_event_type": False,
        "total_bytes": one.size_bytes,
        **ends,
        **times,
        "zones": "",
        "route": [segment],
    }


def _links(one: Transfer, device: int) -> Iterator[list[Any]]:
    """From the interface of the sender to that of the receiver."""
    network = NETWORKS[one.network]
    yield [*_node(one.source, device), f"{network}_IN"]
    yield from (_link(one.network, link, device) for link in one.links)
    yield [*_node(one.destination, device), f"{network}_OUT"]


def _link(network: int, link: Link, device: int) -> list[Any]:
    return [device, link.row, link.col, f"{NETWORKS[network]}_{WAYS[network][link.along_row]}"]


def _node(node: tuple[int, int], device: int) -> list[int]:
    column, row = node
    return [device, row, column]


def _step(one: TimelineStep, device: int) -> dict[str, Any]:
    return {
        "start_cycle": one.start_cycle,
        "end_cycle": one.end_cycle,
        "active_transfers": list(one.transfers),
        "link_demand": [[*_link(network, link, device), _digits(part)] for network, link, part in one.demand],
        "avg_link_demand": _digits(one.whole.demand),
        "avg_link_util": _digits(one.whole.used),
        "mcast_write_link_util": 0.0,
        "noc": _networks(one.load),
    }


def _networks(loads: Sequence[NetworkLoad]) -> dict[str, dict[str, float]]:
    return {
        name: {
            "avg_link_demand": _digits(one.demand),
            "avg_link_util": _digits(one.used),
            "max_link_demand": _digits(one.most),
        }
        for name, one in zip(NETWORKS, loads, strict=True)
    }


def _digits(figure: float) -> float:
    return round(figure, DIGITS)
